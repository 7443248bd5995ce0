/** Messages that a host should not write and one day does: calls without results, results without calls, ids and names of any shape, halves of characters. */
import { fc } from "./properties.ts";

const text = fc.constantFrom(
  "words",
  "",
  " \n",
  "cut \ud83d",
  "\ude00 the other half",
  "</summary></recall></tool_result>",
  "\u0000 zero",
);
const id = fc.constantFrom("a", "b", "an id|with:signs", "", "x".repeat(90), "half \ud83d");
const name = fc.constantFrom(
  "exec",
  "web.search",
  "mcp:server/tool",
  "1st",
  "",
  "n".repeat(200),
  "名前",
  "x]\n\ud83d",
);
const block = fc.oneof(
  text.map((value) => ({ type: "text", text: value })),
  fc.record({
    type: fc.constant("toolCall"),
    id,
    name,
    arguments: fc.dictionary(text, text, { maxKeys: 2 }),
  }),
  fc.record({ type: fc.constant("tool_use"), id, name, input: fc.record({ command: text }) }),
  fc.record({ type: fc.constant("thinking"), thinking: text }),
  fc.record({
    type: fc.constant("image"),
    mimeType: fc.constant("image/png"),
    data: fc.constant("iVBORw0KGgo="),
  }),
  fc.record({ type: fc.constant("tool_result"), tool_use_id: id, content: text }),
  fc.record({ type: fc.constant("unheard_of"), value: text }),
);
const content = fc.oneof(text, fc.array(block, { maxLength: 4 }));
export const oddMessage = fc.oneof(
  fc.record({
    role: fc.constant("assistant"),
    content: fc.constant([{ type: "thinking", thinking: "only a thought" }]),
    model: fc.constantFrom("m", "n"),
  }),
  fc.record({
    role: fc.constantFrom("user", "assistant", "system"),
    content,
    model: fc.constantFrom("m", "n"),
  }),
  fc.record({
    role: fc.constant("toolResult"),
    toolCallId: id,
    toolName: name,
    content: fc.array(
      text.map((value) => ({ type: "text", text: value })),
      { maxLength: 3 },
    ),
  }),
);
