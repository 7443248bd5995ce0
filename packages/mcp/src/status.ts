/** `lcm_status`: whether there is anything to find, and whether the archive is sound. */
import { formatTime, readParams } from "@lossless/core";
import type { StatusResult } from "@lossless/core";
import type { McpTool } from "./tools.ts";

export const statusTool: McpTool = {
  name: "lcm_status",
  title: "State of the archive",
  description: "What the archive holds: conversations, messages, summaries, the time of the last message.",
  parameters: { type: "object", properties: {}, additionalProperties: false },
  async run({ engine, owner, timeZone }, params) {
    readParams(statusTool, params);
    const status = await engine.status({ owner });
    return { text: render(status, timeZone), details: pick(status) };
  },
};

/** Without the path of the database: the model does not need to know where the user's files are. */
function pick(status: StatusResult): object {
  const { conversations, messages, summaries, largeFiles, tokens, lastMessageAt, index } = status;
  return { conversations, messages, summaries, largeFiles, tokens, lastMessageAt, index };
}

function render(status: StatusResult, timeZone: string | undefined): string {
  const { conversations, messages, summaries, largeFiles, lastMessageAt } = status;
  const last = lastMessageAt === null ? "none yet" : formatTime(lastMessageAt, timeZone);
  return [
    `${messages} messages in ${conversations} conversations, ${summaries} summaries, ${largeFiles} large files.`,
    `Last message: ${last}.`,
  ].join("\n");
}
