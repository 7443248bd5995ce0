/**
 * A dictionary for compressing short bodies: the shapes that agents' transcripts repeat on every line (member names, block types, usage
 * reports). It is part of the program, not of the database, so that messages share no stored byte.
 *
 * Invariant: a published version never changes, because stored bodies can only be read with the version they were written with.
 */
import { Buffer } from "node:buffer";

/** Rare shapes first, common ones last: nearer matches are cheaper. */
const VERSION_1 = [
  `{"type":"session","version":3,"id":"","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/home/user/"}`,
  `{"type":"file-history-snapshot","messageId":"","snapshot":{"messageId":"","trackedFileBackups":{},"timestamp":""},"isSnapshotUpdate":false}`,
  `{"type":"summary","summary":"","leafUuid":""}{"type":"queue-operation","operation":"enqueue","content":""}`,
  `{"type":"model_change","provider":"anthropic","modelId":"claude-"}{"type":"thinking_level_change","thinkingLevel":"off"}`,
  `{"type":"custom","customType":"","data":{}}{"type":"compaction","summary":"","firstKeptEntryId":"","tokensBefore":}`,
  `"subtype":"compact_boundary","content":"Conversation compacted","isMeta":false,"level":"info","compactMetadata":{"trigger":"auto","preTokens":}`,
  `"hookEvent":"PostToolUse","hookName":"PostToolUse:","command":"","toolUseID":"","parentToolUseID":"","type":"progress","data":{"type":"hook_progress",`,
  `"source":{"type":"base64","media_type":"image/png","data":"","mimeType":"image/png"}`,
  `"structuredPatch":[{"oldStart":,"oldLines":,"newStart":,"newLines":,"lines":[" ","-","+"]}],"userModified":false,"replaceAll":false`,
  `"todos":[{"content":"","status":"in_progress","activeForm":""},{"content":"","status":"completed","activeForm":""},{"content":"","status":"pending","activeForm":""}],"oldTodos":[],"newTodos":[]`,
  `The file has been updated successfully. Here's the result of running \`cat -n\` on a snippet of the edited file:\\n`,
  `"toolUseResult":{"type":"text","file":{"filePath":"","content":"","numLines":,"startLine":1,"totalLines":}}`,
  `"toolUseResult":{"filePath":"","oldString":"","newString":"","originalFile":""`,
  `"toolUseResult":{"stdout":"","stderr":"","interrupted":false,"isImage":false}`,
  `"toolUseResult":{"mode":"content","filenames":[],"content":"","numFiles":,"numLines":}`,
  `{"role":"user","content":[{"type":"text","text":""}],"timestamp":17}`,
  `"api":"openai-completions","provider":"openai","model":"gpt-","api":"openai-responses","provider":"openai"`,
  `"usage":{"input":,"output":,"cacheRead":,"cacheWrite":,"totalTokens":,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}}`,
  `{"role":"assistant","content":[{"type":"thinking","thinking":"","thinkingSignature":""},{"type":"toolCall","id":"toolu_01","name":"bash","arguments":{"command":""}}],"api":"anthropic-messages","provider":"anthropic","model":"claude-","stopReason":"toolUse","timestamp":17}`,
  `{"role":"toolResult","toolCallId":"toolu_01","toolName":"","content":[{"type":"text","text":""}],"details":{},"isError":false,"timestamp":17}`,
  `{"type":"message","id":"","parentId":"","timestamp":"2026-","message":{"role":"`,
  `"message":{"role":"user","content":[{"tool_use_id":"toolu_01","type":"tool_result","content":"","is_error":false}]},"uuid":"`,
  `{"type":"tool_result","tool_use_id":"toolu_01","content":[{"type":"text","text":"`,
  `"stop_reason":"tool_use","stop_reason":"end_turn","stop_reason":null,"stop_sequence":null,`,
  `"usage":{"input_tokens":,"cache_creation_input_tokens":,"cache_read_input_tokens":,"cache_creation":{"ephemeral_5m_input_tokens":,"ephemeral_1h_input_tokens":0},"output_tokens":,"service_tier":"standard"}},"requestId":"req_011C`,
  `"caller":{"type":"direct"}`,
  `"content":[{"type":"thinking","thinking":"","signature":"E`,
  `"content":[{"type":"tool_use","id":"toolu_01","name":"Bash","input":{"command":"","description":"`,
  `"name":"Edit","input":{"file_path":"/","old_string":"","new_string":"`,
  `"name":"Read","input":{"file_path":"/","offset":,"limit":`,
  `"name":"Grep","input":{"pattern":"","path":"/","output_mode":"content","-n":true`,
  `"content":[{"type":"text","text":"`,
  `"version":"2.0.","gitBranch":"main","slug":"","type":"user","type":"assistant","message":{"model":"claude-opus-4-","id":"msg_01","type":"message","role":"assistant",`,
  `,"timestamp":"2026-01-01T00:00:00.000Z","uuid":"","sourceToolAssistantUUID":"`,
  `{"parentUuid":"","isSidechain":false,"userType":"external","cwd":"/","sessionId":"`,
];

export const DICTIONARIES: readonly Buffer[] = [Buffer.from(VERSION_1.join("\n"))];
