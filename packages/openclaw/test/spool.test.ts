import { spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdir, mkdtemp, readdir, readFile, rm, stat, truncate, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { EngineError, resolveSettings } from "@lossless/core";
import { openEngine } from "lossless-claw";
import type { Engine } from "@lossless/core";
import { watchDisk } from "@lossless/testkit/watch-disk.ts";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { ContextEngine } from "../src/host/host.ts";
import { ProcessMemory } from "../src/host/process-memory.ts";
import { leaseEngine } from "../src/host/shared-engine.ts";
import { Spool } from "../src/capture/spool.ts";
import { closeProven, makeEngine } from "./engine-parts.ts";
import { FakeTranscript, SESSION_ID, SESSION_KEY } from "./fake-transcript.ts";

const session = { sessionId: SESSION_ID, sessionKey: SESSION_KEY };

let folder: string;
let archive: Engine;
let transcript: FakeTranscript;
let memory: ProcessMemory;
let isDown: boolean;
let told: string[];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "lossless-spool-"));
  archive = await openEngine({ database: join(folder, "lcm.db"), thread: false });
  transcript = new FakeTranscript();
  memory = new ProcessMemory();
  isDown = false;
  told = [];
});

afterEach(() => closeProven(archive, folder));

function newEngine(): ContextEngine {
  return makeEngine({
    settings: resolveSettings({ config: {}, configSource: "test", stateDir: folder }).settings,
    folder,
    open: async () => {
      if (isDown)
        throw new EngineError("database_busy", "cannot write the database: another process is holding it");
      return archive;
    },
    transcript,
    memory,
    tell: (text) => told.push(text),
  });
}

function speak(text: string) {
  const first = transcript.say("user", text);
  transcript.say("assistant", [{ type: "toolCall", id: `call-${text}`, name: "clock", arguments: {} }]);
  transcript.say("toolResult", [{ type: "text", text: "noon" }], { toolCallId: `call-${text}` });
  return transcript.turn(first, transcript.say("assistant", `answer to ${text}`));
}

async function listStored(engine: Engine = archive): Promise<string[]> {
  const ids: string[] = [];
  for (const { conversationId } of (await engine.listConversations({ limit: 10 })).items)
    ids.push(...(await engine.listMessages({ conversationId, limit: 1000 })).items.map((row) => row.eventId));
  return ids;
}

const listSpool = async (state = "."): Promise<string[]> => await readdir(join(folder, state, "lcm-spool"));

describe("a database that cannot take a turn", () => {
  test("sends it to the spool, reports it committed once, and tells", async () => {
    isDown = true;
    const turn = speak("one");
    expect(await newEngine().commitTurn(turn)).toEqual({ status: "committed" });
    expect(await newEngine().commitTurn(turn)).toEqual({ status: "duplicate" });
    expect(await listSpool()).toHaveLength(1);
    expect(told).toHaveLength(1);
    const [name] = await listSpool();
    expect((await stat(join(folder, "lcm-spool", name!))).mode & 0o777).toBe(0o600);
    expect(memory.outages.map((outage) => outage.part)).toContain("spool");
  });

  test.runIf(process.platform === "linux")("has it on the disk before it counts as kept", async () => {
    const spool = new Spool(join(folder, "lcm.db"));
    const seen = await watchDisk(() => spool.add(speak("one")));
    const [name = ""] = await listSpool();
    const path = join(folder, "lcm-spool", name);
    expect(seen.map((call) => call.replace(/\.json\..*/, ".json and more"))).toEqual([
      `flush ${path} and more`,
      `rename ${path}`,
      `flush ${join(folder, "lcm-spool")}`,
    ]);
  });

  test("gets the turns in order when it is back, before the next one", async () => {
    await newEngine().commitTurn(speak("zero"));
    isDown = true;
    await newEngine().commitTurn(speak("one"));
    await newEngine().commitTurn(speak("two"));
    isDown = false;
    expect(await newEngine().commitTurn(speak("three"))).toEqual({ status: "committed" });
    expect(await listStored()).toEqual(transcript.messages.map((row) => row.id));
    expect(await listSpool()).toEqual([]);
    expect(memory.outages).toEqual([]);
  });

  test("gets them also when the transcript cannot show them any more", async () => {
    isDown = true;
    const turn = speak("one");
    await newEngine().commitTurn(turn);
    isDown = false;
    transcript.broken = true;
    await newEngine().bootstrap(session);
    expect(await listStored()).toHaveLength(4);
    transcript.broken = false;
    await newEngine().bootstrap(session);
    expect(await listStored()).toHaveLength(4);
    expect(await newEngine().commitTurn(turn)).toEqual({ status: "duplicate" });
  });

  test("is met by a host that keeps the turn when the spool cannot be written either", async () => {
    isDown = true;
    await writeFile(join(folder, "lcm-spool"), "a file is in the way");
    await expect(newEngine().commitTurn(speak("one"))).rejects.toThrow();
    await rm(join(folder, "lcm-spool"));
  });
});

describe("a turn on the real engine of the plugin", () => {
  /** An engine of the plugin on a database of its own, opened as the host's process does, and what happens before each use of it. */
  async function prepare(workerUrl: URL) {
    const stateDir = join(folder, "state");
    await mkdir(stateDir);
    const { settings } = resolveSettings({ config: {}, configSource: "test", stateDir });
    const lease = leaseEngine({
      settings,
      workerUrl,
      onEvent: () => undefined,
    });
    const events = { beforeUse: async (): Promise<void> => undefined, busy: [] as string[] };
    const open = async (): Promise<Engine> => {
      const engine = await lease.open();
      await events.beforeUse();
      return noteBusy(engine, events.busy);
    };
    const plugin = (): ContextEngine => makeEngine({ settings, folder: stateDir, open, transcript, memory });
    return { lease, events, plugin, database: settings.databasePath };
  }

  test("goes to the spool when the file was replaced under the engine, and from there to the new file", async () => {
    const { lease, events, plugin, database } = await prepare(
      new URL("../../lossless-claw/src/worker.ts", import.meta.url),
    );
    expect(await plugin().commitTurn(speak("one"))).toEqual({ status: "committed" });
    events.beforeUse = async () => {
      for (const log of ["", "-wal", "-shm"]) await rm(`${database}${log}`);
      events.beforeUse = async () => undefined;
    };
    const turn = speak("two");
    expect(await plugin().commitTurn(turn)).toEqual({ status: "committed" });
    expect(await listSpool("state")).toHaveLength(1);
    expect(await plugin().commitTurn(turn)).toEqual({ status: "duplicate" });
    expect(await plugin().commitTurn(speak("three"))).toEqual({ status: "committed" });
    expect(await listSpool("state")).toEqual([]);
    const opened = await lease.open();
    expect(await listStored(opened)).toEqual(transcript.messages.map((row) => row.id));
    expect((await opened.verify()).problems).toEqual([]);
    await lease.release();
  });

  test("waits at most 500 ms for a database that another process holds, over all its calls", async () => {
    const { lease, events, plugin, database } = await prepare(
      new URL("./limit-probe-worker.ts", import.meta.url),
    );
    await plugin().commitTurn(speak("one"));
    const other = new DatabaseSync(database);
    other.exec("BEGIN IMMEDIATE");
    const engine = plugin();
    const turn = speak("two");
    await engine.bootstrap(session);
    await engine.assemble({ ...session, messages: [], tokenBudget: 20_000 });
    expect(await engine.commitTurn(turn)).toEqual({ status: "committed" });
    other.exec("ROLLBACK");
    other.close();
    expect(await listSpool("state")).toHaveLength(1);
    const limits = (await readFile(`${database}.limits`, "utf8")).trim().split("\n").map(Number);
    expect(events.busy.length).toBeGreaterThan(0);
    expect(events.busy.length * Math.max(...limits)).toBeLessThanOrEqual(500);
    await lease.release();
  });
});

/** ProcessMemory which calls waited in vain for the lock. */
function noteBusy(engine: Engine, busy: string[]): Engine {
  const noted =
    (name: string, call: (...args: unknown[]) => Promise<unknown>) =>
    (...args: unknown[]): Promise<unknown> =>
      call(...args).catch((error: unknown) => {
        if (error instanceof EngineError && error.code === "database_busy") busy.push(name);
        throw error;
      });
  return new Proxy(engine, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name);
      return typeof value === "function"
        ? noted(String(name), value.bind(target) as (...args: unknown[]) => Promise<unknown>)
        : value;
    },
  });
}

describe("a damaged file in the spool", () => {
  /** Two turns wait; the file of the first is cut short. */
  async function cutFirst(): Promise<string> {
    isDown = true;
    await newEngine().commitTurn(speak("one"));
    const [name] = await listSpool();
    await newEngine().commitTurn(speak("two"));
    const path = join(folder, "lcm-spool", name!);
    await truncate(path, (await stat(path)).size - 40);
    isDown = false;
    return name!;
  }

  test("is moved aside, the others are stored, and its own messages come from the transcript", async () => {
    const name = await cutFirst();
    await newEngine().bootstrap(session);
    expect(await newEngine().commitTurn(speak("three"))).toEqual({ status: "committed" });
    expect(await listStored()).toEqual(transcript.messages.map((row) => row.id));
    expect(await listSpool()).toEqual([`${name}.damaged`]);
    expect(await new Spool(join(folder, "lcm.db")).listAside()).toEqual([`${name}.damaged`]);
    expect(memory.outages).toEqual([]);
  });

  test("is reported once to whoever logs", async () => {
    const name = await cutFirst();
    const damaged: string[] = [];
    const spool = new Spool(join(folder, "lcm.db"), (file) => damaged.push(file));
    expect(await spool.size()).toBe(1);
    expect(await spool.listAside()).toEqual([`${name}.damaged`]);
    expect(damaged).toEqual([`${name}.damaged`]);
  });

  test.each(["", "null", '{"format":1}', '{"format":2,"spooledAt":1,"turn":{}}', "[1,2"])(
    "with the text %j does not count as a turn",
    async (text) => {
      isDown = true;
      const turn = speak("one");
      await newEngine().commitTurn(turn);
      const [name] = await listSpool();
      await writeFile(join(folder, "lcm-spool", name!), text);
      // The same turn again: what is there is no copy of it.
      expect(await newEngine().commitTurn(turn)).toEqual({ status: "committed" });
      expect(await listSpool()).toEqual([name, `${name}.damaged`]);
    },
  );

  test("is moved aside once when several read the spool at the same time", async () => {
    const name = await cutFirst();
    const damaged: string[] = [];
    const spools = Array.from(
      { length: 8 },
      () => new Spool(join(folder, "lcm.db"), (file) => damaged.push(file)),
    );
    expect(await Promise.all(spools.map((spool) => spool.size()))).toEqual(spools.map(() => 1));
    expect(damaged).toEqual([`${name}.damaged`]);
  });

  test.skipIf(process.platform === "win32")(
    "is not one that cannot be opened for lack of file handles",
    async () => {
      isDown = true;
      const turn = speak("one");
      await newEngine().commitTurn(turn);
      const [name] = await listSpool();
      const program = `
        import { openSync } from "node:fs";
        import { Spool } from ${JSON.stringify(new URL("../src/capture/spool.ts", import.meta.url).href)};
        const spool = new Spool(${JSON.stringify(join(folder, "lcm.db"))});
        await spool.size();
        try { for (;;) openSync("/dev/null"); } catch { /* No more can be opened. */ }
        await spool.add(${JSON.stringify(turn)}).catch((error) => console.log(error.code));`;
      const command = 'ulimit -n 128; exec "$0" --input-type=module --eval "$PROGRAM"';
      const { stdout, stderr } = spawnSync("sh", ["-c", command, process.execPath], {
        env: { ...process.env, PROGRAM: program },
        encoding: "utf8",
      });
      expect({ stdout, stderr }).toEqual({ stdout: "EMFILE\n", stderr: "" });
      expect(await listSpool()).toEqual([name]);
    },
  );

  test("does not hide a directory that has the name of a record", async () => {
    const spool = new Spool(join(folder, "lcm.db"));
    await spool.add(speak("one"));
    await mkdir(join(folder, "lcm-spool", "0.json"));
    expect(await new Spool(join(folder, "lcm.db")).size()).toBe(1);
    expect(await spool.listAside()).toEqual(["0.json.damaged"]);
  });
});

describe("temporary files", () => {
  test.skipIf(process.platform === "win32")("of a write that failed are deleted", async () => {
    // A limit on the size of files fails in the middle of a write, as a full disk does.
    const first = transcript.say("user", "one");
    const turn = JSON.stringify(transcript.turn(first, first));
    const program = `
      import { Spool } from ${JSON.stringify(new URL("../src/capture/spool.ts", import.meta.url).href)};
      await new Spool(${JSON.stringify(join(folder, "lcm.db"))}).add({ ...${turn}, messages: ["x".repeat(200_000)] }).catch((error) => {
        console.log(error.code);
      });`;
    const command = 'ulimit -f 100; exec "$0" --input-type=module --eval "$PROGRAM"';
    const { stdout, stderr } = spawnSync("sh", ["-c", command, process.execPath], {
      env: { ...process.env, PROGRAM: program },
      encoding: "utf8",
    });
    expect({ stdout, stderr }).toEqual({ stdout: "EFBIG\n", stderr: "" });
    expect(await listSpool()).toEqual([]);
  });

  test("of a process that was killed are deleted when the spool is read, those of a running one are not", async () => {
    const spool = new Spool(join(folder, "lcm.db"));
    await spool.add(speak("one"));
    const [name] = await listSpool();
    const old = `${name}.${randomUUID()}`;
    const young = `${name}.${randomUUID()}`;
    for (const file of [old, young]) await writeFile(join(folder, "lcm-spool", file), "{");
    await utimes(join(folder, "lcm-spool", old), new Date(0), new Date(0));
    expect(await new Spool(join(folder, "lcm.db")).size()).toBe(1);
    expect(await listSpool()).toEqual([name, young]);
  });
});

describe("draining", () => {
  const store = async (): Promise<void> => undefined;

  test("hands over the turns of one session, and leaves those of others", async () => {
    const spool = new Spool(join(folder, "lcm.db"));
    await spool.add(speak("one"));
    await spool.add({ ...speak("two"), sessionId: "another", advancementKey: "another" });
    const seen: string[] = [];
    expect(await spool.drain(SESSION_ID, async (turn) => void seen.push(turn.sessionId))).toBe(1);
    expect(seen).toEqual([SESSION_ID]);
    expect(await new Spool(join(folder, "lcm.db")).sessions()).toEqual(["another"]);
  });

  test("keeps a turn that can never be stored under another name, and one that only the database refuses now", async () => {
    isDown = true;
    await newEngine().commitTurn(speak("one"));
    isDown = false;
    const [name] = await listSpool();
    const { ingest } = archive;
    const fail = (code: "database_full" | "invalid_input") =>
      Object.assign(archive, { ingest: () => Promise.reject(new EngineError(code, "cannot store it")) });
    try {
      fail("database_full");
      await newEngine().commitTurn(speak("two"));
      expect(await listSpool()).toContain(name);
      fail("invalid_input");
      await newEngine().bootstrap(session);
    } finally {
      Object.assign(archive, { ingest });
    }
    expect(await new Spool(join(folder, "lcm.db")).listAside()).toContain(`${name}.refused`);
  });

  test("stops at the first turn that fails and keeps the rest", async () => {
    const spool = new Spool(join(folder, "lcm.db"));
    for (const text of ["one", "two", "three"]) await spool.add(speak(text));
    const seen: number[] = [];
    const failing = spool.drain(SESSION_ID, async (turn) => {
      seen.push(turn.admission.activeMessagePosition);
      if (seen.length === 2) throw new Error("still down");
    });
    await expect(failing).rejects.toThrow("still down");
    expect(seen).toEqual([0, 4]);
    expect(await new Spool(join(folder, "lcm.db")).size()).toBe(2);
    expect(await spool.size()).toBe(2);
  });

  test("keeps the order of the turns when the clock was set back meanwhile", async () => {
    const spool = new Spool(join(folder, "lcm.db"));
    await spool.add(speak("one"), 2_000);
    await spool.add(speak("two"), 1_000);
    const seen: number[] = [];
    await spool.drain(SESSION_ID, async (turn) => void seen.push(turn.admission.activeMessagePosition));
    expect(seen).toEqual([0, 4]);
  });

  test("goes on after the clock was set back, whoever held the lock before", async () => {
    const spool = new Spool(join(folder, "lcm.db"));
    await spool.add(speak("one"));
    const lock = join(folder, "lcm-spool", "drain.lock");
    await writeFile(lock, "");
    const ahead = new Date(Date.now() + 86_400_000);
    await utimes(lock, ahead, ahead);
    expect(await spool.drain(SESSION_ID, store)).toBe(1);
  });

  test("is done by one process at a time; a lock left behind long ago is no lock", async () => {
    const spool = new Spool(join(folder, "lcm.db"));
    await spool.add(speak("one"));
    const other = new Spool(join(folder, "lcm.db"));
    await spool.drain(SESSION_ID, async () => {
      expect(await other.drain(SESSION_ID, store)).toBe(0);
    });
    await spool.add(speak("two"));
    const lock = join(folder, "lcm-spool", "drain.lock");
    await writeFile(lock, "");
    await utimes(lock, new Date(0), new Date(0));
    expect(await spool.drain(SESSION_ID, store)).toBe(1);
  });
});
