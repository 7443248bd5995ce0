/** The mouse: what a terminal reports becomes keys, and every place at the bottom that shows a key acts as that key. */
import { afterEach, describe, expect, test } from "vitest";
import { findFootKey, renderFoot } from "../src/foot.ts";
import { isMouse, MOUSE_OFF, MOUSE_ON, pointAt, readMouse } from "../src/mouse.ts";
import { createPaint } from "../src/paint.ts";
import { openStage, type Stage } from "./stage.ts";

const report = (button: number, column: number, row: number, end = "M"): string =>
  `\u001B[<${button};${column};${row}${end}`;

describe("reports", () => {
  test("presses and the wheel have a meaning, releases, movements and other buttons none", () => {
    expect(readMouse(report(0, 5, 7))).toEqual({ kind: "press", column: 4, row: 6 });
    expect(readMouse(report(64, 300, 1))).toEqual({ kind: "wheelUp", column: 299, row: 0 });
    expect(readMouse(report(65 + 16, 1, 1))?.kind).toBe("wheelDown");
    for (const data of [report(0, 5, 7, "m"), report(2, 1, 1), report(32, 1, 1)]) {
      expect(readMouse(data)).toBeNull();
      expect(isMouse(data)).toBe(true);
    }
    expect(isMouse("q")).toBe(false);
  });

  test("a row is chosen, the chosen one opened, a pane beside it scrolled", () => {
    const area = { columns: 40, rows: 10, firstRow: 2, shown: 5, chosen: 1 };
    const at = (column: number, row: number, kind: "press" | "wheelUp" = "press"): string | undefined =>
      pointAt({ kind, column, row }, area)?.name;
    expect([at(0, 2), at(0, 3), at(39, 6)]).toEqual(["rows:-1", "enter", "rows:3"]);
    expect(pointAt({ kind: "press", column: 0, row: 3 }, { ...area, openKey: "right" })?.name).toBe("right");
    expect([at(0, 1), at(0, 7), at(40, 3), at(0, 11)]).toEqual([undefined, undefined, undefined, undefined]);
    expect([at(0, 0, "wheelUp"), at(50, 3, "wheelUp"), at(0, 12, "wheelUp")]).toEqual([
      "wheelUp",
      "paneUp",
      "paneUp",
    ]);
  });

  test("keys at the bottom are found where they are drawn", () => {
    const keys = [
      { keys: "Enter → l", does: "open" },
      { keys: "J K", does: "scroll" },
      { keys: "x", does: "something that does not fit at all here" },
    ];
    for (const columns of [80, 50, 20, 5]) {
      const line = renderFoot(keys, columns, createPaint(false));
      expect(line.length).toBeLessThanOrEqual(columns);
      for (const [sign, name] of [
        ["Enter", "enter"],
        ["→", "right"],
        ["l ", "l"],
        ["open", "enter"],
        ["J", "J"],
        ["K", "K"],
        ["?", "?"],
        ["q ", "q"],
        ["quit", "q"],
      ] as const) {
        const at = line.indexOf(sign);
        if (at >= 0) expect(findFootKey(keys, columns, at)?.name, `${sign} in ${line}`).toBe(name);
      }
    }
    expect(findFootKey(keys, 80, 0)).toBeNull();
  });
});

describe("on the screen", () => {
  let stage: Stage;
  afterEach(() => stage.close());

  test("opens, scrolls and goes back without a key, and is switched off at the end", async () => {
    stage = await openStage();
    const { press, terminal, ui } = stage;
    expect(terminal.written).toContain(MOUSE_ON);
    expect(await press(report(0, 10, 3))).toContain("following");
    expect(await press(report(0, 10, 5))).toMatch(/▸ .*step 112/);
    expect(await press(report(64, 10, 5))).toMatch(/▸ .*step-109/);
    const foot = (await stage.look()).split("\n").at(-1) ?? "";
    expect(await press(report(0, foot.indexOf("s graph") + 3, 24))).toMatch(/› step 0.* › graph /);
    // Nothing is pointed at above the rows, and typing is not disturbed.
    expect(await press(report(0, 1, 2), "/", report(0, 10, 5), report(64, 10, 5))).toContain("search: ▏");
    await press("escape");
    ui.stop();
    expect(terminal.written.lastIndexOf(MOUSE_OFF)).toBeGreaterThan(terminal.written.lastIndexOf(MOUSE_ON));
  });

  /** Clicks on the row that shows a text, as a person would. */
  const click = async (text: string | RegExp): Promise<string> => {
    const row = (await stage.look()).split("\n").findIndex((line) => line.search(text) >= 0);
    return stage.press(report(0, 10, row + 1));
  };

  test("rows of a rewrite are chosen and shown in the graph, and nothing is written by a click", async () => {
    let calls = 0;
    stage = await openStage({
      complete: () => {
        calls += 1;
        return Promise.reject(new Error("no model may be called"));
      },
    });
    await stage.press("s", "r");
    const rows = (await stage.press("S")).split("\n").filter((line) => /^(▸| ) sum_/.test(line));
    const id = /sum_\w+/.exec(rows[1] ?? "")?.[0] ?? "";
    expect(await click(id)).toContain(`▸ ${id}`);
    expect(await click(id)).toContain(`── ${id}`);
    expect(await stage.press("escape")).toContain(`▸ ${id}`);
    expect(calls).toBe(0);
  });

  test("rows of spend are chosen, and those of conversations opened", async () => {
    let calls = 0;
    stage = await openStage({
      complete: () => {
        calls += 1;
        const model = { provider: "test", model: `model-${calls}` };
        return Promise.resolve({ kind: "text", text: "Valves.", model, inputTokens: 900, outputTokens: 9 });
      },
    });
    const { nodes } = await stage.writer.readGraph({ conversationId: 1 });
    for (const { summaryId } of nodes.slice(0, 2))
      await stage.app.archive.change((engine) => engine.rewriteSummary({ summaryId, dryRun: true }));
    await stage.press("$", "tab", "tab");
    expect(await click("model-2")).toMatch(/▸ .*model-2/);
    expect(await click("model-1")).toMatch(/▸ .*model-1/);
    expect(await click("model-1")).toContain("Tab shows spend by conversation");
    await stage.press("tab", "tab", "tab");
    expect(await click(/^▸ 1 /)).toContain("following");
  });
});
