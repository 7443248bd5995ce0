// The reader of the screenplays in `scenes/`: plain text, one marker per block, no escapes.
//
// A marker is `@word` at the start of a line; the block's text is the rest of that line and all lines up to the
// next marker. Scenes are text and not code, so that dialogue with back-ticks, diffs and logs stays readable.
//
//   @scene 2026-02-03T08:12 title        a new scene, at that local time of the shop
//   @mira, @tomas, @lin, @beat, @photo   a user turn (`@photo` is Mira's, with the picture)
//   @think, @say, @call, @out, @fail     parts of an assistant turn; calls in a row before their outputs are parallel
//   @reply, @aborted, @broken            the end of an assistant turn: a normal one, a cut one, a provider's error
//   @wait 20m                            time passes
//   @abandon … @return                   a branch that the user left by editing a prompt
//   @model, @level, @custom              lines of the session that are no messages
//   @note                                a remark for readers of the scene file

export interface Block {
  readonly marker: string;
  /** The rest of the marker's line and the lines below it, without trailing blank lines. */
  readonly text: string;
  /** `file:line`, for complaints about a scene. */
  readonly place: string;
}

export interface Scene {
  readonly key: string;
  readonly startMs: number;
  readonly blocks: readonly Block[];
}

export interface ToolCall {
  readonly name: string;
  readonly arguments: Record<string, unknown>;
}

const MARKER = /^@([a-z]+)(?: (.*))?$/;

/** All story days lie before the clocks change, so one offset serves for the whole file. */
const SHOP_OFFSET = "+01:00";

export function parseShopTime(text: string): number {
  const ms = Date.parse(`${text.length === 16 ? `${text}:00` : text}${SHOP_OFFSET}`);
  if (Number.isNaN(ms)) throw new Error(`cannot read time "${text}": expected 2026-02-03T08:12`);
  return ms;
}

export function parseScreenplay(file: string, source: string): Scene[] {
  const scenes: { key: string; startMs: number; blocks: Block[] }[] = [];
  for (const block of splitBlocks(file, source)) {
    if (block.marker === "note") continue;
    if (block.marker === "scene") {
      const at = block.text.slice(0, 16);
      scenes.push({ key: at, startMs: parseShopTime(at), blocks: [] });
      continue;
    }
    const scene = scenes.at(-1);
    if (scene === undefined) throw new Error(`cannot place block at ${block.place}: no @scene before it`);
    scene.blocks.push(block);
  }
  return scenes;
}

function splitBlocks(file: string, source: string): Block[] {
  const blocks: { marker: string; lines: string[]; place: string }[] = [];
  for (const [index, line] of source.split("\n").entries()) {
    const match = MARKER.exec(line);
    if (match) {
      blocks.push({ marker: match[1] ?? "", lines: [match[2] ?? ""], place: `${file}:${index + 1}` });
    } else {
      blocks.at(-1)?.lines.push(line);
    }
  }
  return blocks.map(({ marker, lines, place }) => ({ marker, text: joinLines(lines), place }));
}

function joinLines(lines: readonly string[]): string {
  const text = lines.join("\n").trimEnd();
  return text.startsWith("\n") ? text.slice(1) : text;
}

/** `exec npm test` and its like, written short in the scenes, as the arguments the tool would get. */
export function parseCall(text: string, place: string): ToolCall {
  const [head = "", ...rest] = text.split("\n");
  const space = head.indexOf(" ");
  const name = space < 0 ? head : head.slice(0, space);
  const first = space < 0 ? "" : head.slice(space + 1);
  const body = rest.join("\n");
  const whole = rest.length > 0 ? `${first}\n${body}` : first;
  if (first.startsWith("{")) return { name, arguments: JSON.parse(whole) as Record<string, unknown> };
  switch (name) {
    case "exec":
      return { name, arguments: { command: whole } };
    case "db_query":
      return { name, arguments: { database: "shop", sql: whole.trim() } };
    case "http_get":
      return { name, arguments: { url: first } };
    case "read":
      return { name, arguments: parseReadArguments(first) };
    case "grep":
      return { name, arguments: parseGrepArguments(first) };
    case "write":
      return { name, arguments: { path: first, content: `${body}\n` } };
    case "send_message":
      return { name, arguments: { to: first, text: body } };
    case "edit": {
      const [oldText = "", newText = ""] = body.split("\n=====\n");
      return { name, arguments: { path: first, oldText, newText } };
    }
    default:
      throw new Error(
        `cannot read call at ${place}: tool "${name}" has no short form, give its arguments as JSON`,
      );
  }
}

function parseReadArguments(text: string): Record<string, unknown> {
  const match = /^(\S+) (\d+)\+(\d+)$/.exec(text);
  return match ? { path: match[1], offset: Number(match[2]), limit: Number(match[3]) } : { path: text };
}

function parseGrepArguments(text: string): Record<string, unknown> {
  const [pattern = "", path = "."] = text.split(" in ");
  return { pattern, path };
}
