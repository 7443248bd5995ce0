/** How messages and summaries are read: Markdown as styles, the hit of a search in view and marked, days written once. */
import { stripVTControlCharacters } from "node:util";
import { fc } from "@lossless/testkit/properties.ts";
import { displayWidth, makePrintable } from "@lossless/core/doors";
import { afterEach, describe, expect, test } from "vitest";
import { toMarkdownLines } from "../src/markdown.ts";
import { createPaint } from "../src/paint.ts";
import { renderRowColumns } from "../src/row-columns.ts";
import { markWith } from "../src/sought.ts";
import { toTextLines, WrappedText } from "../src/wrapped-text.ts";
import { MAIN, openStage, type Stage, type StageOptions } from "./stage.ts";

const paint = createPaint(true);
const show = (text: string, columns = 60, colours = paint): readonly string[] =>
  new WrappedText(toMarkdownLines(text, colours), columns).read(0, 100);

describe("Markdown", () => {
  test("headings, emphasis, code and links lose their signs and get a style", () => {
    expect(show("# Plan\nUse **bold**, *soft* and `run()`; see [docs](https://x.org/a).")).toEqual([
      paint.heading("Plan"),
      `Use ${paint.title("bold")}, ${paint.emphasis("soft")} and ${paint.code("run()")}; see ${paint.name("docs")}${paint.faint(" (https://x.org/a)")}.`,
    ]);
  });

  test("what does not fit into an item goes on below its text", () => {
    expect(show("- [x] one two three four\n12. five six", 14).map(stripVTControlCharacters)).toEqual([
      "• ☑ one two",
      "    three four",
      "12. five six",
    ]);
  });

  test("code is shown as it is, and a diff by its signs", () => {
    const text = "```ts\nconst a = **b**;\n# no heading\n```\n```diff\n+new\n-old\n```";
    expect(show(text).filter((_, at) => [1, 2, 5, 6].includes(at))).toEqual([
      paint.code("const a = **b**;"),
      paint.code("# no heading"),
      paint.good("+new"),
      paint.bad("-old"),
    ]);
  });

  test("names with underscores, globs and products are no emphasis", () => {
    const text = "snake_case_name, *.ts and *.js, 2 * 3 * 4, __init__.py";
    expect(show(text).map(stripVTControlCharacters)).toEqual([text]);
  });

  const table =
    "| Store | Time | For |\n|:--|--:|:-:|\n| **SQLite** | 12 ms | one machine and one file that is copied |\n| 漢字 \\| b | 140 ms |";
  const plain = (text: string, columns: number): string[] =>
    show(text, columns).map(stripVTControlCharacters);

  test("a table fits the pane: cells are wrapped by what they take on the screen", () => {
    expect(plain(`before\n${table}\nafter`, 44)).toEqual([
      "before",
      "Store    │   Time │           For",
      "─────────┼────────┼─────────────────────────",
      "SQLite   │  12 ms │ one machine and one file",
      "         │        │      that is copied",
      "漢字 | b │ 140 ms │ ",
      "after",
    ]);
    expect(show(table, 80)[2]).toContain(paint.title("SQLite"));
    expect(plain(table, 80)).toHaveLength(4);
    expect(show(table, 80, createPaint(false))[2]).toMatch(/^\*\*SQLite\*\* │ +12 ms │ one machine/);
  });

  test("in a narrow pane each cell of a table has a line, and what is no table stays as it is", () => {
    expect(plain(table, 40)).toEqual([
      "Store: SQLite",
      "Time: 12 ms",
      "For: one machine and one file that is",
      "  copied",
      "",
      "Store: 漢字 | b",
      "Time: 140 ms",
      "For: ",
    ]);
    expect(plain("| one long head | another |\n|---|---|", 20)).toEqual(["one long head", "another"]);
    for (const text of ["a | b\nc | d", "```\n| a | b |\n|---|---|\n```", "a | b\n---"])
      expect(plain(text, 40)).toEqual(text.split("\n"));
  });

  test("without colour everything stands as it was written", () => {
    const text = "# Plan\n- **one** `two`";
    expect(show(text, 60, createPaint(false))).toEqual(text.split("\n"));
  });

  test("no text sends anything but styles, or makes a line too wide", () => {
    const pieces = fc.constantFrom(
      "# ",
      "- ",
      "**",
      "*",
      "_",
      "`",
      "```\n",
      "> ",
      "[a](b)",
      "|",
      "\n|a|b|\n|-|:-:|\n",
      "\n",
      "\u001B[2J",
      " 漢 ",
      "word ",
    );
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 40 }), fc.integer({ min: 6, max: 30 }), (parts, columns) => {
        for (const line of show(parts.join(""), columns)) {
          expect(displayWidth(line)).toBeLessThanOrEqual(columns);
          expect(makePrintable(stripVTControlCharacters(line))).toBe(stripVTControlCharacters(line));
        }
      }),
    );
  });

  test("takes time that grows with the length of the text alone", () => {
    const begun = process.cpuUsage().user;
    for (const text of ["*a ", "[", "`", "_x", "**a *b "])
      toMarkdownLines(`${text.repeat(400)}\n`.repeat(300), paint);
    expect(process.cpuUsage().user - begun).toBeLessThan(20_000_000);
  });
});

describe("the hit of a search", () => {
  const snippet = "…the failed test of the pump…";
  const ranges = [
    { start: 5, end: 11 },
    { start: 12, end: 16 },
  ];

  test("is the place with most of the words around it, and every one of its words is marked", () => {
    const lines = toTextLines("A test.\nNothing here.\nNow the FAILED\ntest of the pump; contest.");
    const marked = markWith({ snippet, ranges }, paint)(lines);
    expect(marked.place).toEqual({ line: 2, offset: 8 });
    expect(new WrappedText(marked.lines, 60).read(0, 9)).toEqual([
      `A ${paint.match("test")}.`,
      "Nothing here.",
      `Now the ${paint.match("FAILED")}`,
      `${paint.match("test")} of the pump; contest.`,
    ]);
  });

  test("is marked with what other hits of the same search matched", () => {
    const marked = markWith({ snippet, ranges: [], words: ["pump"] }, paint)(toTextLines("a pump"));
    expect(new WrappedText(marked.lines, 60).read(0, 1)).toEqual([`a ${paint.match("pump")}`]);
  });

  test("is found in a line that fills many", () => {
    const wrapped = new WrappedText([{ text: `${"word ".repeat(100)}needle` }], 20);
    expect(wrapped.read(wrapped.find(0, 500), 1)).toEqual(["needle"]);
  });
});

describe("rows", () => {
  const at = Date.UTC(2026, 1, 14, 13, 36);
  const write = (columns: number, above: number | null): string =>
    renderRowColumns({ at, above, who: "assistant", tokens: 12 }, columns, "UTC", createPaint(false))
      .map(({ text }) => text)
      .join("");

  test("write the day where it changes, and less of it where there is less room", () => {
    expect(write(80, null)).toBe("2026-02-14 13:36 assistant      12  ");
    expect(write(80, at - 60_000)).toBe("           13:36 assistant      12  ");
    expect(write(80, at - 86_400_000)).toBe("2026-02-14 13:36 assistant      12  ");
    expect(write(65, null)).toBe("02-14 13:36 assistant      12  ");
    expect(write(40, null)).toBe("13:36 asst ");
  });
});

describe("on the screen", () => {
  let stage: Stage;
  const open = async (options?: StageOptions): Promise<Stage> => (stage = await openStage(options));
  afterEach(() => stage.close());

  const fill: StageOptions["fill"] = async (writer) => {
    const filler = Array.from({ length: 80 }, (_, at) => `line ${at} of the report`).join("\n");
    const content = `# Report\n${filler}\nthe **needle** was found by Mara\n${filler}`;
    await writer.ingest({
      session: MAIN,
      messages: [
        { eventId: "a", message: { role: "user", content } },
        {
          eventId: "b",
          message: {
            role: "assistant",
            content: [{ type: "toolCall", id: "c1", name: "read_file", arguments: { path: "a.ts" } }],
          },
        },
        {
          eventId: "c",
          message: {
            role: "toolResult",
            toolCallId: "c1",
            toolName: "read_file",
            isError: true,
            content: [{ type: "text", text: "no such file" }],
          },
        },
      ],
    });
    await writer.flushIndex();
  };

  test("an edit is shown as the lines it changes, and a call by what it acts on", async () => {
    const { see, press, terminal } = await open({
      isColoured: true,
      fill: async (writer) => {
        const input = {
          replace_all: false,
          file_path: "src/a.ts",
          old_string: "one\ntwo",
          new_string: "one\n2",
        };
        await writer.ingest({
          session: MAIN,
          messages: [
            { message: { role: "user", content: "change it" } },
            {
              message: {
                role: "assistant",
                content: [{ type: "toolCall", id: "e", name: "Edit", arguments: input }],
              },
            },
          ],
        });
      },
    });
    await press("enter");
    expect(await see("+ 2")).toContain("→ Edit src/a.ts");
    expect(terminal.written).toContain(paint.bad("- two"));
    expect(terminal.written).not.toContain("old_string");
  });

  test("a hit is in view and marked in the search, in the list of messages, and in the whole message", async () => {
    const { press, write, see, terminal } = await open({ fill, isColoured: true });
    await press("/");
    await write("needle");
    await press("enter");
    await see("1 hit");
    expect(await see("the needle was found by Mara")).toContain("line 79 of the report");
    expect(terminal.written).toContain(`${paint.match("needle")} was found`);
    expect(await press("enter")).toContain("the needle was found by Mara");
    expect(await press("enter")).toContain("the needle was found by Mara");
  });

  test("calls and errors have their colours", async () => {
    const { press, terminal } = await open({ fill, isColoured: true });
    await press("enter", "g", "G");
    await press("k");
    expect(terminal.written).toContain(paint.bad("→ read_file "));
    expect(terminal.written).toContain(paint.bad(" ⇒ error: no such file"));
    expect(terminal.written).toContain(paint.role("tool")("[tool call: read_file]"));
    expect(terminal.written).toContain(paint.bad("[tool result: read_file, error]"));
    expect(terminal.written).toContain(paint.bad("no such file"));
  });
});
