/**
 * A bundle for a bug report: versions, sizes, counts, findings and the settings that were changed. Never a word of a message or a summary,
 * no session key, no name, no address, no instruction: of text that is not ours only the length is included.
 */
import { hash } from "node:crypto";
import { homedir } from "node:os";
import type { Engine } from "../engine/engine.ts";
import type { Settings } from "../settings/settings.ts";
import { listBackups } from "./backup.ts";
import { examine } from "./doctor.ts";

export interface SupportOptions {
  readonly engine: Engine;
  readonly settings: Settings;
  /** Each setting's value if it is not set. */
  readonly defaults: Settings;
  readonly databasePath: string;
  readonly filesDir: string;
  readonly version: string;
  readonly now?: number;
}

/** Values that describe the engine and reveal nothing about the person. */
type Plain = string | number | boolean | null;

export async function buildSupportBundle(options: SupportOptions): Promise<Record<string, unknown>> {
  const { engine, settings, databasePath, filesDir, version } = options;
  const now = options.now ?? Date.now();
  const {
    databasePath: _path,
    conversation: _conversation,
    folding: _folding,
    guards,
    index,
    ...counts
  } = await engine.status();
  const { findings, counts: severities } = await examine({ engine, settings, databasePath, filesDir, now });
  return {
    kind: "lcm-support",
    version: 1,
    at: new Date(now).toISOString(),
    program: { version, node: process.versions.node, sqlite: process.versions["sqlite"] ?? null },
    system: { platform: process.platform, arch: process.arch },
    archive: { ...counts, index: index.kind },
    settings: listChanged(settings, options.defaults),
    findings: { ...severities, items: findings.map(({ code, severity }) => ({ code, severity })) },
    conversations: await listConversations(engine),
    debts: (await engine.listDebts()).map(({ attempts, requestedAt, lastFailure }) => ({
      attempts,
      ageHours: Math.round((now - requestedAt) / 3_600_000),
      hasFailed: lastFailure !== null,
    })),
    guards: guards.map(({ failures, openUntil, name }) => ({
      kind: name.split(":")[0],
      failures,
      openMinutes: Math.round((openUntil - now) / 60_000),
    })),
    spend: await engine.spend({ by: "purpose" }),
    backups: listBackups(databasePath).length,
  };
}

/** Settings that differ from their defaults. Texts and lists may contain anything, so only their length is included. */
function listChanged(settings: Settings, defaults: Settings): Record<string, Plain> {
  const changed: Record<string, Plain> = {};
  for (const [key, value] of flatten(settings)) {
    const byDefault = new Map(flatten(defaults)).get(key);
    if (JSON.stringify(value) === JSON.stringify(byDefault)) continue;
    changed[key] =
      typeof value === "number" || typeof value === "boolean" || value === null
        ? value
        : `set, ${JSON.stringify(value)?.length ?? 0} characters`;
  }
  return changed;
}

function flatten(value: object, prefix = ""): [string, unknown][] {
  return Object.entries(value).flatMap(([key, inner]) =>
    inner !== null && typeof inner === "object" && !Array.isArray(inner)
      ? flatten(inner as object, `${prefix}${key}.`)
      : [[`${prefix}${key}`, inner] as [string, unknown]],
  );
}

const MAX_CONVERSATIONS = 200;

async function listConversations(engine: Engine): Promise<object[]> {
  const { items } = await engine.listConversations({ limit: MAX_CONVERSATIONS });
  return items.map((row) => ({
    id: row.conversationId,
    // The same key has the same number in every bundle of one archive, and means nothing outside it.
    key: hash("sha256", `${homedir()}:${row.owner}:${row.sessionKey}`).slice(0, 8),
    messages: row.messages,
    shownMessages: row.shownMessages,
    shownTokens: row.shownTokens,
    summaries: row.summaries,
    bytes: row.arrivalBytes,
    isArchived: row.archivedAt !== null,
    archiveCause: row.archiveCause,
  }));
}
