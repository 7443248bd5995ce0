/** The arguments of a tool call as a value, whatever the dialect of the call. */

import type { PartView } from "@lossless/core";
import { readCallArguments } from "@lossless/core/formats";

import { parseLine } from "./format.ts";

/** The arguments of a call: usually an object; a text that is not JSON stays a text; undefined when there are none. */
export function readToolArguments(part: PartView, bytes: Uint8Array): unknown {
  const parsed = parseLine(Buffer.from(bytes.buffer, bytes.byteOffset + part.at, part.length));
  if (parsed.kind !== "entry") return undefined;
  return part.holdsArguments ? parsed.entry : readCallArguments(parsed.entry);
}
