/** The Gemini CLI's sessions as logs of patches: what is in force is shown, all of it is kept. */
import { appendFileSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeTemporaryDirectory } from "@lossless/testkit";
import { openTestEngine, readStoredLines } from "@lossless/testkit/session-archive.ts";
import { expect, test } from "vitest";
import { importTranscript } from "../src/transcript/import.ts";

const HEADER = { sessionId: "g1", projectHash: "x", startTime: "2026-01-01T00:00:00Z", kind: "main" };
const touch = { $set: { lastUpdated: "2026-01-01T00:00:09Z" } };
const says = (id: string, type: "user" | "gemini", content: string, more: object = {}): object => ({
  id,
  timestamp: "2026-01-01T00:00:01Z",
  type,
  content,
  ...more,
});
const toText = (lines: readonly object[]): string =>
  lines.map((line) => `${JSON.stringify(line)}\n`).join("");

const FIRST = [
  HEADER,
  says("a", "user", "Where is the heron?"),
  touch,
  says("b", "gemini", "Looking.", { model: "flash" }),
  touch,
  says("b", "gemini", "Looking. In the reeds.", { model: "flash", tokens: { total: 3 } }),
];
const REWOUND = [
  says("c", "user", "And the stork?"),
  touch,
  says("d", "gemini", "On the roof."),
  { $rewindTo: "c" },
];
const LAST = [
  says("e", "user", "And the crane?"),
  { $set: { messages: [says("s", "user", "short")], summary: "Birds" } },
  says("f", "gemini", "In the field."),
];

test("a message written again is shown in its last state, what was taken back is hidden, and every line is kept", async () => {
  const folder = makeTemporaryDirectory();
  const whole = join(folder, "app/chats/session-1.jsonl");
  mkdirSync(join(folder, "app/chats"), { recursive: true });
  writeFileSync(join(folder, "app/.project_root"), "/srv/app");
  for (const steps of [
    [[...FIRST, ...REWOUND, ...LAST]],
    [FIRST.slice(0, 4), FIRST.slice(4), REWOUND, LAST],
  ]) {
    const engine = await openTestEngine();
    writeFileSync(whole, "");
    let conversationId: number | null = null;
    for (const lines of steps) {
      appendFileSync(whole, toText(lines));
      ({ conversationId } = await importTranscript({ engine, path: whole }));
    }
    const stored = await readStoredLines(engine, conversationId ?? 0);
    expect(stored.map(({ text }) => `${text}\n`).join("")).toBe(toText([...FIRST, ...REWOUND, ...LAST]));
    const { items } = await engine.listMessages({ conversationId: conversationId ?? 0, limit: 50 });
    const shown = items.filter(({ hidden }) => hidden.length === 0).map(({ eventId }) => eventId);
    expect(shown.map((id) => id[0])).toEqual(["a", "b", "e", "f"]);
    expect(shown[1]).not.toBe("b");
    expect(await importTranscript({ engine, path: whole })).toMatchObject({ imported: 0, revisions: 0 });
    const row = await engine.readConversation({ conversationId: conversationId ?? 0 });
    expect(row).toMatchObject({ agent: "gemini-cli", project: "/srv/app", title: "Birds", model: "flash" });
    expect((await engine.verify()).problems).toEqual([]);
  }
});
