/** Commands that change the disk, and how to tell whether an archive that a crash or a fault left behind is right. */
import { execFileSync } from "node:child_process";
import { hash } from "node:crypto";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { openEngine } from "lossless-claw";
import { makeTemporaryFolder } from "@lossless/testkit";
import { CRASH_SESSION } from "@lossless/testkit/crash-writer.ts";
import { writeOlderArchive } from "@lossless/testkit/older-archive.ts";
import { expect } from "vitest";
import { LCM, ROOT, SAMPLE } from "./support.ts";

const TURNS = join(ROOT, "packages/cli/test/turns-program.ts");

/** What is in an archive, by event id: a hash of the bytes, or "forgotten". */
export type Content = ReadonlyMap<string, string>;

export interface Command {
  readonly name: string;
  /** Begins without an archive. */
  readonly isNew?: true;
  /** Begins with a kept archive of this schema version. */
  readonly schema?: number;
  /** Prints the id of each event that is stored. */
  readonly acknowledges?: true;
  readonly run: (folder: string) => readonly string[];
  /** Whether an archive that a crash left is right, given what was there before, and the events that were acknowledged. */
  readonly allows: (left: Content, before: Content, acknowledged: readonly string[]) => boolean;
  readonly check?: (folder: string) => Promise<void>;
}

const lcm = (folder: string, ...args: readonly string[]): string[] => [
  LCM,
  ...args,
  "--db",
  join(folder, "lcm.db"),
];
const holds = (left: Content, wanted: Content): boolean =>
  [...wanted].every(([eventId, bytes]) => left.get(eventId) === bytes);
const isSame = (a: Content, b: Content): boolean => a.size === b.size && holds(a, b);

export const COMMANDS: readonly Command[] = [
  {
    name: "turns, into a new archive",
    isNew: true,
    acknowledges: true,
    run: (folder) => [TURNS, join(folder, "lcm.db"), "0", "8"],
    allows: (left, _before, acknowledged) => acknowledged.every((eventId) => left.has(eventId)),
  },
  {
    name: "turns, into an archive with a history",
    acknowledges: true,
    run: (folder) => [TURNS, join(folder, "lcm.db"), "40", "48"],
    allows: (left, before, acknowledged) =>
      holds(left, before) && acknowledged.every((eventId) => left.has(eventId)),
  },
  {
    name: "import of a transcript",
    run: (folder) => lcm(folder, "import", join(folder, "sample.jsonl")),
    allows: holds,
  },
  {
    name: "import of an archive",
    run: (folder) => lcm(folder, "import", join(folder, "other.lcmx")),
    // All of it or nothing.
    allows: (left, before) => holds(left, before) && [before.size, before.size + 5].includes(left.size),
  },
  {
    name: "compact",
    run: (folder) =>
      lcm(folder, "compact", "--conversation", "1", "--budget", "9000", "--force", "--no-model"),
    allows: isSame,
  },
  {
    name: "forget",
    run: (folder) => lcm(folder, "forget", "--message", "msg_3", "--apply"),
    allows: (left, before) =>
      left.size === before.size &&
      [...left].every(([id, bytes]) => bytes === before.get(id) || bytes === "forgotten"),
  },
  { name: "backup", run: (folder) => lcm(folder, "backup"), allows: isSame, check: checkBackups },
  {
    name: "upgrade of an older archive",
    schema: 12,
    run: (folder) => lcm(folder, "doctor", "--apply"),
    allows: isSame,
  },
  { name: "reindex", run: (folder) => lcm(folder, "reindex"), allows: isSame },
  {
    name: "export",
    run: (folder) => lcm(folder, "export", "--out", join(folder, "out.lcmx")),
    allows: isSame,
    check: async (folder) => {
      const path = join(folder, "out.lcmx");
      if (existsSync(path))
        expect(readFileSync(path, "utf8").trimEnd().split("\n").at(-1)).toContain('"record":"end"');
    },
  },
  {
    name: "restore",
    run: (folder) => lcm(folder, "restore", join(folder, "earlier"), "--yes"),
    // What was there before, or the backup, which lacks the last turns.
    allows: (left, before) =>
      isSame(left, before) || (left.size > 0 && left.size < before.size && holds(before, left)),
  },
];

async function checkBackups(folder: string): Promise<void> {
  for (const name of readdirSync(folder).filter((found) => /\.backup-\d{8}-\d{6}$/u.test(found)))
    expect((await readArchive(join(folder, name))).size).toBeGreaterThan(0);
}

/** An archive with folded messages, a large file, and a backup that is older than its last turns. */
export function buildArchive(folder: string): void {
  using away = makeTemporaryFolder("lcm-crash-");
  const other = away.path;
  mkdirSync(folder);
  run(folder, [TURNS, join(folder, "lcm.db"), "0", "24"]);
  run(folder, lcm(folder, "compact", "--conversation", "1", "--budget", "3000", "--force", "--no-model"));
  run(folder, lcm(folder, "backup", "--out", join(folder, "earlier")));
  run(folder, [TURNS, join(folder, "lcm.db"), "24", "30"]);
  run(other, [TURNS, join(other, "lcm.db"), "0", "4", "other"]);
  run(other, lcm(other, "export", "--out", join(folder, "other.lcmx")));
  const lines = readFileSync(SAMPLE, "utf8").split("\n").slice(0, 30);
  writeFileSync(join(folder, "sample.jsonl"), `${lines.join("\n")}\n`);
}

/** Puts what a command begins with into a folder, from the archive in `built`, and returns what is in it. */
export async function prepareFolder(command: Command, built: string, folder: string): Promise<Content> {
  if (command.isNew) {
    mkdirSync(folder);
    return new Map<string, string>();
  }
  if (command.schema === undefined) {
    cpSync(built, folder, { recursive: true });
    return readArchive(folder);
  }
  mkdirSync(folder);
  writeOlderArchive(command.schema, join(folder, "lcm.db"));
  // Reading upgrades it, so a copy is read.
  using copy = makeTemporaryFolder("lcm-crash-");
  writeOlderArchive(command.schema, copy.file("lcm.db"));
  return await readArchive(copy.path);
}

export const environmentOf = (folder: string): Record<string, string> => ({
  HOME: folder,
  OPENCLAW_STATE_DIR: join(folder, "state"),
});

function run(folder: string, args: readonly string[]): void {
  execFileSync(process.execPath, args, { env: { ...process.env, ...environmentOf(folder) }, stdio: "pipe" });
}

export async function readArchive(folder: string, allowed: readonly string[] = []): Promise<Content> {
  const engine = await openEngine({ database: join(folder, "lcm.db"), thread: false });
  try {
    const { problems } = await engine.verify();
    expect(problems.filter(({ code }) => !allowed.includes(code))).toEqual([]);
    const content = new Map<string, string>();
    for (const { conversationId, sessionKey } of (await engine.listConversations({ limit: 50 })).items) {
      const { items } = await engine.listMessages({ conversationId, limit: 500 });
      for (const { eventId, messageId, forgottenAt } of items) {
        const body = forgottenAt === null ? await engine.readMessage({ messageId }) : null;
        const name = sessionKey === CRASH_SESSION.key ? eventId : `${sessionKey} ${eventId}`;
        content.set(name, body === null ? "forgotten" : hash("sha256", body.bytes));
      }
    }
    return content;
  } finally {
    await engine.close();
  }
}

/** The events that a program has acknowledged by what it printed. */
export const listAcknowledged = (command: Command, printed: string): string[] =>
  command.acknowledges
    ? printed
        .trim()
        .split("\n")
        .filter((line) => line !== "")
    : [];
