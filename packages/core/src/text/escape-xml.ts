/**
 * Text from the archive inside a frame of ours, such as `<summary>` or `<recall>`: only the engine can close the frame, because every
 * mark of markup in the text is written as an entity.
 */
const XML_ESCAPES: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

/** Escapes markup; characters that XML cannot hold become the replacement character. */
export function escapeXml(text: string): string {
  return (
    text
      .toWellFormed()
      // oxlint-disable-next-line no-control-regex -- these are exactly the characters XML 1.0 forbids
      .replaceAll(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "\ufffd")
      .replaceAll(/[&<>"]/g, (character) => XML_ESCAPES[character] ?? character)
  );
}
