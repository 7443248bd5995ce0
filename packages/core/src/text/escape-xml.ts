/**
 * Text from the archive inside a generated frame, such as `<summary>` or `<recall>`: only the engine can close the frame, because no text
 * in it can begin a tag.
 */
const XML_ESCAPES: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

/** Escapes markup for the value of an attribute; characters that XML cannot represent become the replacement character. */
export const escapeXml = (text: string): string => escapeMarks(text, /[&<>"]/g);

/** For text between tags: quotes and arrows are plain there, which takes less room and reads as written. */
export const escapeXmlText = (text: string): string => escapeMarks(text, /[&<]|(?<=\]\])>/g);

function escapeMarks(text: string, marks: RegExp): string {
  return (
    text
      .toWellFormed()
      // oxlint-disable-next-line no-control-regex -- these are exactly the characters XML 1.0 forbids
      .replaceAll(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "\ufffd")
      .replaceAll(marks, (character) => XML_ESCAPES[character] ?? character)
  );
}
