/** Our block at the end of a TOML file, between two marks. Everything else in the file keeps its bytes. */
import { taken } from "./taken.ts";

export interface BlockEntry {
  readonly kind: "block";
  /** The table it defines, which must not exist elsewhere in the file. */
  readonly table: readonly [group: string, name: string];
  readonly lines: readonly string[];
}

const BEGIN = "# lossless-claw, written by lcm setup";
const END = "# lossless-claw, end";
/** Earlier versions named the agent on the first line. */
const BLOCK = new RegExp(`\\n?${BEGIN}[^\\n]*\\n[\\s\\S]*?${END}\\n?`, "u");

export function addBlock(text: string | null, { table, lines }: BlockEntry, path: string): string {
  const block = [BEGIN, `[${table.join(".")}]`, ...lines, END, ""].join("\n");
  const others = removeBlock(text ?? "");
  if (isTaken(others, table)) throw taken(path, table[1]);
  if (text?.includes(block) === true) return text;
  return `${others}${others === "" ? "" : "\n"}${block}`;
}

export const removeBlock = (text: string): string => text.replace(BLOCK, "");

/** Whether the file already has the table, in any notation: the agent would reject a file that has it twice. */
function isTaken(text: string, [group, name]: BlockEntry["table"]): boolean {
  const ours = new RegExp(`^${group}(?:=|\\.${name}(?:$|[.=]))`, "u");
  let table = "";
  for (const line of text.split("\n")) {
    const plain = line.replace(/["'\s]/gu, "");
    const header = /^\[([^[\]]*)\]/u.exec(plain)?.[1];
    table = header ?? table;
    const key = header ?? `${table}${table === "" ? "" : "."}${plain}`;
    if (ours.test(key)) return true;
  }
  return false;
}
