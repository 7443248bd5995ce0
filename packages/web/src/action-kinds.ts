/**
 * The actions of the page, each identical to the command of the same name: both use the one implementation in the engine and in `repair/`.
 * Preparing changes nothing; it returns a preview and a function that does exactly that.
 */
import { EngineError, formatMessageId, isServerAddress } from "@lossless/core";
import type { Engine, Scope, Settings } from "@lossless/core";
import { examine, listBackups, planRewrite, previewForget, rewriteAll } from "@lossless/core/repair";
import { applyForget, createBackup, mend } from "lossless-claw/repair";
import type {
  DoctorOptions,
  ForgetSelection,
  Receipt,
  RewriteSelection,
  RewriteTarget,
} from "@lossless/core/repair";
import { countOf, diffLines, formatBytes, formatCount, renderCommandLine } from "@lossless/core/doors";
import type { ActionPreview, ActionResult, ActionRequest } from "./api-types.ts";

export interface ActionOptions {
  readonly engine: Engine;
  readonly scope: Scope;
  readonly settings: Settings;
  /** The model that regenerates summaries; null: the engine does it itself. */
  readonly model: string | null;
}

export interface Prepared {
  readonly preview: Omit<ActionPreview, "confirmation">;
  readonly isEmpty: boolean;
  /** What must be unchanged when it is done. */
  readonly boundTo: unknown;
  readonly run: (signal: AbortSignal) => Promise<Partial<ActionResult> & { readonly title: string }>;
}

export function prepare(options: ActionOptions, request: ActionRequest): Promise<Prepared> {
  switch (request.action) {
    case "backup":
      return prepareBackup(options);
    case "mend":
      return prepareMend(options);
    case "fold":
      return prepareFold(options, request.conversationId);
    case "dissolve":
      return prepareDissolve(options, request.summaryId);
    case "rewrite":
      return prepareRewrite(options, request);
    case "repair":
      return prepareRepair(options, request.conversationId);
    case "forget":
      return prepareForget(options, request);
  }
}

const COMMON = { lines: [], warning: null, mustType: null } as const;

async function prepareBackup({ engine, scope, settings }: ActionOptions): Promise<Prepared> {
  const { databasePath, largeFilesDir: filesDir } = settings;
  const { databaseBytes, filesBytes } = await engine.status(scope);
  const backups = listBackups(databasePath);
  return {
    preview: {
      ...COMMON,
      title: "Back up the archive",
      facts: [
        ["Copies", `${formatBytes(databaseBytes + filesBytes)}, ${nameBackupPlace(databasePath)}`],
        ["Then", "verifies the copy: every message in it must be complete"],
        ["Existing", countOf(backups.length, "backup")],
      ],
      lines: backups.map(({ path, bytes }) => `${path}  ${formatBytes(bytes)}`),
      command: renderCommand("backup"),
      verb: "Back up",
    },
    isEmpty: false,
    // Messages may arrive meanwhile; a backup includes them.
    boundTo: null,
    run: async () => {
      const report = await createBackup({ engine, databasePath, filesDir });
      return {
        title: "Backed up and verified",
        facts: [
          ["Path", report.path],
          ["Holds", `${countOf(report.messages, "message")}, ${countOf(report.files, "large file")}`],
          ["Size", formatBytes(report.bytes)],
        ],
      };
    },
  };
}

const nameBackupPlace = (databasePath: string): string =>
  isServerAddress(databasePath) ? "to an archive file on this machine" : `beside ${databasePath}`;

async function prepareMend({ engine, settings }: ActionOptions): Promise<Prepared> {
  const { databasePath, largeFilesDir: filesDir } = settings;
  const options: DoctorOptions = { engine, settings, databasePath, filesDir };
  const { findings } = await examine(options);
  const mendable = findings.filter(({ fix }) => fix !== undefined);
  return {
    preview: {
      ...COMMON,
      title: "Fix what is safe to fix",
      facts: [
        ["Mends", countOf(mendable.length, "finding")],
        ["First", "a backup, unless only permissions or unproven summaries are fixed"],
        ["Untouched", "every message, and every summary of a conversation whose summaries are proven"],
      ],
      lines: mendable.map(({ code, message }) => `${code}: ${message}`),
      command: renderCommand("doctor", "--fix"),
      verb: "Mend",
    },
    isEmpty: mendable.length === 0,
    boundTo: mendable.map(({ code, id }) => [code, id]),
    run: async () => {
      const { backupPath, mended } = await mend(options, mendable);
      const { counts } = await examine(options);
      return {
        title: `${countOf(mended.length, "finding")} mended`,
        facts: [
          ["Backup", backupPath ?? "none was needed"],
          ["Left", `${countOf(counts.error, "error")}, ${countOf(counts.warning, "warning")}`],
        ],
      };
    },
  };
}

/** The budget that the view of the context starts with. */
const FOLD_BUDGET = 32_000;

async function prepareFold(
  { engine, scope, model }: ActionOptions,
  conversationId: number,
): Promise<Prepared> {
  const conversation = await engine.readConversation({ ...scope, conversationId });
  if (conversation === null) throw new EngineError("not_found", `cannot find conversation ${conversationId}`);
  const { heading, shownMessages, shownTokens, foldRevision } = conversation;
  return {
    preview: {
      ...COMMON,
      title: `Fold ${heading}`,
      facts: [
        ["In context", `${countOf(shownMessages, "message")}, ${formatCount(shownTokens)} tokens`],
        ["Folds", `everything but the newest messages, for a budget of ${formatCount(FOLD_BUDGET)} tokens`],
        ["With", model ?? "no model: the engine writes the summaries itself"],
        [
          "Costs",
          model === null ? "nothing" : `at most about ${formatCount(shownTokens)} tokens read by the model`,
        ],
        ["The messages", "all stay in the archive; lcm dissolve puts them back into the context"],
      ],
      warning: model === null ? null : `The older messages are sent to ${model}.`,
      command: renderCommand(
        "compact",
        "--conversation",
        String(conversationId),
        "--budget",
        "32k",
        "--force",
      ),
      verb: "Fold",
    },
    isEmpty: shownMessages === 0,
    boundTo: [conversationId, foldRevision],
    run: async (signal) => {
      const done = await engine.compact({
        ...scope,
        conversationId,
        budgetTokens: FOLD_BUDGET,
        force: true,
        signal,
      });
      return {
        title: done.compacted
          ? `${countOf(done.summaryIds.length, "summary", "summaries")} written`
          : "Nothing was folded",
        facts: [
          ["In context", `${formatCount(done.tokensBefore)} tokens became ${formatCount(done.tokensAfter)}`],
          ["Why", done.reason],
        ],
      };
    },
  };
}

async function prepareDissolve({ engine, scope }: ActionOptions, summaryId: string): Promise<Prepared> {
  const node = await engine.readSummary({ ...scope, summaryId });
  if (node === null) throw new EngineError("not_found", `cannot find summary ${summaryId}`);
  const report = await engine.dissolveSummary({ summaryId, dryRun: true });
  if (report === null) {
    const above = node.derivedIds[0];
    throw new EngineError("usage", `cannot dissolve ${summaryId}: it is not in the context`, {
      hint: above === undefined ? "choose one that is" : `dissolve ${above} first, which was made from it`,
    });
  }
  const { sources, tokensBefore, tokensAfter, ordinal, itemsBehind } = report;
  return {
    preview: {
      ...COMMON,
      title: `Dissolve ${summaryId}`,
      facts: [
        ["Context", `${formatCount(tokensBefore)} tokens become ${formatCount(tokensAfter)}`],
        [
          "Place",
          `item ${formatCount(ordinal)}; ${countOf(itemsBehind, "item")} after it move back by ${formatCount(sources.length - 1)}`,
        ],
        ["The summary", "is kept, retired; the next fold may make a new one"],
      ],
      lines: sources.map(
        ({ id, tokens, isShown }) => `${id}  ${formatCount(tokens)} tokens${isShown ? "" : ", hidden"}`,
      ),
      command: renderCommand("dissolve", summaryId, "--apply"),
      verb: "Dissolve",
    },
    isEmpty: false,
    boundTo: report,
    run: async () => {
      const done = await engine.dissolveSummary({ summaryId, dryRun: false });
      if (done === null)
        throw new EngineError("usage", `cannot dissolve ${summaryId}: it is not in the context`);
      return {
        title: `${countOf(done.sources.length, "source")} put back`,
        facts: [
          ["Context", `${formatCount(done.tokensBefore)} tokens became ${formatCount(done.tokensAfter)}`],
        ],
      };
    },
  };
}

async function prepareRewrite(
  options: ActionOptions,
  { summaryId, isSubtree }: { readonly summaryId: string; readonly isSubtree: boolean },
): Promise<Prepared> {
  const node = await options.engine.readSummary({ ...options.scope, summaryId });
  if (node === null) throw new EngineError("not_found", `cannot find summary ${summaryId}`);
  const { conversationId } = node;
  return prepareWriting(options, [{ conversationId, summaryId, isSubtree }], {
    title: `Regenerate ${summaryId}${isSubtree ? " and everything below it" : ""}`,
    command: renderCommand("rewrite", "--summary", summaryId, ...(isSubtree ? ["--subtree"] : []), "--apply"),
    mustHeal: true,
  });
}

async function prepareRepair(options: ActionOptions, conversationId: number | null): Promise<Prepared> {
  const ids = conversationId === null ? await listConversationIds(options) : [conversationId];
  return prepareWriting(
    options,
    ids.map((id) => ({ conversationId: id, isDamaged: true })),
    {
      title: "Regenerate damaged summaries",
      command: renderCommand(
        "repair",
        ...(conversationId === null ? ["--all"] : ["--conversation", String(conversationId)]),
        "--apply",
      ),
      mustHeal: true,
    },
  );
}

async function listConversationIds({ engine, scope }: ActionOptions): Promise<number[]> {
  const ids: number[] = [];
  for (let after: string | null = null; ;) {
    const page = await engine.listConversations({ ...scope, after, limit: 1000 });
    ids.push(...page.items.map((row) => row.conversationId));
    if (page.next === null) return ids;
    after = page.next;
  }
}

async function prepareWriting(
  { engine, model }: ActionOptions,
  selections: readonly RewriteSelection[],
  { title, command, mustHeal }: { title: string; command: string; mustHeal: boolean },
): Promise<Prepared> {
  const targets: RewriteTarget[] = [];
  for (const selection of selections) targets.push(...(await planRewrite(engine, selection)));
  const reads = targets.reduce((sum, { sourceTokens }) => sum + sourceTokens, 0);
  return {
    preview: {
      ...COMMON,
      title,
      facts: [
        ["Writes", countOf(targets.length, "summary", "summaries")],
        ["With", model ?? "no model: the engine writes them itself"],
        ["Costs", model === null ? "nothing" : `about ${formatCount(reads)} tokens read by the model`],
        ["The old texts", "are kept, retired"],
      ],
      lines: targets.map(
        ({ summaryId, depth, tokens, sourceTokens, damage }) =>
          `${summaryId}  depth ${depth}, ${formatCount(tokens)} tokens from ${formatCount(sourceTokens)}${damage === null ? "" : `: ${damage.replaceAll("_", " ")}`}`,
      ),
      warning:
        model === null || targets.length === 0
          ? null
          : `The sources of these summaries are sent to ${model}.`,
      command,
      verb: "Regenerate",
    },
    isEmpty: targets.length === 0,
    boundTo: targets,
    run: (signal) => writeAnew(engine, targets, { mustHeal, isExtractive: model === null, signal }),
  };
}

async function writeAnew(
  engine: Engine,
  targets: readonly RewriteTarget[],
  options: { mustHeal: boolean; isExtractive: boolean; signal: AbortSignal },
): Promise<Partial<ActionResult> & { readonly title: string }> {
  const changes: { name: string; lines: ReturnType<typeof diffLines> }[] = [];
  const lines: string[] = [];
  let written = 0;
  for await (const { oldId, newId, before, after } of rewriteAll({
    engine,
    targets,
    dryRun: false,
    ...options,
  })) {
    if (newId === null) {
      lines.push(`${oldId}: no better text was written; it stays`);
      continue;
    }
    written += 1;
    lines.push(
      `${oldId} is now ${newId}: ${formatCount(before.tokens)} tokens became ${formatCount(after.tokens)} (${after.model})`,
    );
    changes.push({ name: newId, lines: diffLines(before.content, after.content) });
  }
  return {
    title: `${countOf(written, "summary", "summaries")} of ${formatCount(targets.length)} regenerated`,
    lines,
    changes,
  };
}

async function prepareForget(
  { engine, scope, settings }: ActionOptions,
  request: Extract<ActionRequest, { action: "forget" }>,
): Promise<Prepared> {
  const { databasePath } = settings;
  const selection = toSelection(scope, request);
  const plan = await previewForget({ engine, databasePath, selection });
  const published = plan.summaries.filter(({ isPublished }) => isPublished).length;
  const reason = request.reason.trim() === "" ? "requested in the inspector" : request.reason.trim();
  return {
    preview: {
      title: "Forget permanently",
      facts: [
        [
          "Messages",
          `${formatCount(plan.messageIds.length)} in ${countOf(plan.conversationIds.length, "conversation")} (${formatBytes(plan.arrivalBytes)})`,
        ],
        ["Large files", formatCount(plan.files.length)],
        [
          "Summaries",
          `${formatCount(published)} regenerated, ${formatCount(plan.summaries.length - published)} erased`,
        ],
        ["Waiting turns", formatCount(plan.spoolFiles.length)],
        ["Reason", reason],
      ],
      lines: [
        ...plan.messageIds.map(formatMessageId),
        ...plan.files.map(({ fileId, byteSize }) => `${fileId}  ${formatBytes(byteSize)}`),
        ...plan.summaries.map(({ summaryId }) => summaryId),
      ],
      warning:
        "This cannot be undone. Backups made before still hold the text; the receipt names them. The host's own transcript is not touched.",
      command: renderForget(request),
      verb: "Forget",
      mustType: "forget",
    },
    isEmpty: plan.messageIds.length + plan.spoolFiles.length === 0,
    boundTo: [plan.messageIds, plan.spoolFiles, reason],
    run: async () => {
      const { receipt, receiptPath } = await applyForget({ engine, databasePath, selection, reason });
      const held = receipt.olderCopies.filter(({ holds }) => holds !== "no");
      return {
        title: `${countOf(receipt.messages.length, "message")} forgotten`,
        facts: [
          ["Receipt", receiptPath],
          ["Large files", `${formatCount(receipt.files.length)} removed`],
          ["Summaries", `${formatCount(receipt.summariesRemade.length)} regenerated`],
          ["Freed pages", describePages(receipt)],
        ],
        lines: held.map(
          ({ path, holds }) => `${holds === "yes" ? "still held by" : "may be held by"} ${path}`,
        ),
        warning: describeRest(receipt, held.length),
      };
    },
  };
}

function describePages({ isWiped, serverKeeps }: Receipt): string {
  if (serverKeeps === undefined) return isWiped ? "wiped" : "still in use by another process";
  return isWiped ? "cleared by the server, to be overwritten" : "not cleared: this role may not";
}

function describeRest({ isWiped, serverKeeps }: Receipt, held: number): string | null {
  const isOnServer = serverKeeps !== undefined;
  if (!isWiped)
    return isOnServer
      ? "This role may not vacuum the tables: have their owner run lcm doctor --fix."
      : "Another process kept old pages in use: stop it, then lcm doctor --fix wipes them.";
  const copies = held === 0 ? [] : [`${countOf(held, "copy", "copies")} made before still hold the text.`];
  const server = isOnServer ? ["The server's log, replicas and backups may hold it for longer."] : [];
  return [...copies, ...server].join(" ") || null;
}

function toSelection(scope: Scope, request: Extract<ActionRequest, { action: "forget" }>): ForgetSelection {
  if ("messageIds" in request) return { ...scope, messageIds: request.messageIds };
  const { pattern, conversationId } = request;
  return { ...scope, pattern, conversationIds: conversationId === null ? undefined : [conversationId] };
}

function renderForget(request: Extract<ActionRequest, { action: "forget" }>): string {
  if ("messageIds" in request)
    return renderCommand(
      "forget",
      ...request.messageIds.flatMap((id) => ["--message", formatMessageId(id)]),
      "--apply",
    );
  const { pattern, conversationId } = request;
  const where = conversationId === null ? [] : ["--conversation", String(conversationId)];
  return renderCommand("forget", "--pattern", pattern, ...where, "--apply");
}

const renderCommand = (...words: readonly string[]): string => `lcm ${renderCommandLine(words)}`;
