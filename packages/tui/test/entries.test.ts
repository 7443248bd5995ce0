/** A conversation as it is read in the terminal: cards, reasoning, turns. */
import { openEngine } from "lossless-claw";
import type { Engine, MessageRow } from "@lossless/core";
import { makeTemporaryFolder } from "@lossless/testkit";
import { fc } from "@lossless/testkit/properties.ts";
import { afterEach, describe, expect, test } from "vitest";
import { toEntries, type LoadedMessage } from "../src/entries.ts";
import { MessageWindow } from "../src/message-window.ts";
import { MAIN, openStage, START, type Stage, type StageOptions } from "./stage.ts";

type Content = readonly object[] | string;
const call = (id: string, path: string): object => ({
  type: "toolCall",
  id,
  name: "read_file",
  arguments: { path },
});
const thought = (text: string): object => ({ type: "thinking", thinking: text });
const say = (text: string): object => ({ type: "text", text });
const answer = (id: string, text: string): { role: string; content: Content; toolCallId: string } => ({
  role: "toolResult",
  toolCallId: id,
  content: [say(text)],
});

async function store(
  writer: Engine,
  messages: readonly { readonly role: string; readonly content: Content }[],
): Promise<void> {
  await writer.ingest({
    session: MAIN,
    messages: messages.map((message, at) => ({
      eventId: `e${at}`,
      message: { ...message, timestamp: START + at * 60_000 },
    })),
  });
}

const WORK = [
  { role: "user", content: "look at both files" },
  {
    role: "assistant",
    content: [thought("which first?"), say("I read both."), call("a", "a.ts"), call("b", "b.ts")],
  },
  answer("b", "one\ntwo"),
  answer("a", "const a = 1;"),
  { role: "assistant", content: [thought("now I know")] },
  { role: "assistant", content: "Both are fine." },
  { role: "user", content: "thanks" },
  { role: "assistant", content: "You are welcome." },
];

describe("on the screen", () => {
  let stage: Stage;
  const open = async (options: StageOptions = {}): Promise<Stage> =>
    (stage = await openStage({ fill: (writer) => store(writer, WORK), ...options }));
  afterEach(() => stage.close());

  test("each call is a row with its own result, in the order of the calls; a short turn has no heading", async () => {
    const { press } = await open();
    const rows = (await press("enter"))
      .split("\n")
      .filter((line) => / 00:0\d /.test(line) && !line.startsWith("──"));
    expect(rows.map((line) => line.slice(18).replaceAll(/ +/g, " ").trim())).toEqual([
      expect.stringMatching(/^turn 1 \d+ 6 messages, 5 min$/),
      expect.stringMatching(/^user \d+ look at both files$/),
      expect.stringMatching(/^assistant \d+ I read both\.$/),
      expect.stringMatching(/^tool \d+ → read_file a\.ts ⇒ const a = 1;$/),
      expect.stringMatching(/^tool \d+ → read_file b\.ts ⇒ 2 lines$/),
      expect.stringMatching(/^assistant \d+ \[reasoning\] now I know$/),
      expect.stringMatching(/^assistant \d+ Both are fine\.$/),
      expect.stringMatching(/^user \d+ thanks$/),
      expect.stringMatching(/^assistant \d+ You are welcome\.$/),
    ]);
  });

  test("a card shows call and result, also as a whole", async () => {
    const { press } = await open();
    const pane = await press("enter", "g", "j", "j", "j");
    expect(pane).toMatch(/── msg_2 \+ msg_4 · assistant/);
    expect(pane).toMatch(/\[tool call: read_file\]\npath: a\.ts\n\n\[tool result.*\]\nconst a = 1;/);
    const whole = await press("enter");
    expect(whole).toMatch(/path: a\.ts\s+\[tool result.*\]\s+const a = 1;/);
    expect(whole).not.toContain("b.ts");
  });

  test("reasoning is folded where something was said, until x opens it", async () => {
    const { press } = await open();
    expect(await press("enter", "g", "j", "j")).toMatch(/\[reasoning: 1 line; x opens it\]\nI read both\./);
    expect(await press("x")).toContain("which first?");
    expect(await press("x")).not.toContain("which first?");
  });

  test("a turn is read as a whole: what was said in full, calls as a line each", async () => {
    const { press } = await open();
    const pane = await press("enter", "g");
    expect(pane).toMatch(/── turn 1 · 6 messages · \d+ tokens · 5 min/);
    const whole = await press("enter");
    expect(whole).toMatch(/→ read_file a\.ts ⇒ const a = 1;\n {2}→ read_file b\.ts ⇒ 2 lines/);
    expect(whole).toContain("Both are fine.");
    expect(whole).not.toContain("thanks");
  });

  test("only turns are listed on request, and { and } go from one to the other", async () => {
    const { press } = await open();
    const turns = await press("enter", "T");
    expect(turns).toMatch(/ 2\/2 {2}live/);
    expect(turns).toContain("▸ 2026-03-01 00:06 user");
    expect(turns).not.toContain("00:07");
    expect(await press("k")).toMatch(/▸ 2026-03-01 00:00 user +\d+ +look at both files/);
    expect(await press("T")).toMatch(/▸ 2026-03-01 00:00 user/);
    expect(await press("}")).toMatch(/▸ 2026-03-01 00:06 user/);
    expect(await press("}")).toContain("this is the last turn");
    expect(await press("{")).toMatch(/▸ 2026-03-01 00:00 turn 1/);
    expect(await press("{")).toContain("this is the first turn");
  });

  test("a conversation in which nobody asked says so", async () => {
    const { press } = await open({
      fill: (writer) => store(writer, [{ role: "assistant", content: "hello" }]),
    });
    expect(await press("enter", "T")).toContain("it has no turns");
  });

  test("a hit in a result opens its card, with the hit in view", async () => {
    const lines = Array.from({ length: 60 }, (_, at) => `line ${at}`).join("\n");
    const { press, write, see } = await open({
      fill: async (writer) => {
        await store(writer, [
          { role: "user", content: "search it" },
          { role: "assistant", content: [call("c", "c.ts")] },
          answer("c", `${lines}\nthe needle is here\n${lines}`),
        ]);
        await writer.flushIndex();
      },
    });
    await press("/");
    await write("needle");
    await press("enter");
    await see("1 hit");
    const list = await press("enter");
    expect(list).toMatch(/▸ .* → read_file c\.ts ⇒ 121 lines/);
    expect(list).toContain("the needle is here");
    expect(await press("enter")).toContain("the needle is here");
  });
});

test("a call and its result are one row, however far apart pages begin and end", async () => {
  using folder = makeTemporaryFolder();
  const engine = await openEngine({ database: folder.file("lcm.db"), thread: false });
  const pairs = Array.from({ length: 300 }, (_, at) => [
    { role: "assistant", content: [call(`c${at}`, `${at}.ts`)] },
    answer(`c${at}`, `text ${at}`),
  ]).flat();
  await store(engine, pairs);
  for (const from of [0, 301, 302, 599]) {
    const window = new MessageWindow(engine, {}, 1);
    const message = await engine.readMessage({ messageId: from + 1 });
    await window.openAt(message?.row ?? { position: 0, seq: 0 }, 20);
    expect(window.selected?.line).toBe(`${Math.floor(from / 2)}.ts`);
    await window.move({ kind: "by", rows: -1_000 }, 20);
    expect(window.rows.slice(0, 3).map(({ line, outcome }) => [line, outcome])).toEqual([
      ["0.ts", "text 0"],
      ["1.ts", "text 1"],
      ["2.ts", "text 2"],
    ]);
    await window.move({ kind: "by", rows: 123 }, 20);
    expect(window.selected?.line).toBe("123.ts");
    expect(window.rows.filter(({ kind }) => kind !== "call")).toEqual([]);
  }
  await engine.close();
});

test("nothing that a message holds is left out, and nothing is shown twice", () => {
  const part = fc.record({
    type: fc.constantFrom(
      "text" as const,
      "reasoning" as const,
      "tool_call" as const,
      "tool_result" as const,
    ),
    toolCallId: fc.constantFrom("a", "b", null),
    isBlank: fc.boolean(),
  });
  const message = fc.record({
    parts: fc.array(part, { maxLength: 5 }),
    role: fc.constantFrom("user", "assistant"),
  });
  fc.assert(
    fc.property(fc.array(message, { maxLength: 12 }), (drawn) => {
      const messages = drawn.map(({ parts, role }, at): LoadedMessage => {
        const row = {
          messageId: at,
          seq: at,
          position: at,
          role,
          tokens: 1,
          hidden: [],
        } as unknown as MessageRow;
        return {
          id: at,
          row,
          bare: "",
          parts: parts.map((one, ordinal) => ({
            ...one,
            isBlank: one.isBlank && (one.type === "text" || one.type === "reasoning"),
            ordinal,
            isError: false,
            head: "",
            line: "x",
            change: "",
          })),
        };
      });
      const entries = toEntries(messages).filter(({ kind }) => kind !== "turn");
      const shown = entries.flatMap(({ row, ordinals, result }) => [
        ...(ordinals ?? []).map((ordinal) => `${row.messageId}.${ordinal}`),
        ...(result === null ? [] : [`${result.row.messageId}.${result.ordinal}`]),
      ]);
      expect(new Set(shown).size).toBe(shown.length);
      const full = messages.flatMap(({ id, parts }) =>
        parts.filter((one) => !one.isBlank).map(({ ordinal }) => `${id}.${ordinal}`),
      );
      expect(full.filter((name) => !shown.includes(name))).toEqual([]);
      expect(entries.reduce((sum, { tokens }) => sum + tokens, 0)).toBe(messages.length);
    }),
  );
});
