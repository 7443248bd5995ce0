/** What changes the archive from inside the terminal UI: first a preview, then what was agreed to, and nothing else. */
import type { Complete, Engine } from "@lossless/core";
import { afterEach, describe, expect, test } from "vitest";
import { fillTalk, openStage, type Stage, type StageOptions } from "./stage.ts";

let stage: Stage;
const open = async (options?: StageOptions): Promise<Stage> => (stage = await openStage(options));
afterEach(() => stage.close());

/** A model that writes a different text each time, and counts how often it is asked. */
function makeModel(): { complete: Complete; calls: () => number } {
  let calls = 0;
  return {
    calls: () => calls,
    complete: (request) => {
      calls += 1;
      // Of its sources it shows as much as the gate asks for.
      const valves = [...new Set(request.user.match(/valve_\d+/g))].slice(0, 20).join(", ");
      return Promise.resolve({
        kind: "text",
        text: `Written by model call ${calls} from ${request.user.length} characters; sensors of the greenhouse, and ${valves}.\nExpand for details about: valves`,
        model: { provider: "test", model: "model" },
        inputTokens: 10,
        outputTokens: 10,
      });
    },
  };
}

const listCover = async (engine: Engine): Promise<string[]> => {
  const { nodes } = await engine.readGraph({ conversationId: 1 });
  return nodes.filter(({ state }) => state === "cover").map(({ summaryId }) => summaryId);
};
const isProven = async (engine: Engine): Promise<boolean> => (await engine.verify()).ok;
const chosenId = (screen: string): string => /── (sum_[0-9a-f]{16}) ·/.exec(screen)?.[1] ?? "";

describe("dissolve", () => {
  test("shows how items shift, changes nothing on n, and dissolves on y", async () => {
    const { press, see, writer } = await open();
    const summaryId = chosenId(await press("s"));
    const before = await listCover(writer);
    const preview = await press("d");
    expect(preview).toContain(`What dissolving ${summaryId} would do. Nothing has been changed yet.`);
    expect(preview).toMatch(/Item +0 becomes 0 to \d+/);
    expect(preview).toMatch(/items move back by \d+/);
    await press("n");
    expect(await listCover(writer)).toEqual(before);
    await press("d", "y");
    await see(`dissolved ${summaryId}`);
    expect(await listCover(writer)).not.toContain(summaryId);
    expect(await see("graph of step 0")).not.toContain(`▸ + d1 ${summaryId}`);
    expect(await isProven(writer)).toBe(true);
  });

  test("says why a summary below another cannot be dissolved", async () => {
    const { press } = await open();
    await press("s", "l", "down");
    expect(await press("d")).toMatch(/cannot dissolve sum_[0-9a-f]{16}: it is not in the context/);
  });
});

describe("rewrite", () => {
  test("tells the cost, calls the model, shows both texts, and puts in place exactly what was looked at", async () => {
    const model = makeModel();
    const { press, see, writer } = await open({ complete: model.complete });
    const summaryId = chosenId(await press("s"));
    const preview = await press("r");
    expect(preview).toContain("1 summary would be regenerated. Nothing has been changed yet.");
    expect(preview).toMatch(/Cost: about [\d,]+ tokens in and [\d,]+ out, with test\/model/);
    expect(model.calls()).toBe(0);
    await press("enter");
    const review = await see("Written by model call 1");
    expect(review).toMatch(/^- .+ │ \+ Written by model call 1/m);
    expect(review).toContain(`${summaryId}`);
    expect(await listCover(writer)).toContain(summaryId);
    await press("y");
    await see("1 accepted");
    expect(model.calls()).toBe(1);
    expect((await writer.readSummary({ summaryId }))?.state).toBe("retired");
    await press("escape");
    await see("Written by model call 1");
    expect(await isProven(writer)).toBe(true);
  });

  test("skips what one does not like, then accepts all the rest", async () => {
    const model = makeModel();
    const { press, see, writer } = await open({ complete: model.complete });
    await press("s", "r");
    const preview = await press("S");
    const count = Number(/(\d+) summaries would be regenerated, the finest first/.exec(preview)?.[1]);
    expect(count).toBeGreaterThan(2);
    await press("enter");
    const first = /(sum_[0-9a-f]{16}) /.exec(await see("Written by model call 1"))?.[1] ?? "";
    await press("n");
    await see("Written by model call 2");
    expect(await listCover(writer)).toContain(first);
    await press("A");
    await see(`${count - 1} accepted, 1 skipped`);
    expect(model.calls()).toBe(count);
    expect(await isProven(writer)).toBe(true);
  });

  test("stops at once when asked to, and keeps what was accepted", async () => {
    let answer: () => void = () => undefined;
    const slow: Complete = (_request, signal) =>
      new Promise((resolve) => {
        answer = () => resolve({ kind: "failure", failure: "aborted", message: "stopped" });
        signal.addEventListener("abort", () => answer(), { once: true });
      });
    const { press, see, writer } = await open({ complete: slow });
    const before = await listCover(writer);
    await press("s", "r", "enter");
    await see("Writing sum_");
    await press("escape");
    await see("1 not written");
    expect(await listCover(writer)).toEqual(before);
  });

  test("refuses a text whose sources have changed while one was looking", async () => {
    const model = makeModel();
    const { press, see, writer, app } = await open({ complete: model.complete });
    const summaryId = chosenId(await press("s"));
    await press("r", "enter");
    await see("Written by model call 1");
    const source = (await writer.readSummary({ summaryId }))?.sourceIds[0] ?? "";
    await app.archive.change((engine) => engine.rewriteSummary({ summaryId: source, dryRun: false }));
    await press("y");
    await see("it changed meanwhile");
    expect((await writer.readSummary({ summaryId }))?.state).toBe("cover");
  });

  test("costs nothing without a model, and says so", async () => {
    const { press, see } = await open();
    await press("s");
    expect(await press("r")).toContain("Cost: nothing. The engine writes them itself, without a model.");
    expect(await press("m")).toContain("no model is named");
    await press("enter");
    await see("1 unchanged");
  });
});

describe("repair", () => {
  test("takes damaged summaries only, and heals them", async () => {
    const model = makeModel();
    const failing: Complete = () =>
      Promise.resolve({ kind: "failure", failure: "unavailable", message: "no answer" });
    let isHealthy = false;
    const { press, see, writer, app } = await open({
      complete: (request, signal) => (isHealthy ? model.complete : failing)(request, signal),
    });
    expect(await press("R")).toContain("no summary is damaged");
    await press("escape");
    const [id = ""] = await listCover(writer);
    // A stand-in is what is left when the model that was asked does not answer.
    await app.archive.change((engine) => engine.rewriteSummary({ summaryId: id, dryRun: false }));
    isHealthy = true;
    const preview = await press("R");
    expect(preview).toContain("1 summary would be regenerated");
    expect(preview).toContain("stand in");
    await press("enter");
    await see("Written by model call");
    await press("enter");
    await see("1 accepted");
    await press("escape");
    expect(await press("R")).toContain("no summary is damaged");
  });
});

test("transplant asks where to, shows what would be copied, and copies", async () => {
  const { press, write, see, writer } = await open({
    fill: async (engine) => {
      await fillTalk(engine);
      const session = { key: "agent:main:other", id: "s2", owner: "main" };
      await engine.ingest({
        session,
        messages: [{ eventId: "o1", message: { role: "user", content: "another talk" } }],
      });
    },
  });
  await press("down", "t");
  await write("99");
  expect(await press("enter")).toContain("there is no conversation 99");
  await press("t");
  await write("2");
  expect(await press("enter")).toMatch(/Copied +120 messages, \d+ summaries/);
  expect((await writer.readConversation({ conversationId: 2 }))?.messages).toBe(1);
  await press("y");
  await see("copied 120 messages in front of conversation 2");
  expect((await writer.readConversation({ conversationId: 2 }))?.messages).toBe(121);
  expect(await isProven(writer)).toBe(true);
});
