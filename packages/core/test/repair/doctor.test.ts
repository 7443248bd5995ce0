/** Each check finds what it is for, in a real archive that was damaged in that one way, and says the command that mends it. */
import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { resolveSettings } from "@lossless/core";
import { openEngine } from "lossless-claw";
import type { Engine, Settings } from "@lossless/core";
import { findDamage } from "../../src/repair/checks/summaries.ts";
import { examine } from "../../src/repair/doctor.ts";
import { createBackup, mend } from "lossless-claw/repair";
import type { DoctorOptions, Finding } from "../../src/repair/doctor.ts";
import { makeTemporaryFolder } from "@lossless/testkit";
import type { TemporaryFolder } from "@lossless/testkit";
import { editArchive } from "@lossless/testkit/edit-archive.ts";
import { describe, expect, test } from "vitest";

const session = { key: "agent:main:test", id: "session-1", owner: "main" };
const talk = Array.from({ length: 60 }, (_, i) => ({
  eventId: `e${i}`,
  message: {
    role: i % 2 === 0 ? "user" : "assistant",
    content: `step ${i}: the greenhouse sensor number ${i} reported ${20 + i} degrees, so valve_${i} was opened by ${i % 3 === 0 ? "Mara" : "Ben"}`,
  },
}));

function settingsOf(path: string, config: object = {}): Settings {
  return resolveSettings({ env: {}, config: { databasePath: path, freshTailCount: 4, ...config } }).settings;
}

/** An archive with summaries, handed over with what the doctor needs. */
async function withArchive(
  work: (options: DoctorOptions, folder: TemporaryFolder) => Promise<void>,
  prepare: (folder: TemporaryFolder) => void = () => undefined,
  config: object = {},
): Promise<void> {
  using folder = makeTemporaryFolder();
  const databasePath = folder.file("lcm.db");
  const filesDir = folder.file("lcm-files");
  const settings = settingsOf(databasePath, config);
  const first = await openEngine({ database: databasePath, settings, thread: false });
  await first.ingest({ session, messages: talk });
  await first.compact({ conversationId: 1, budgetTokens: 2_000, force: true });
  await first.close();
  prepare(folder);
  const engine: Engine = await openEngine({ database: databasePath, settings, thread: false });
  try {
    await work({ engine, settings, databasePath, filesDir }, folder);
  } finally {
    await engine.close();
  }
}

const edit = (sql: string) => (folder: TemporaryFolder) => {
  const database = new DatabaseSync(folder.file("lcm.db"));
  database.exec("PRAGMA foreign_keys = OFF");
  database.exec(sql);
  database.close();
};
const codes = (findings: readonly Finding[]): string[] =>
  [...new Set(findings.map((finding) => finding.code))].sort();
const find = (findings: readonly Finding[], code: string): Finding => {
  const found = findings.find((finding) => finding.code === code);
  if (!found) throw new Error(`no ${code} among ${codes(findings).join(", ")}`);
  return found;
};

describe("the doctor", () => {
  test("has nothing to say of a healthy archive but that it has no backup", async () => {
    await withArchive(async (options) => {
      const report = await examine(options);
      expect(codes(report.findings)).toEqual(["backup_old"]);
      expect(report.ok).toBe(true);
    });
  });

  test("passes on what the proof finds", async () => {
    await withArchive(async (options) => {
      const report = await examine(options);
      expect(report.ok).toBe(false);
      expect(codes(report.findings)).toContain("proof_missing");
    }, edit("DELETE FROM messages WHERE seq = 7"));
  });

  test("finds compaction that does not get paid, and closes that of an ended conversation", async () => {
    const owed =
      "INSERT INTO compaction_debt VALUES (1, 'threshold', 1000, 0, 4, 0, NULL, NULL, 'no answer')";
    await withArchive(async (options) => {
      const stuck = find((await examine(options)).findings, "debt_stuck");
      expect(stuck.step).toEqual({ kind: "compact", conversationId: 1, budgetTokens: 1000 });
    }, edit(owed));
    await withArchive(
      async (options) => {
        const { findings } = await examine(options);
        expect(codes(findings)).toContain("debt_inactive");
        const { backupPath, mended } = await mend(options, findings);
        expect(existsSync(backupPath ?? "")).toBe(true);
        expect(codes(mended)).toEqual(["debt_inactive"]);
        expect(codes((await examine(options)).findings)).toEqual([]);
      },
      (folder) => editArchive(folder.file("lcm.db"), `${owed}; UPDATE conversations SET archived_at = 1`),
    );
  });

  test("mends the index, permissions and files nobody names, and nothing else", async () => {
    const prepare = (folder: TemporaryFolder): void => {
      edit("INSERT INTO meta VALUES ('index_problem', 'a test')")(folder);
      chmodSync(folder.file("lcm.db"), 0o644);
      mkdirSync(folder.file("lcm-files/1"), { recursive: true, mode: 0o700 });
      chmodSync(folder.file("lcm-files"), 0o700);
      const orphan = folder.file("lcm-files/1/file_0123456789abcdef.txt");
      writeFileSync(orphan, "left by a crash", { mode: 0o600 });
      utimesSync(orphan, 1, 1);
    };
    await withArchive(async (options, folder) => {
      const { findings } = await examine(options);
      expect(codes(findings)).toEqual([
        "backup_old",
        "file_unreferenced",
        "index_degraded",
        "permissions_wide",
      ]);
      await mend(options, findings);
      expect(codes((await examine(options)).findings)).toEqual([]);
      expect(statSync(folder.file("lcm.db")).mode & 0o777).toBe(0o600);
      expect(existsSync(folder.file("lcm-files/1/file_0123456789abcdef.txt"))).toBe(false);
    }, prepare);
  });

  test("keeps a file that no message named when it looked, and one names now", async () => {
    const message = { role: "user", content: "a line of a log\n".repeat(30_000) };
    await withArchive(async (options, folder) => {
      const { engine, filesDir } = options;
      const { results } = await engine.ingest({ session, messages: [{ eventId: "log", message }] });
      const [blob = ""] = await engine.listBlobs();
      const content = readFileSync(join(filesDir, blob));
      await engine.forget({ messageIds: [results[0]?.messageId ?? 0], reason: "a test" });
      writeFileSync(join(filesDir, blob), content, { mode: 0o600 });
      utimesSync(join(filesDir, blob), 1, 1);
      writeFileSync(folder.file("lcm-files/1/notes.txt"), "not ours", { mode: 0o600 });
      utimesSync(folder.file("lcm-files/1/notes.txt"), 1, 1);
      const { findings } = await examine(options);
      expect(findings.flatMap(({ code, id }) => (code === "file_unreferenced" ? [id] : []))).toEqual([
        blob,
        "1/notes.txt",
      ]);
      await engine.ingest({ session, messages: [{ eventId: "the same log", message }] });
      const { mended } = await mend(options, findings);
      expect(codes(mended)).not.toContain("file_unreferenced");
      expect((await engine.verify()).problems).toEqual([]);
    });
  });

  test("leaves files that no message names in a folder that another archive may use too", async () => {
    const orphan = "shared/1/file_0123456789abcdef.txt";
    const prepare = (folder: TemporaryFolder): void => {
      mkdirSync(folder.file("shared/1"), { recursive: true, mode: 0o700 });
      chmodSync(folder.file("shared"), 0o700);
      writeFileSync(folder.file(orphan), "another archive's", { mode: 0o600 });
      utimesSync(folder.file(orphan), 1, 1);
      writeFileSync(folder.file("other.db"), "");
    };
    await withArchive(async (options, folder) => {
      const shared = { ...options, filesDir: folder.file("shared") };
      const { findings } = await examine(shared);
      expect(codes(findings)).toEqual(["backup_old"]);
      await mend(shared, findings);
      expect(existsSync(folder.file(orphan))).toBe(true);
    }, prepare);
  });

  test("removes what a killed backup left, unless somebody may be at work on it", async () => {
    const prepare = (folder: TemporaryFolder): void => {
      for (const [name, isOld] of [
        ["lcm.db.backup-20260101-000000.partial", true],
        ["lcm.db.backup-20260102-000000.partial", false],
      ] as const) {
        mkdirSync(folder.file(name), { mode: 0o700 });
        writeFileSync(join(folder.file(name), "lcm.db"), "half a copy", { mode: 0o600 });
        if (isOld)
          for (const path of [join(folder.file(name), "lcm.db"), folder.file(name)]) utimesSync(path, 1, 1);
      }
    };
    await withArchive(async (options, folder) => {
      const { findings } = await examine(options);
      expect(find(findings, "copy_unfinished").id).toContain("20260101");
      expect(codes(findings)).toEqual(["backup_old", "copy_unfinished"]);
      await mend(options, findings);
      expect(existsSync(folder.file("lcm.db.backup-20260101-000000.partial"))).toBe(false);
      expect(existsSync(folder.file("lcm.db.backup-20260102-000000.partial"))).toBe(true);
    }, prepare);
  });

  test("names a redaction key that is missing", async () => {
    const config = {
      redactPatterns: ["@keys"],
      redactedValues: "seal-or-drop",
      redactionKeyFile: "/nowhere/key",
    };
    await withArchive(
      async (options) => {
        const finding = find((await examine(options)).findings, "setting_impossible");
        expect(finding).toMatchObject({ id: "redactionKeyFile", severity: "warning" });
        expect(finding.message).toContain("there is no such file");
      },
      () => undefined,
      config,
    );
  });

  test("says what a model would cost for summaries made without one", async () => {
    const config = { summaryModel: "anthropic/some-model" };
    await withArchive(
      async (options) => {
        const report = await examine({ ...options, modelProblem: "no key" });
        expect(find(report.findings, "summary_extractive").cost?.inputTokens).toBeGreaterThan(700);
        expect(find(report.findings, "setting_impossible").message).toContain("no key");
        expect(report.cost.outputTokens).toBeGreaterThan(0);
      },
      () => undefined,
      config,
    );
  });

  test("finds open guards and settings that cannot work together", async () => {
    const until = Date.now() + 3_600_000;
    await withArchive(
      async (options) => {
        const { findings } = await examine(options);
        expect(find(findings, "guard_open").id).toBe("breaker:a/b");
        expect(find(findings, "setting_impossible").id).toBe("leafChunkTokens");
      },
      edit(`INSERT INTO guards VALUES ('breaker:a/b', 3, ${until}, 'down')`),
      { leafTargetTokens: 30_000, leafChunkTokens: 20_000 },
    );
  });
});

describe("a summary is doubtful", () => {
  const good = { content: "All went well.", model: "m", tokens: 10, sourceTokens: 100, isStale: false };
  test.each([
    ["[LCM fallback summary]\nsomething", "stand_in"],
    ["something\n[Truncated from 12345 tokens]", "truncated"],
    ["something [Truncated for context management]", "truncated"],
    ["   ", "empty"],
    ["<think>what do they want</think>All went well.", "reasoning"],
    [`They spoke of "[Truncated from 3 tokens]" ${"and then of other things ".repeat(10)}`, null],
    ["All went well.", null],
  ])("for %j: %s", (content, damage) => {
    expect(findDamage({ ...good, content })).toBe(damage);
  });

  test("for its size and its age", () => {
    expect(findDamage({ ...good, tokens: 100 })).toBe("not_smaller");
    expect(findDamage({ ...good, isStale: true })).toBe("stale");
  });
});

describe("summaries that do not prove", () => {
  test.each([
    ["counts", "UPDATE summaries SET messages = messages + 5, descendant_count = 9"],
    ["a text", "UPDATE summaries SET content = content || ' forged'"],
    ["a state", "UPDATE summaries SET state = 'retired' WHERE state = 'cover'"],
    ["a time, which only the seal shows", "UPDATE summaries SET latest_at = latest_at + 1 WHERE depth = 0"],
  ])("are removed by --fix, and the archive proves and can be backed up again (%s)", async (_name, sql) => {
    await withArchive(async (options) => {
      const before = await examine(options);
      expect(before.ok).toBe(false);
      await mend(options, before.findings);
      expect((await options.engine.verify()).problems).toEqual([]);
      const { items } = await options.engine.listMessages({ conversationId: 1, limit: 100 });
      expect(items).toHaveLength(talk.length);
      expect(
        await options.engine.compact({ conversationId: 1, budgetTokens: 2_000, force: true }),
      ).toMatchObject({
        compacted: true,
      });
      await options.engine.reindex();
      expect((await options.engine.verify()).problems).toEqual([]);
      const { engine, databasePath, filesDir } = options;
      expect(existsSync((await createBackup({ engine, databasePath, filesDir })).path)).toBe(true);
    }, edit(sql));
  });

  test("are removed with those above them and no others, after a copy of the archive as it was", async () => {
    await withArchive(
      async (options) => {
        const { engine } = options;
        const list = async () => (await engine.listSummaries({ conversationId: 1, limit: 100 })).items;
        const before = await list();
        const { findings } = await examine(options);
        const { mended, copyPath, backupPath } = await mend(options, findings);
        expect(codes(mended)).toEqual(["index_degraded", "proof_altered"]);
        expect(existsSync(backupPath ?? "")).toBe(true);
        expect((await engine.verify()).problems).toEqual([]);
        const left = new Set((await list()).map(({ summaryId }) => summaryId));
        const gone = before.filter(({ summaryId }) => !left.has(summaryId));
        expect(gone.filter(({ depth }) => depth === 0)).toHaveLength(1);
        expect(left.size).toBeGreaterThan(0);
        const copy = await openEngine({ database: join(copyPath ?? "", "lcm.db"), thread: false });
        expect((await copy.verify()).ok).toBe(false);
        await copy.close();
        const { items } = await engine.listMessages({ conversationId: 1, limit: 100 });
        expect(items).toHaveLength(talk.length);
      },
      edit(
        "UPDATE summaries SET content = content || ' forged' WHERE summary_id = (SELECT summary_id FROM summaries WHERE depth = 0 ORDER BY start_pos LIMIT 1 OFFSET 1)",
      ),
      { leafChunkTokens: 300, leafMinFanout: 3 },
    );
  });

  test("are left and not called mended while a fork shows one of them", async () => {
    const work = async (options: DoctorOptions, folder: TemporaryFolder): Promise<void> => {
      const { engine } = options;
      const fork = { ...session, key: "agent:main:fork", id: "session-2" };
      const eventIds = talk.map(({ eventId }) => eventId);
      await engine.fork({ session: fork, parentSessionId: session.id, eventIds });
      edit("UPDATE summaries SET content = content || ' forged'")(folder);
      const before = await examine(options);
      const drops = before.findings.filter(({ fix }) => fix?.kind === "drop_summaries");
      expect(drops).toHaveLength(1);
      const { mended } = await mend(options, drops);
      expect(mended).toEqual([]);
      expect(codes((await examine(options)).findings)).toEqual(codes(before.findings));
    };
    // So little room that the fork shows summaries, not what they were made from.
    await withArchive(work, undefined, { bootstrapMaxTokens: 1_200 });
  });
});
