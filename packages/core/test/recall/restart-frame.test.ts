/** Text that our hooks handed to a host comes back in its transcript. The shapes are those that the hosts write; the words are ours. */
import { expect, test } from "vitest";
import { viewMessage } from "../../src/message/normalize.ts";
import { isRestartFrame, renderRestartFrame } from "../../src/model/restart-frame.ts";
import { readUserText } from "../../src/summarize/injected.ts";
import { longTalk, main, openArchive, say } from "./archive.ts";

const FRAME = renderRestartFrame(
  { "as-of": "2026-02-14 11:02 UTC" },
  "All of it: msg_1..msg_9\nDecided [msg_4]: the orchid key hangs behind the boiler",
);
const item = (role: string, ...texts: readonly string[]): object => ({
  timestamp: "2026-02-14T11:02:00Z",
  type: "response_item",
  payload: { type: "message", role, content: texts.map((text) => ({ type: "input_text", text })) },
});

test.each([
  ["as it is", FRAME, true],
  [
    "as Claude Code renders it",
    `<system-reminder>\nSessionStart hook additional context: ${FRAME}\n</system-reminder>`,
    true,
  ],
  ["as Gemini CLI writes it", `<hook_context>${FRAME}</hook_context>`, true],
  [
    "after /compact of Claude Code",
    `<local-command-stdout>Compacted (ctrl+o to see full summary)\nPreCompact [sh x PreCompact 2>/dev/null || true] completed successfully: ${FRAME}</local-command-stdout>`,
    true,
  ],
  ["with a user's words", `why does it say ${FRAME}`, false],
  ["with words behind it", `${FRAME}\nnow go on`, false],
  ["not closed", FRAME.replace("</lcm-restart>", ""), false],
  ["another tag", "<summary id=1>x</summary>", false],
])("a frame of ours and nothing else: %s", (_shape, text, isOurs) =>
  expect(isRestartFrame(text)).toBe(isOurs),
);

test("it is stored, and neither found nor folded unless asked for", async () => {
  await using archive = await openArchive();
  const messages = [
    say("said", "user", "The orchid key hangs behind the boiler."),
    ...longTalk("n", 12),
    { eventId: "own", message: item("developer", FRAME) },
    { eventId: "mixed", message: item("user", FRAME, "And the orchid pot?") },
    {
      eventId: "copy",
      message: {
        type: "api-request-blob",
        sessionId: "s1",
        message: { role: "system", content: [{ type: "text", text: `Tools.\n\n${FRAME}\n\nMore tools.` }] },
      },
    },
  ];
  await archive.engine.ingest({ session: main, messages });
  const asked = { session: main, pattern: "orchid", mode: "full_text", scope: "messages" } as const;
  const idsOf = async (more: object): Promise<string[]> =>
    (await archive.engine.grep({ ...asked, ...more })).hits.map(({ id }) => id).sort();
  expect(await idsOf({})).toEqual(["msg_1", "msg_15"]);
  expect(await idsOf({ pattern: "boiler" })).toEqual(["msg_1"]);
  expect(await idsOf({ includeRecall: true })).toEqual(["msg_1", "msg_14", "msg_15"]);
  expect((await archive.engine.verify()).problems).toEqual([]);
});

test("it is not what the user said", () => {
  expect(readUserText(`${FRAME}\nnow go on`)).toEqual({ text: "now go on", isNotice: false });
  expect(readUserText(FRAME).text).toBe("");
  const view = viewMessage(Buffer.from(JSON.stringify(item("user", FRAME, "x"))));
  expect(view.parts.map(({ toolName }) => toolName)).toEqual(["lcm_restart", undefined]);
});
