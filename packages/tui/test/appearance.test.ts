/** How the terminal UI behaves as a guest in a terminal: sizes, colours, hostile text, and leaving. */
import { fc } from "@lossless/testkit/properties.ts";
import { afterEach, describe, expect, test } from "vitest";
import { displayWidth } from "@lossless/core/doors";
import { MAIN, openStage, type Stage, type StageOptions } from "./stage.ts";

let stage: Stage;
const open = async (options?: StageOptions): Promise<Stage> => (stage = await openStage(options));
afterEach(() => stage.close());

/** Ways into every screen, from the first. */
const SCREENS: readonly (readonly string[])[] = [
  [],
  ["enter"],
  ["s"],
  ["s", "e"],
  ["c"],
  ["p"],
  ["F"],
  ["$"],
  ["D"],
  ["s", "d"],
  ["s", "r"],
  ["R"],
  ["?"],
  ["/", "v", "enter"],
];

describe("sizes", () => {
  test("every screen fits 80×24, and any other size after a resize", async () => {
    const { press, app, terminal, look } = await open();
    for (const keys of SCREENS) {
      await press(...keys);
      for (const [columns, rows] of [
        [80, 24],
        [200, 60],
        [40, 10],
        [20, 5],
        [2, 1],
        [80, 24],
      ] as const) {
        terminal.resize(columns, rows);
        await look();
        const lines = app.render();
        expect(lines.length, `${keys.join(" ")} at ${columns}×${rows}`).toBe(rows);
        for (const line of lines)
          expect(displayWidth(line), JSON.stringify(line)).toBeLessThanOrEqual(columns);
      }
      await press("escape", "escape", "escape", "escape");
    }
  });

  test("what is typed can be seen in 40 columns, however long the question is", async () => {
    const { press, write } = await open({ columns: 40, rows: 12 });
    await press("enter", ":");
    expect((await write("msg_42")).split("\n").at(-1)).toContain("go to: msg_42▏");
  });

  test("keeps the chosen row in sight when the terminal shrinks", async () => {
    const { press, terminal, look } = await open({ rows: 50 });
    await press("enter", "g");
    for (let at = 0; at < 20; at++) await press("j");
    expect(await look()).toMatch(/▸ 2026-03-01 16:00/);
    terminal.resize(80, 12);
    expect(await look()).toMatch(/▸ 2026-03-01 16:00/);
  });
});

const SGR = new RegExp(String.raw`${"\u001B"}\[([\d;]*)m`, "g");

describe("colours", () => {
  test("roles and the chosen row are coloured where colours are wanted", async () => {
    const { press, terminal } = await open({ isColoured: true });
    await press("enter");
    expect(terminal.written).toContain("\u001B[32massistant");
    expect(terminal.written).toContain("\u001B[7m▸");
  });

  test("without colours nothing but resets is sent, and what is chosen is marked all the same", async () => {
    const { press, terminal } = await open({ isColoured: false });
    for (const keys of SCREENS) await press(...keys, "escape", "escape", "escape", "escape");
    const codes = new Set([...terminal.written.matchAll(SGR)].map(([, code]) => code));
    expect([...codes].filter((code) => code !== "0" && code !== "")).toEqual([]);
    expect(await press("enter")).toContain("▸");
  });
});

const HOSTILE = [
  "\u001B]0;owned\u0007title",
  "\u001B[2Jcleared",
  "\u009B2Jcleared with C1",
  "\u001B]52;c;b3duZWQ=\u0007clipboard",
  "\u202Edesrever\u202C",
  "\u001B_Gimage\u001B\\",
  "\u001B_pi:c\u0007cursor",
  "bell\u0007 back\u0008 return\r form\u000C",
  "wide 漢字漢字 👩‍👩‍👧‍👦 é",
];

describe("hostile text", () => {
  test("drives nothing: what was stored is shown, and only the program's own sequences reach the terminal", async () => {
    const { press, terminal, see } = await open({
      isColoured: true,
      fill: async (writer) => {
        const session = { key: `agent:\u001B[31mred\u0007`, id: "h", owner: "main" };
        const messages = HOSTILE.map((text, at) => ({
          eventId: `h${at}`,
          message: { role: "user", content: `${text} end ${at}` },
        }));
        await writer.ingest({ session, messages });
      },
    });
    await press("enter", "g");
    for (const _ of HOSTILE) await press("enter", "escape", "j");
    await press("escape", "escape", "/", "e", "n", "d", "enter");
    await see("hit");
    await press("escape", "c", "g", "j", "j", "enter");
    for (const sent of [
      "\u001B]0;",
      "\u001B]52",
      "\u009B",
      "\u202E",
      "\u001B_",
      "\u0008",
      "\u000C",
      "\u001B[31mred",
    ])
      expect(terminal.written.includes(sent), JSON.stringify(sent)).toBe(false);
    expect(terminal.written).toContain("␛[2Jcleared");
  });

  test("no text makes a line wider than the screen", async () => {
    const texts = fc.array(fc.string({ unit: "binary", maxLength: 60 }), { minLength: 1, maxLength: 6 });
    const { press, app, writer } = await open({ columns: 40, rows: 16 });
    let number = 0;
    await press("enter");
    await fc.assert(
      fc.asyncProperty(texts, async (lines) => {
        number += 1;
        const message = { role: "user", content: lines.join("\n").toWellFormed() };
        await writer.ingest({ session: MAIN, messages: [{ eventId: `x${number}`, message }] });
        await app.refresh();
        await press("G");
        for (const line of app.render()) expect(displayWidth(line)).toBeLessThanOrEqual(40);
      }),
      { numRuns: 40 },
    );
  });
});

describe("leaving", () => {
  test("q and Ctrl-C end the program from any screen", async () => {
    const { press, app, ui, terminal } = await open();
    await press("s", "q");
    await app.ended;
    expect(terminal.screen).toBe("alternate");
    ui.stop();
    await terminal.look();
    expect(terminal.screen).toBe("normal");
    expect((await terminal.look()).join("").trim()).toBe("");
    expect(terminal.written.endsWith("\u001B[?25h\u001B[?2026l")).toBe(true);
  });

  test("Ctrl-C is heard while a line is typed", async () => {
    const before = process.exitCode;
    const { press, app } = await open();
    await press("/", "ctrl+c");
    await app.ended;
    expect(process.exitCode).toBe(130);
    process.exitCode = before;
  });

  test("a failure of the program is not swallowed", async () => {
    const { press, app } = await open();
    app.archive.engine.readGraph = () => Promise.reject(new Error("a bug"));
    const ended = expect(app.ended).rejects.toThrow("a bug");
    await press("s");
    await ended;
  });

  test("what cannot be done is said, and the program goes on", async () => {
    const { press, app, look } = await open();
    await app.archive.engine.close();
    await press("s");
    expect(await look()).toContain("closed");
    expect(await look()).toContain("Conversations");
  });
});
