/** What a tool call was called with, as a value, in whatever dialect the call is written. */

import type { PartView } from "../model/message.ts";

import { isJsonObject, parseLine } from "./format.ts";

/** The arguments of a call: usually an object; a text that is no JSON stays a text; undefined when there are none. */
export function readToolArguments(part: PartView, bytes: Uint8Array): unknown {
  const parsed = parseLine(Buffer.from(bytes.buffer, bytes.byteOffset + part.at, part.length));
  if (parsed.kind !== "entry") return undefined;
  const { entry } = parsed;
  const nested = entry["function"] ?? entry["functionCall"];
  const call = isJsonObject(nested) ? nested : entry;
  const given = call["arguments"] ?? call["input"] ?? call["args"];
  if (typeof given !== "string") return given;
  const inner = parseLine(Buffer.from(given));
  return inner.kind === "entry" ? inner.entry : given;
}
