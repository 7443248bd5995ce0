/** The rows of a message's parts: type and place of each, without text. Payloads that were cut out come behind the others. */
import type { DerivedMessage } from "../store.ts";
import type { Connection } from "./connection.ts";

export const INSERT_PART = `
  INSERT INTO message_parts (message_id, ordinal, type, at, length, tool_call_id, tool_name, file_id, encoding)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`;

/** Where a payload was cut out, and the file that holds it now. */
export interface PayloadPart {
  readonly at: number;
  readonly length: number;
  readonly fileId: string;
  readonly encoding: string;
}

export function insertParts(
  connection: Connection,
  messageId: number,
  parts: DerivedMessage["parts"],
  payloads: readonly PayloadPart[],
): void {
  let ordinal = 0;
  for (const { type, at, length, toolCallId = null, toolName = null } of parts)
    connection.run(INSERT_PART, messageId, ordinal++, type, at, length, toolCallId, toolName, null, null);
  for (const { at, length, fileId, encoding } of payloads)
    connection.run(INSERT_PART, messageId, ordinal++, "payload", at, length, null, null, fileId, encoding);
}
