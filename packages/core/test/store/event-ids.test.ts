/**
 * Event ids that an import puts off: whoever asks, before or after they are written, in this process or another one, killed in between or
 * undone, gets the answers of an archive that writes each at once.
 */
import { DatabaseSync } from "node:sqlite";
import { makeTemporaryFolder } from "@lossless/testkit";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";

import { LocalEngine } from "../../src/engine/engine.ts";
import { resolveSettings } from "../../src/index.ts";
import { deriveMessage, prepareMessage } from "../../src/ingest/prepare.ts";
import type { Arrival, SessionRef } from "../../src/model/message.ts";
import { drawRandom } from "../../src/model/random.ts";
import type { AppendEvent, PreparedMessage } from "../../src/store/store.ts";
import { SqliteStore } from "../../src/store/sqlite/sqlite-store.ts";

/** Few, so that a test of some dozen messages sees them gather, be sorted and written. */
const SOON = { fromMessages: 4, together: 8 };
const NEVER = { fromMessages: Infinity, together: 8 };

interface Folder {
  file(name: string): string;
}

interface Opened {
  readonly engine: LocalEngine;
  readonly store: SqliteStore;
}

function open(folder: Folder, name: string, deferral: typeof SOON, readOnly = false): Opened {
  const { settings } = resolveSettings({ env: {}, config: { databasePath: folder.file(`${name}.db`) } });
  const store = new SqliteStore({
    path: folder.file(`${name}.db`),
    filesDir: folder.file(`${name}-files`),
    create: !readOnly,
    readOnly,
    derive: deriveMessage,
    deferral,
  });
  return { store, engine: new LocalEngine({ store, settings }) };
}

const sessionOf = (number: number) => ({ key: `agent:main:${number}`, id: `s${number}`, owner: "main" });

const toArrival = ([id, text]: readonly [number, string]): Arrival => ({
  eventId: `e${(id * 7919) % 1000}`,
  message: { role: "user", content: text },
});

function countRows(path: string, table: string): number {
  const database = new DatabaseSync(path, { readOnly: true });
  const row = database.prepare(`SELECT count(*) AS n FROM ${table}`).get() as { n: number };
  database.close();
  return row.n;
}

/** A batch whose last event fails inside the transaction: everything before it is undone. */
async function storeInVain(
  store: SqliteStore,
  session: SessionRef,
  messages: readonly Arrival[],
): Promise<void> {
  const events = messages.map(({ eventId, message }): AppendEvent => {
    const arrival = Buffer.from(JSON.stringify(message));
    const options = { hidden: 0, createdAt: 1, largeFileThresholdTokens: 25_000, random: drawRandom };
    const prepare = (): PreparedMessage => prepareMessage(arrival, options);
    return { eventId: eventId as string, kind: "entry", arrival, position: null, isPrepared: true, prepare };
  });
  const fail = (): never => {
    throw new Error("stopped on the way");
  };
  const last = { ...(events[0] as AppendEvent), eventId: "never stored", prepare: fail };
  const appended = store.append({ session, events: [...events, last], now: 1, isBulk: true });
  await expect(appended).rejects.toThrow("stopped on the way");
}

const step = fc.record({
  process: fc.constantFrom(0, 1),
  session: fc.constantFrom(1, 1, 1, 2),
  kind: fc.constantFrom("bulk", "bulk", "bulk", "bulk", "turn", "hide", "killed", "undone"),
  // Up to 16 are looked for one by one, more of them together.
  events: fc.array(fc.tuple(fc.nat(90), fc.constantFrom("one", "one", "one", "two")), {
    minLength: 1,
    maxLength: 26,
    size: "max",
  }),
});

describe("event ids that are put off", () => {
  test("are known as if they had been written at once", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 3, maxLength: 30 }), async (steps) => {
        using folder = makeTemporaryFolder();
        const { engine: model } = open(folder, "model", NEVER);
        const processes = [open(folder, "tested", SOON), open(folder, "tested", SOON)];
        const left: Opened[] = [];
        for (const [number, { process, session: of, kind, events }] of steps.entries()) {
          const tested = processes[process] as Opened;
          const session = sessionOf(of);
          const messages = events.map(toArrival);
          const eventIds = messages.map(({ eventId }) => eventId as string);
          if (kind === "killed") {
            // Never heard of again, with whatever it had not written.
            left.push(tested);
            processes[process] = open(folder, "tested", SOON);
            continue;
          }
          if (kind === "undone") {
            await storeInVain(tested.store, session, messages);
            continue;
          }
          const answers = [];
          for (const engine of [model, tested.engine]) {
            const known = await engine.knownEvents({ sessionId: session.id, owner: "main", eventIds });
            if (kind === "hide") {
              answers.push({ known, hidden: await engine.setBranch({ session, offBranch: eventIds }) });
              continue;
            }
            const sequence = kind === "turn" ? {} : { sequence: `${process} ${of} ${number}` };
            const { results } = await engine.ingest({ session, messages, ...sequence });
            const stored = results.map(({ eventId, outcome, seq }) => `${eventId} ${outcome} ${seq}`);
            answers.push({ known, stored });
          }
          expect(answers[1]).toEqual(answers[0]);
        }
        // Proven as it stands, by a reader that cannot write them.
        const { engine: reader } = open(folder, "tested", SOON, true);
        expect((await reader.verify({})).problems).toEqual([]);
        await reader.close();
        await model.close();
        for (const { engine } of processes) await engine.close();
        const [path, expected] = [folder.file("tested.db"), folder.file("model.db")];
        expect(countRows(path, "event_ids_behind")).toBe(0);
        expect(countRows(path, "event_ids")).toBe(countRows(expected, "event_ids"));
        const { engine: after } = open(folder, "tested", SOON);
        expect((await after.verify({})).problems).toEqual([]);
        await after.close();
        for (const { engine } of left) await engine.close();
      }),
      { numRuns: 60 },
    );
  });

  test("are written with the batches behind them, and the last when no more come", async () => {
    using folder = makeTemporaryFolder();
    const { engine } = open(folder, "lcm", SOON);
    const path = folder.file("lcm.db");
    const session = sessionOf(1);
    const store = async (from: number, count: number): Promise<void> => {
      const messages = Array.from({ length: count }, (_, index) => toArrival([from + index, "one"]));
      await engine.ingest({ session, messages, sequence: "import" });
    };
    await store(0, 4);
    expect(countRows(path, "event_ids")).toBe(4);
    await store(4, 4);
    expect(countRows(path, "event_ids")).toBe(4);
    expect(countRows(path, "event_ids_behind")).toBe(1);
    await store(8, 4);
    await store(12, 4);
    expect(countRows(path, "event_ids")).toBeGreaterThanOrEqual(12);
    await expect.poll(() => countRows(path, "event_ids_behind"), { timeout: 10_000 }).toBe(0);
    expect(countRows(path, "event_ids")).toBe(16);
    await engine.close();
  });

  test("of another process are known to one that writes them for it", async () => {
    using folder = makeTemporaryFolder();
    const [{ engine: first }, { engine: second }] = [open(folder, "lcm", SOON), open(folder, "lcm", SOON)];
    const batch = (from: number, count: number): { session: SessionRef; messages: Arrival[] } => ({
      session: sessionOf(2),
      messages: Array.from({ length: count }, (_, index) => toArrival([from + index, "one"])),
    });
    await first.ingest({ session: sessionOf(1), messages: batch(0, 6).messages });
    await first.ingest({ ...batch(0, 6), sequence: "first" });
    for (let from = 6; from < 86; from += 20) await second.ingest({ ...batch(from, 20), sequence: "second" });
    const { results } = await second.ingest({ ...batch(0, 86), sequence: "again" });
    expect(new Set(results.map(({ outcome }) => outcome))).toEqual(new Set(["known"]));
    await first.close();
    await second.close();
  });

  test("are known by a name that was given to an event in between", async () => {
    using folder = makeTemporaryFolder();
    const { engine } = open(folder, "lcm", SOON);
    const session = sessionOf(1);
    const messages = Array.from({ length: 20 }, (_, index) => toArrival([index, "one"]));
    await engine.ingest({ session, messages, sequence: "import" });
    const provisional = { ...toArrival([20, "one"]), eventId: "sent", eventIdKind: "provisional" as const };
    await engine.ingest({ session, messages: [provisional] });
    const { eventId } = toArrival([20, "one"]);
    expect(await engine.relabel({ session, labels: [{ from: "sent", to: eventId as string }] })).toBe(1);
    const repeated = Array.from({ length: 21 }, (_, index) => toArrival([index, "one"]));
    const { results } = await engine.ingest({ session, messages: repeated, sequence: "import" });
    expect(new Set(results.map(({ outcome }) => outcome))).toEqual(new Set(["known"]));
    await engine.close();
  });

  test("that name two messages are found by verify", async () => {
    using folder = makeTemporaryFolder();
    const { engine } = open(folder, "lcm", SOON);
    const path = folder.file("lcm.db");
    const messages = Array.from({ length: 6 }, (_, index) => toArrival([index, "one"]));
    await engine.ingest({ session: sessionOf(1), messages });
    await engine.ingest({ session: sessionOf(1), messages: [toArrival([6, "one"])], sequence: "import" });
    await engine.ingest({ session: sessionOf(1), messages: [toArrival([7, "one"])], sequence: "import" });
    const database = new DatabaseSync(path);
    const taken = toArrival([6, "one"]).eventId as string;
    database.prepare("UPDATE messages SET event_id = ? WHERE message_id = 8").run(taken);
    database.close();
    const { engine: reader } = open(folder, "lcm", SOON, true);
    const { problems } = await reader.verify({});
    expect(problems.map(({ code }) => code)).toContain("event_ids");
    await reader.close();
    await engine.close();
  });
});
