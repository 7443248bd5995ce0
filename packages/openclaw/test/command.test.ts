import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { resolveSettings } from "@lossless/core";
import { openEngine } from "lossless-claw";
import type { Complete, Engine } from "@lossless/core";
import { listBackups, planRewrite } from "@lossless/core/repair";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createCommands } from "../src/commands/command.ts";
import type { CommandContext } from "../src/host/host.ts";
import { resolveForHost } from "../src/host/host-settings.ts";
import { ProcessMemory } from "../src/host/process-memory.ts";
import { Spool } from "../src/capture/spool.ts";

const session = { key: "agent:main:chat", id: "s1", owner: "main" };

let folder: string;
let archive: Engine;
let memory: ProcessMemory;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "lossless-command-"));
  memory = new ProcessMemory();
  archive = await openEngine({ database: join(folder, "lcm.db"), thread: false });
});

afterEach(async () => {
  await archive.close();
  await rm(folder, { recursive: true, force: true });
});

async function ask(
  args: string,
  config: Record<string, unknown> = {},
  open = async () => archive,
  context: Partial<CommandContext> = {},
): Promise<string> {
  const resolved = resolveForHost({ config, configSource: "test", stateDir: folder });
  const { settings } = resolved;
  const [command] = createCommands({
    settings,
    resolved,
    preflight: () => resolved.replaced.map(({ message }) => message),
    lease: { open, memory },
    spool: new Spool(join(folder, "lcm.db")),
  });
  return (await command!.handler({ args, agentId: "main", sessionKey: session.key, ...context })).text;
}

test("both names are registered", () => {
  const resolved = resolveForHost({ config: {}, configSource: "test", stateDir: folder });
  const commands = createCommands({
    settings: resolved.settings,
    resolved,
    lease: { open: async () => archive, memory },
    spool: new Spool(join(folder, "lcm.db")),
  });
  expect(commands.map((command) => command.name)).toEqual(["lcm", "lossless"]);
});

test("status is the default, and says what is stored and where", async () => {
  expect(await ask("")).toContain("This chat: nothing stored yet");
  await archive.ingest({
    session,
    messages: [{ eventId: "e1", message: { role: "user", content: "hello" } }],
  });
  const text = await ask("status");
  expect(text).toContain("This chat: 1 message,");
  expect(text).toContain("Archive: 1 message in 1 conversation");
  expect(text).toContain(join(folder, "lcm.db"));
});

test("status and doctor name files of the spool that were moved aside", async () => {
  await mkdir(join(folder, "lcm-spool"));
  await writeFile(join(folder, "lcm-spool", "aa.json"), "{");
  expect(await ask("status")).toContain(
    "! 1 file of the spool could not be used and was moved aside: lcm-spool/aa.json.damaged",
  );
  expect(await ask("doctor")).toContain("Their messages are read from the host's transcript.");
});

test("status says when nothing is kept, and why", async () => {
  expect(await ask("status", { enabled: false })).toContain("switched off");
  expect(await ask("status", { ignoreSessionPatterns: ["agent:**"] })).toContain("This chat is not kept");
});

test("status tells a failure instead of failing", async () => {
  const text = await ask("status", {}, async () => Promise.reject(new Error("the disk is gone")));
  expect(text).toBe("Lossless Claw cannot read its archive: the disk is gone");
});

test.each(["config set freshTailCount 7", "doctor clean", "status all", "backup /tmp", "help me"])(
  "a sub-command that does not exist is refused: %s",
  async (args) => {
    const text = await ask(args);
    expect(text).toContain(`There is no "/lcm ${args}". Nothing was done.`);
    expect(text).toContain(`/lcm ${args.split(" ")[0]}`);
  },
);

test("config lists what differs from the defaults and nothing that follows from it or from the state folder", async () => {
  expect(await ask("config")).toBe("All settings are the defaults.");
  expect(await ask("config", { leafChunkTokens: 30_000 })).toBe("leafChunkTokens: 30000");
  expect(await ask("config", { autoRotateSessionFiles: { sizeBytes: 5 } })).toBe(
    "autoRotateSessionFiles.sizeBytes: 5",
  );
});

test.each([
  [{ leafChunkTokens: 1000 }, "must be greater than leafTargetTokens, 2400"],
  [{ condensedMinFanout: 2, condensedMinFanoutHard: 3 }, "must be at least condensedMinFanoutHard, 3"],
  [{ freshTailMaxTokens: 0 }, "must be a whole number, at least 1"],
  [{ largeFilesDir: "files" }, "must be an absolute path"],
])("a setting that cannot work is replaced, and status and doctor say so: %j", async (config, problem) => {
  expect(await ask("config", config)).toBe("All settings are the defaults.");
  for (const word of ["status", "doctor"]) {
    const text = await ask(word, config);
    expect(text).toContain(problem);
    expect(text).toContain("the default is used");
  }
});

test.each([
  [{ redactPatterns: ["@key"] }, "must be one of the sets @keys, @tokens, @cards"],
  [{ redactPatterns: ["@keys"], redactedValues: "seal" }, "there is no redaction key"],
  [{ redactPatterns: ["@keys"], redactedValues: "seal", redactionKeyFile: "/no/such" }, "no such file"],
])("broken redaction stops storing, and status and doctor say so: %j", async (config, problem) => {
  expect(resolveForHost({ config }).settings.enabled).toBe(false);
  for (const word of ["status", "doctor"]) {
    const text = await ask(word, config);
    expect(text).toContain("nothing is stored, because redaction does not work");
    expect(text).toContain(problem);
  }
});

test("what does not exist is answered with what does", async () => {
  expect(await ask("frobnicate now")).toMatch(/There is no "frobnicate".*\/lcm status/s);
  expect(await ask("help")).toContain("/lcm status");
});

async function fill(turns: number): Promise<void> {
  for (let turn = 0; turn < turns; turn++) {
    const messages = [
      { eventId: `u${turn}`, message: { role: "user", content: `question ${turn} about the harbour crane` } },
      {
        eventId: `a${turn}`,
        message: { role: "assistant", content: `answer ${turn} ${"word ".repeat(80)}` },
      },
    ];
    await archive.ingest({ session, messages });
  }
}

test("status and doctor tell of a turn that the host refused, and what to do", async () => {
  memory.fail(`turns of ${session.key}`, new Error("the host refused a turn: too large"), "Say it shorter.");
  expect(await ask("status")).toContain(`! turns of ${session.key}: the host refused a turn: too large`);
  expect(await ask("doctor")).toContain("Say it shorter.");
  memory.recover(`turns of ${session.key}`);
  expect(await ask("status")).toContain("All parts work.");
});

test("many chats whose transcripts cannot be read are counted, and hide nothing else", async () => {
  for (let n = 0; n < 2_000; n++)
    memory.fail(`transcript of agent:main:cron:${n}`, new Error("could not be used"), "Update this plugin.");
  memory.fail("archive", new Error("the disk is full"));
  expect(memory.outages.length).toBeLessThan(1_000);
  const text = await ask("status");
  expect(text).toContain("! archive: the disk is full");
  expect(text.match(/transcript of/g)).toHaveLength(3);
  expect(text).toMatch(/in [\d,]+ more chats/);
});

test("status and doctor tell what does not work, and that turns wait", async () => {
  memory.fail("archive", new Error("the disk is full"));
  await new Spool(join(folder, "lcm.db")).add({
    advancementKey: "k",
    admission: {
      agentId: "main",
      sessionId: "s1",
      sessionKey: session.key,
      entryId: "e1",
      activeMessagePosition: 0,
    },
    terminal: {
      agentId: "main",
      sessionId: "s1",
      sessionKey: session.key,
      entryId: "e2",
      activeMessagePosition: 1,
    },
    messages: [],
    sessionId: "s1",
  });
  for (const word of ["status", "doctor"]) {
    const text = await ask(word);
    expect(text).toContain("the disk is full");
    expect(text).toContain("1 turn waits");
  }
  memory.recover("archive");
});

test("doctor has nothing to say about an archive that works", async () => {
  expect(await ask("doctor")).toContain("Nothing is wrong");
  expect(await ask("doctor apply")).toContain("Nothing to repair");
});

test("status says nothing of a cache that the provider reported nothing of", async () => {
  await fill(120);
  await archive.compact({ conversationId: 1, budgetTokens: 8000, force: true });
  const answer = (eventId: string, cacheRead: number) => {
    const usage = { input: 900, output: 5, cacheRead, cacheWrite: 0 };
    return { eventId, message: { role: "assistant", content: [{ type: "text", text: eventId }], usage } };
  };
  await archive.ingest({ session, messages: [answer("zero", 0)] });
  const silent = await ask("status");
  expect(silent).toContain("Folded:");
  expect(silent).not.toContain("Cached");
  await archive.ingest({ session, messages: [answer("some", 900)] });
  expect(await ask("status")).toContain("Cached by the provider: 33 %");
});

test("doctor names damaged summaries, and doctor apply writes them anew", async () => {
  await archive.close();
  let isBroken = true;
  const complete: Complete = async ({ user }) => {
    if (isBroken) throw new Error("the model is away");
    const words = [...new Set(user.match(/[\w./-]{4,}/g))].slice(0, 150).join(" ");
    const text = `The model says: ${words}.\nExpand for details about: the crane`;
    return { kind: "text", text, model: { provider: "test", model: "m" }, inputTokens: 9, outputTokens: 9 };
  };
  const database = join(folder, "lcm.db");
  const config = { databasePath: database, summaryModel: "test/m", leafChunkTokens: 3000, freshTailCount: 4 };
  const { settings } = resolveSettings({ env: {}, config });
  archive = await openEngine({ database, settings, thread: false, complete });
  await fill(60);
  await archive.compact({ conversationId: 1, budgetTokens: 4000, force: true });
  const damaged = (await planRewrite(archive, { conversationId: 1, isDamaged: true })).length;
  expect(damaged).toBeGreaterThan(0);
  expect(await ask("doctor")).toMatch(
    /damaged: sum_[0-9a-f]{16} was written without a model after a failure/,
  );
  expect(await ask("doctor apply", {}, undefined, { isAuthorizedSender: false })).toContain(
    "Only senders known to the host",
  );
  expect(await ask("doctor apply")).toMatch(/^0 of \d+ damaged summar.*no better text could be had/s);
  isBroken = false;
  clearGuards(database);
  expect(await ask("doctor apply")).toMatch(new RegExp(`^${damaged} of ${damaged} damaged summar`));
  expect(await planRewrite(archive, { conversationId: 1, isDamaged: true })).toEqual([]);
  expect(await ask("doctor")).toContain("Nothing is wrong");
  expect(await ask("doctor apply")).toContain("Nothing to repair");
  expect((await archive.verify()).problems).toEqual([]);
});

/** What time would do: the guards of a model that failed are open for half an hour. */
function clearGuards(database: string): void {
  using db = new DatabaseSync(database);
  db.exec("UPDATE guards SET open_until = 0");
}

test("compact folds the chat, with instructions or through the host, for known senders only", async () => {
  await fill(120);
  expect(await ask("compact", {}, undefined, { isAuthorizedSender: false })).toContain(
    "Only senders known to the host",
  );
  memory.session(session.id).baseTokens = 100_000;
  expect(await ask("compact keep names")).toMatch(/^Folded: about [\d,]+ tokens became/);
  expect(await ask("status")).toMatch(/Folded: \d+ summar/);
  const compactCurrent = async () => ({ compacted: false, reason: "asked the host" });
  expect(await ask("compact", {}, undefined, { runtimeContext: { compactCurrent } })).toContain(
    "asked the host",
  );
});

test("compact folds for the room of the session's model, also after a restart, and says when that is not enough", async () => {
  await fill(120);
  expect(await ask("compact keep names")).toContain("room of the model is not known");
  const count = async (): Promise<number> =>
    (await archive.listConversations({ limit: 1 })).items[0]?.shownTokens ?? 0;
  const before = await count();
  // The room is stored with each turn: a process that has just started knows it.
  const last = { role: "user", content: "and now fold" };
  const turn = { messages: [{ eventId: "last", message: last }], budgetTokens: 10 * before };
  await archive.ingest({ session, ...turn });
  const whole = await count();
  expect(whole).toBeGreaterThan(before);
  expect(await ask("compact keep names")).toMatch(/^Folded: .* Every message is still there\.$/);
  expect(await count()).toBeLessThan(whole);
  // Too small for anything: what folding cannot reach is said.
  memory.session(session.id).baseTokens = 20;
  const answer = await ask("compact keep names");
  expect(answer).toContain("Target not reached: it was to have at most 14 tokens");
  expect(answer).toContain(`became ${(await count()).toLocaleString("en")}.`);
});

test("search finds messages of this chat, verify proves them, spend and config are short", async () => {
  await fill(3);
  expect(await ask("search harbour crane")).toMatch(/msg_\d+ .*crane/);
  expect(await ask("search")).toContain("Say what");
  expect(await ask("search zeppelin")).toContain("Nothing was found");
  expect(await ask("verify")).toContain("Proven: 6 messages");
  expect(await ask("spend")).toContain("No model was called");
  expect(await ask("config", { freshTailCount: 7 })).toContain("freshTailCount: 7");
  expect(await ask("rotate")).toContain("Nothing was changed");
  expect(await ask("backup", {}, undefined, { isAuthorizedSender: false })).toContain(
    "Only senders known to the host",
  );
});

test("backup makes a whole, proven copy where lcm backup list finds it", async () => {
  await fill(3);
  const answer = await ask("backup");
  expect(answer).toMatch(/^A proven copy with 6 messages and 0 large files is /);
  const [backup, ...others] = listBackups(join(folder, "lcm.db"));
  expect(others).toEqual([]);
  expect(answer).toContain(backup!.path);
  const restored = await openEngine({
    database: join(backup!.path, "lcm.db"),
    thread: false,
    readOnly: true,
  });
  expect((await restored.status()).messages).toBe(6);
  await restored.close();
});
