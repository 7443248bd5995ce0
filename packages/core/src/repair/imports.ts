/**
 * What imports stored, and removing it again: `lcm doctor imports`. An import is removed conversation by conversation: one is removed if
 * all its messages came with the imports to be removed, and nothing else needs it. Everything else stays, with the reason.
 *
 * Removing is not forgetting: the same files can be imported again, a copy of the archive is kept, and freed pages are not wiped.
 */
import type { Engine } from "../engine/engine.ts";
import { EngineError } from "../model/errors.ts";
import type { ConversationTies, ImportedPart, RemovedCounts } from "../store/repair.ts";
import type { ArchiveAccess } from "./archive-access.ts";
import { createRawCopy } from "./backup.ts";

export interface ListedImport {
  readonly importId: string;
  /** When it began. */
  readonly at: number;
  readonly sources: readonly string[];
  readonly conversationIds: readonly number[];
  /** Rows of messages it stored, revisions included. */
  readonly messages: number;
}

/** Imports that still have something in the archive, the newest first. */
export async function listImports(engine: Engine): Promise<ListedImport[]> {
  const imports = new Map<string, ImportedPart[]>();
  for (const part of await engine.listImports())
    imports.set(part.importId, [...(imports.get(part.importId) ?? []), part]);
  return [...imports].map(([importId, parts]) => ({
    importId,
    at: Math.min(...parts.map(({ at }) => at)),
    sources: [...new Set(parts.map(({ source }) => source))],
    conversationIds: parts.map(({ conversationId }) => conversationId),
    messages: parts.reduce((sum, { messages }) => sum + messages, 0),
  }));
}

export interface RemovalPlan {
  readonly importIds: readonly string[];
  readonly remove: readonly ConversationTies[];
  readonly keep: readonly { readonly conversationId: number; readonly reason: string }[];
}

export async function planRemoval(engine: Engine, importIds: readonly string[]): Promise<RemovalPlan> {
  const parts = await engine.listImports();
  for (const importId of importIds) {
    if (parts.some((part) => part.importId === importId)) continue;
    throw new EngineError("not_found", `cannot remove ${importId}: no import with this id left anything`, {
      step: { kind: "list", what: "imports" },
    });
  }
  const chosen = parts.filter(({ importId }) => importIds.includes(importId));
  const conversationIds = [...new Set(chosen.map(({ conversationId }) => conversationId))];
  return { importIds, ...decideRemoval(await engine.readTies({ conversationIds }), parts, importIds) };
}

/** Which conversations are removed, and why the others stay. Pure. */
export function decideRemoval(
  conversations: readonly ConversationTies[],
  parts: readonly ImportedPart[],
  importIds: readonly string[],
): Omit<RemovalPlan, "importIds"> {
  const keep = new Map<number, string>();
  const staysIf = (findReason: (ties: ConversationTies) => string | null): void => {
    for (const ties of conversations) {
      const reason = keep.has(ties.conversationId) ? null : findReason(ties);
      if (reason !== null) keep.set(ties.conversationId, reason);
    }
  };
  staysIf((ties) => describeOthers(ties, parts, importIds) ?? describeForgotten(ties));
  // A conversation that stays keeps those it needs, and these keep others in turn.
  for (let before = -1; before !== keep.size;) {
    before = keep.size;
    const isGone = (id: number): boolean =>
      !keep.has(id) && conversations.some(({ conversationId }) => conversationId === id);
    staysIf((ties) => describeNeed(ties, isGone));
  }
  return {
    remove: conversations.filter(({ conversationId }) => !keep.has(conversationId)),
    keep: [...keep].map(([conversationId, reason]) => ({ conversationId, reason })).sort(byConversation),
  };
}

const byConversation = (a: { conversationId: number }, b: { conversationId: number }): number =>
  a.conversationId - b.conversationId;

function describeOthers(
  { conversationId, messages }: ConversationTies,
  parts: readonly ImportedPart[],
  importIds: readonly string[],
): string | null {
  const here = parts.filter((part) => part.conversationId === conversationId);
  const sum = (list: readonly ImportedPart[]): number => list.reduce((all, part) => all + part.messages, 0);
  const isChosen = ({ importId }: ImportedPart): boolean => importIds.includes(importId);
  const missing = messages - sum(here.filter(isChosen));
  if (missing <= 0) return null;
  const others = here.filter((part) => !isChosen(part));
  const named = others.map(({ importId, messages: count }) => `${count} by ${importId}`);
  const live = missing - sum(others);
  const stored = [...named, ...(live > 0 ? [`${live} by something other than an import`] : [])];
  return `${missing} of its ${messages} messages were stored another way: ${stored.join(", ")}`;
}

/** Only a tombstone prevents a forgotten message from being imported again. */
const describeForgotten = ({ forgotten }: ConversationTies): string | null =>
  forgotten === 0
    ? null
    : `${forgotten} of its messages were forgotten, and must not come back with the next import`;

function describeNeed(
  { forks, sharesSessionWith }: ConversationTies,
  isGone: (conversationId: number) => boolean,
): string | null {
  const fork = forks.find((id) => !isGone(id));
  if (fork !== undefined) return `conversation ${fork} was forked from it`;
  const other = sharesSessionWith.find((id) => !isGone(id));
  return other === undefined ? null : `its session continues in conversation ${other}`;
}

export interface RemovalResult {
  readonly removed: RemovedCounts;
  /** The copy of the archive that was made first. */
  readonly copyPath: string;
}

/** Executes a plan, after copying the whole archive. */
export async function removeImports(
  options: { readonly engine: Engine; readonly databasePath: string; readonly filesDir: string },
  plan: RemovalPlan,
  access: ArchiveAccess,
): Promise<RemovalResult> {
  if (plan.remove.length === 0)
    throw new EngineError(
      "usage",
      "cannot remove the import: none of its conversations can be removed as a whole",
      {
        hint: "forget single messages instead",
      },
    );
  const copyPath = await createRawCopy(options, access);
  const removed = await options.engine.removeConversations({ expected: plan.remove });
  if (removed !== null) return { removed, copyPath };
  throw new EngineError("database_busy", "cannot remove the import: a conversation of it changed meanwhile", {
    hint: "run it again when the conversation is idle",
  });
}
