/**
 * The kind of part that a message block becomes, in every dialect hosts write. Determined by the block's type alone, or by its members if
 * it has none; unknown blocks are `other`.
 */
import type { PartType } from "../model/message.ts";
import { firstString } from "./readable.ts";
import { isObject, type JsonObject } from "../text/json-object.ts";

const TEXT_TYPES = new Set(["text", "input_text", "output_text", "inputText", "outputText", "summary_text"]);
const REASONING_TYPES = new Set(["thinking", "think", "reasoning", "redacted_thinking", "reasoning_text"]);
const CALL_TYPES = new Set([
  "toolCall",
  "toolUse",
  "tool_use",
  "tool_call",
  "tool-call",
  "tool.call",
  "backend_tool_call",
  "function_call",
  "functionCall",
  "custom_tool_call",
  "server_tool_use",
  "mcp_tool_use",
]);
const RESULT_TYPES = new Set([
  "toolResult",
  "tool_result",
  "tool-result",
  "tool.result",
  "function_call_output",
  "functionResponse",
  "custom_tool_call_output",
]);
const IMAGE_TYPES = new Set(["image", "image_url", "input_image"]);
const FILE_TYPES = new Set(["file", "document", "input_file", "audio", "input_audio", "video", "resource"]);

/** The kind of part for a block's `type`. Blocks without a type are recognised by their members (Gemini). */
export function blockKind(block: JsonObject): PartType {
  const { type } = block;
  if (typeof type !== "string") return untypedKind(block);
  if (TEXT_TYPES.has(type)) return "text";
  if (REASONING_TYPES.has(type)) return "reasoning";
  if (CALL_TYPES.has(type)) return "tool_call";
  if (RESULT_TYPES.has(type) || type.endsWith("_tool_result")) return "tool_result";
  if (IMAGE_TYPES.has(type)) return "image";
  return FILE_TYPES.has(type) ? "file" : "other";
}

function untypedKind(block: JsonObject): PartType {
  if (typeof block["text"] === "string") return block["thought"] === true ? "reasoning" : "text";
  if (isObject(block["functionCall"])) return "tool_call";
  if (isObject(block["functionResponse"])) return "tool_result";
  const inline = block["inlineData"];
  if (isObject(inline)) return isImageType(firstString(inline, "mimeType")) ? "image" : "file";
  return "other";
}

const isImageType = (mimeType: string | undefined): boolean => mimeType?.startsWith("image/") ?? false;
