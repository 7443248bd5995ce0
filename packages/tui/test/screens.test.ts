/** The screens of `lcm tui` as people meet them: driven by keys on a virtual terminal, compared with what must be seen. */
import { chmodSync, statSync } from "node:fs";
import { afterEach, describe, expect, test } from "vitest";
import { fillPlain, openStage, makeTalk, MAIN, START, type Stage, type StageOptions } from "./stage.ts";

let stage: Stage;
const open = async (options?: StageOptions): Promise<Stage> => (stage = await openStage(options));
afterEach(() => stage.close());

/** Ids change with every archive. */
const hideIds = (screen: string): string =>
  screen
    .replaceAll(/sum_[0-9a-f]{16}/g, "sum_0000000000000000")
    .replaceAll(/file_[0-9a-f]{16}/g, "file_0000000000000000");

describe("conversations", () => {
  test("shows each with messages, summaries, tokens, last activity and health", async () => {
    const { look } = await open({ fill: fillPlain });
    expect(await look()).toMatchInlineSnapshot(`
      " lcm  Conversations                                                   1/1  live
        TITLE                          PROJECT      TOKENS LAST        HEALTH      ID
      ▸ step 0: the greenhouse sensor…               3,390 03-05 23:00 …            1




















       Enter messages   s graph   c context   f filter   o order   ? all keys  q quit"
    `);
  });

  test("narrows the list while one types, and Esc shows all again", async () => {
    const { press, write } = await open({
      fill: async (writer) => {
        for (const name of ["apple", "pear", "plum"]) {
          const session = { key: `agent:${name}`, id: name, owner: "main" };
          await writer.ingest({
            session,
            messages: [{ eventId: "e", message: { role: "user", content: name } }],
          });
        }
      },
    });
    await press("f");
    expect(await write("p")).toContain("plum");
    const narrowed = await write("ea");
    expect(narrowed).toContain("▸ pear");
    expect(narrowed).toContain("1/1");
    expect(narrowed).not.toContain("plum");
    expect(await write("x")).toContain("No conversation matches");
    await press("backspace", "enter");
    expect(await press("escape")).toContain("apple");
  });

  test("says so when nothing is stored", async () => {
    const { look } = await open({ fill: () => Promise.resolve() });
    expect(await look()).toContain("Nothing is stored yet");
  });
});

describe("messages", () => {
  test("opens at the newest, with the text of the chosen one below", async () => {
    const { press } = await open({ fill: fillPlain });
    expect(await press("enter")).toMatchInlineSnapshot(`
      " lcm  Conversations › step 0: the greenhouse sensor 0…            120/120  live
        120 messages, 0 summaries, 3,390 tokens in context; following
        2026-03-05 15:00 assistant      25  step 111: the greenhouse sensor 111 repor…
                   16:00 turn 29       113  4 messages, 3 h
                   16:00 user           25  step 112: the greenhouse sensor 112 repor…
                   17:00 assistant      46  step 113: the greenhouse sensor 113 repor…
                   17:00 tool           17  → read_file step-113.ts ⇒ const step = 11…
                   19:00 assistant      25  step 115: the greenhouse sensor 115 repor…
                   20:00 turn 30       113  4 messages, 3 h
                   20:00 user           25  step 116: the greenhouse sensor 116 repor…
                   21:00 assistant      46  step 117: the greenhouse sensor 117 repor…
                   21:00 tool           17  → read_file step-117.ts ⇒ const step = 11…
      ▸ 2026-03-05 23:00 assistant      25  step 119: the greenhouse sensor 119 repor…
      ── msg_120 · assistant · 2026-03-05 23:00 · 25 tokens · 159 B
      step 119: the greenhouse sensor 119 reported 22 degrees, so valve_119 was opened
      by Mara after lunch







       Enter read   { } turn   T turns only   s graph              ? all keys  q quit"
    `);
  });

  test("moves by row, by page, to both ends, and opens one message", async () => {
    const { press } = await open();
    await press("enter");
    expect(await press("g")).toMatch(/▸ 2026-03-01 00:00 turn 1/);
    expect(await press("j", "j", "down", "down")).toMatch(/▸ 2026-03-01 03:00 assistant/);
    expect(await press("k")).toMatch(/▸ 2026-03-01 01:00 tool/);
    expect(await press("pageDown")).toMatch(/▸ 2026-03-01 09:00 tool/);
    expect(await press("pageUp")).toMatch(/▸ 2026-03-01 01:00 tool/);
    expect(await press("G")).toMatch(/▸ 2026-03-05 23:00 assistant/);
    expect(await press("enter")).toContain("msg_120 · assistant · 2026-03-05 23:00");
    expect(await press("h")).toMatch(/▸ 2026-03-05 23:00 assistant/);
  });

  test("goes to a message by its id and to a time, and says what it does not know", async () => {
    const { press, write } = await open();
    await press("enter", ":");
    await write("msg_42");
    expect(await press("enter")).toContain("msg_42 · assistant · 2026-03-02 17:00");
    await press(":");
    await write("2026-03-04 12:30");
    expect(await press("enter")).toMatch(/▸ 2026-03-04 13:00/);
    await press(":");
    await write("someday");
    expect(await press("enter")).toContain("cannot read the time someday");
    await press(":");
    await write("msg_9999");
    expect(await press("enter")).toContain("msg_9999 is not in this conversation");
  });

  test("follows along while an agent writes, and stays where one is reading", async () => {
    const { press, writer, app, look } = await open();
    await press("enter");
    await writer.ingest({ session: MAIN, messages: makeTalk(3, 120) });
    await app.refresh();
    expect(await look()).toMatch(/▸ 2026-03-06 01:00 tool .* ⇒ const step = 12/);
    await press("g");
    await writer.ingest({ session: MAIN, messages: makeTalk(3, 123) });
    await app.refresh();
    const reading = await look();
    expect(reading).toMatch(/▸ 2026-03-01 00:00 turn 1/);
    expect(reading).toContain("126 messages");
  });

  test("shows the new words of a message that changes, and leaves the row one reads where it is", async () => {
    const { press, writer, app, look } = await open({ rows: 40 });
    await press("enter", "g", "j", "j", "j", "j", "j");
    const rowOf = (screen: string): number => screen.split("\n").findIndex((line) => line.startsWith("▸"));
    const before = rowOf(await look());
    const [, , , changed] = makeTalk(4);
    const message = { ...(changed?.message as object), content: "other words than before" };
    await writer.ingest({ session: MAIN, messages: [{ eventId: "e3", message }] });
    await app.refresh();
    const screen = await look();
    expect(screen).toMatch(/\[changed\] other words than before/);
    expect(rowOf(screen)).toBe(before);
  });
});

describe("graph", () => {
  test("opens from the coarsest summary down to a message, and closes again", async () => {
    const { press } = await open();
    const closed = await press("s");
    expect(closed).toMatch(/▸ \+ d\d +97 msg +\d+ tok {2}2026-03-01 – 03-05 {2}Goal, /);
    expect(closed).toMatch(/── sum_[0-9a-f]{16} · condensed/);
    expect(closed.search(/── sum_/)).toBeLessThan(closed.lastIndexOf("Goal, "));
    const opened = await press("enter", "down");
    expect(opened).toMatch(/▸ [├└]─ \+ d\d +\d+ msg/);
    let screen = opened;
    while (!/▸ [│├└─ ]+\+ d0/.test(screen) && !/▸ [│├└─ ]+− d0/.test(screen))
      screen = await press("l", "down");
    screen = await press("l", "down");
    expect(screen).toMatch(/▸ [│├└─ ]+msg_1 /);
    expect(await press("enter")).toContain("msg_1 · user · 2026-03-01 00:00");
    await press("escape");
    await press("h");
    expect(await press("h")).toMatch(/▸ [│├└─ ]+\+ d0/);
  });

  test("shows every summary at once, and the replaced ones on request", async () => {
    const { press } = await open({ rows: 60 });
    const closed = await press("s");
    const all = await press("e");
    expect(all.split(" tok  ").length).toBeGreaterThan(closed.split(" tok  ").length);
    expect(await press("x")).toContain("replaced");
  });
});

describe("context", () => {
  test("shows what each item costs and why it is there, for another budget too", async () => {
    const { press, write } = await open();
    expect(await press("c", "g")).toContain("opened: there is");
    await press("b");
    await write("3000");
    const whole = await press("enter", "g");
    expect(whole).toContain("whole: everything that is not folded fits");
    expect(whole).toMatch(/summary d\d +\d+ [█░]{6} +97 msg {2}Goal, /);
    expect(whole).toMatch(/── sum_[0-9a-f]{16} · .* · the whole cover fits/);
    await press("b");
    await write("700");
    const tight = await press("enter");
    expect(tight).toContain("of 700 tokens");
    expect(tight).toContain("tight: older parts are shown in less detail");
    await press("b");
    await write("much");
    expect(await press("enter")).toContain("must be a number of tokens");
  });

  test("shows the previous context: the text a summary was written after, and what that one was written after", async () => {
    const stage = await open();
    const { press, writer } = stage;
    const { items } = await writer.listSummaries({ conversationId: 1, limit: 500 });
    const byId = new Map(items.map((row) => [row.summaryId, row]));
    const chosen = items.find(({ previousId }) => byId.get(previousId ?? "")?.previousId);
    const given = byId.get(chosen?.previousId ?? "");
    const before = byId.get(given?.previousId ?? "");
    await chooseSummary(stage, chosen?.summaryId);
    const previous = await press("p");
    expect(previous).toContain(`previous context of ${chosen?.summaryId}`.slice(0, 30));
    expect(previous).toContain(`${chosen?.summaryId} · was given the text of ${given?.summaryId}`);
    for (const line of given?.content.split("\n").slice(0, 3) ?? [])
      expect(previous).toContain(line.slice(0, 60));
    expect(await press("p")).toContain(`was given the text of ${before?.summaryId}`);
    expect(await press("escape", "s")).toContain(`── ${given?.summaryId}`);
    expect(await press("escape", "escape", "escape", "p")).toContain("previous context of sum_");
  });

  test("says so where a summary was given no previous context", async () => {
    const stage = await open();
    const { items } = await stage.writer.listSummaries({ conversationId: 1, limit: 500 });
    await chooseSummary(stage, items.find(({ previousId }) => previousId === null)?.summaryId);
    expect(await stage.press("p")).toContain("no previous context");
    expect(await stage.press("p")).toContain("there is nothing before it");
  });

  test("shows the former context: what stood there before a summary was made", async () => {
    const { press, write } = await open();
    await press("c", "b");
    await write("3000");
    await press("enter", "g");
    const previous = await press("P");
    expect(previous).toContain("former context of step 0");
    expect(previous).toMatch(/before sum_[0-9a-f]{16} was made: \d+ items with/);
    expect(previous).toMatch(/▸ ◂ summary +\d+ [█░]{6} +Goal, /);
    expect(previous).toMatch(/now under sum_[0-9a-f]{16}/);
  });
});

describe("search", () => {
  test("finds words, marks where it looks, and opens a hit at its place", async () => {
    const { press, write, see } = await open();
    await press("/");
    await write("valve_37");
    await press("enter");
    const everywhere = await see(/\d hits?/);
    expect(everywhere).toContain("words in messages and summaries of all conversations");
    await press("tab");
    const found = await see(/words in messages of all[\s\S]*1 hit/);
    expect(found).toContain("valve_37");
    expect(found).toMatch(/── msg_38 · 2026-03-\d\d \d\d:\d\d · step 0: the greenhouse/);
    expect(await press("enter")).toContain("msg_38 · assistant");
  });

  test("of one conversation names it by its title", async () => {
    const { press, write, see } = await open();
    await press("enter", "/");
    await write("valve_37");
    await press("enter");
    await see(/words in messages and summaries of “step 0: the gre/);
  });

  test("goes to the last hit, which is loaded first", async () => {
    const { press, write, see } = await open();
    await press("/");
    await write("valve");
    await press("enter");
    await see(/\d+ hits?/);
    await press("tab");
    const some = await see(/words in messages of all[\s\S]*hits, 50 loaded/);
    const [, total = ""] = /(\d+) hits, 50 loaded/.exec(some) ?? [];
    await press("G");
    const all = await see(new RegExp(`${total}/${total}  live`));
    expect(all).not.toContain("loaded");
    expect(await press("g")).toContain(`1/${total}  live`);
  });

  test("takes a regular expression, and says what is wrong with one", async () => {
    const { press, write, see } = await open();
    await press("/");
    await write("valve_11[13]");
    await press("enter");
    await see("hit");
    await press("tab", "~");
    await see(/regular expression in messages of all[\s\S]*2 hits/);
    await press("/", "\u0015");
    await write("(((");
    await press("enter");
    await see(/cannot|missing|unterminated/i);
  });
});

test("spend and doctor say how things are", async () => {
  const { press, see } = await open();
  expect(await press("$")).toContain("No model was called in this time.");
  expect(await press("tab")).toContain("CONVERSATION");
  await press("escape", "D");
  expect(await see(/\d+ errors?, \d+ warnings?, \d+ notes?/)).toContain(
    "there is no backup beside the database",
  );
});

test.each([
  [80, 24],
  [40, 12],
])("the doctor fixes what is safe after a preview, at %d × %d", async (columns, rows) => {
  const { press, see, databasePath } = await open({ columns, rows });
  chmodSync(databasePath, 0o644);
  await press("D");
  const found = await see("f fixes those marked with +");
  expect(found).toMatch(/  \+ warning +others on/);
  expect(await press("j", "f")).toContain("What would be fixed. Nothing");
  expect(statSync(databasePath).mode & 0o777).toBe(0o644);
  await press("y");
  await see(/fixed 1 of 1/);
  expect(statSync(databasePath).mode & 0o777).toBe(0o600);
  await see(/0 errors, \d warnings?/);
  expect(await press("f")).toMatch(/nothing here can be fixed/);
});

test("every list says which of how many rows is chosen", async () => {
  const { press, see, terminal } = await open();
  const place = async (...keys: string[]): Promise<string | undefined> =>
    / (\d+\/\d+) {2}live/.exec((await press(...keys)).split("\n")[0] ?? "")?.[1];
  expect(await place()).toBe("1/1");
  expect(await place("enter")).toBe("120/120");
  expect(await place("g", "j", "j")).toBe("2/120");
  expect(await place("s", "e", "j")).toMatch(/^2\/\d+$/);
  expect(await place("r", "S")).toMatch(/^1\/\d+$/);
  expect(await place("escape", "c", "g")).toMatch(/^1\/\d+$/);
  // Nothing to choose from.
  expect(await place("F")).toBeUndefined();
  await press("escape", "escape", "escape", "escape", "D");
  await see("there is no backup");
  expect(await place("G")).toMatch(/^(\d+)\/\1$/);
  terminal.resize(40, 12);
  expect(await place("g")).toMatch(/^1\//);
});

test("keys that need a summary say so where none is chosen", async () => {
  const { press } = await open();
  expect(await press("d")).toContain("choose a summary first");
  expect(await press("enter", "r")).toContain("choose a summary first");
});

test("lists large files, and opens one a page at a time", async () => {
  const long = Array.from({ length: 30_000 }, (_, at) => `line ${at} of the long file`).join("\n");
  const { press } = await open({
    fill: async (writer) => {
      await writer.ingest({
        session: MAIN,
        messages: [{ eventId: "big", message: { role: "user", content: long } }],
      });
    },
  });
  const list = await press("F");
  expect(hideIds(list)).toMatch(/▸ file_0+ +\d+ kB/);
  const first = await press("enter");
  expect(first).toContain("line 0 of the long file");
  expect(first).toContain("n: more");
  const second = await press("n");
  expect(second).not.toContain("line 0 of the long file");
  expect(second).toMatch(/line \d+ of the long file/);
});

test("help can be read to its end in a small terminal", async () => {
  const { press } = await open({ rows: 10, columns: 40 });
  const first = await press("?");
  expect(first).toContain("messages");
  expect(first).not.toContain("quit at once");
  const last = await press("G");
  expect(last).toContain("read everything again");
  expect(last).toContain("quit at once");
  expect(await press("g")).toBe(first);
  expect(await press("x")).toContain("Conversations");
});

test("help names the keys of the screen one came from", async () => {
  const { press } = await open({ rows: 40 });
  await press("s");
  const help = await press("?");
  for (const words of ["dissolve", "rewrite", "repair", "previous context", "a page", "search", "quit"])
    expect(help).toContain(words);
  expect(await press("x")).toContain("graph of step 0");
});

/** Opens the graph with everything in it, and goes down to a summary. */
async function chooseSummary({ press }: Stage, summaryId: string | undefined): Promise<void> {
  await press("s", "x", "e");
  for (let screen = await press("g"); !screen.includes(`── ${summaryId}`); screen = await press("j"));
}

test("conversations are listed by time, project, agent or model", async () => {
  const { press } = await open({
    fill: async (writer) => {
      for (const [key, content] of [
        ["a", "the older one"],
        ["b", "the newer one"],
      ] as const)
        await writer.ingest({
          session: { ...MAIN, key, id: key },
          messages: [{ message: { role: "user", content, timestamp: START + (key === "b" ? 1 : 0) } }],
        });
    },
  });
  expect((await press("o")).split("\n")[2]).toContain("the older one");
  expect(await press("o")).toContain("ordered by project");
  expect(await press("o")).toContain("ordered by agent");
  expect(await press("o")).toContain("ordered by model");
  const screen = await press("o");
  expect(screen).toContain("newest first");
  expect(screen.split("\n")[2]).toContain("the newer one");
});
