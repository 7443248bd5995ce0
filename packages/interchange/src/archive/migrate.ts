/**
 * Copies a whole archive into another one, from any database to any other: conversation by conversation, as archive records that are never
 * written to a file. Compares both sides at the end.
 *
 * Invariants: the source is read from one snapshot and never changed. Conversations appear in the target complete and proven, or not at all, so
 * a kill at any moment leaves a target that verifies, and the next run continues with what is missing. A conversation of the target that did not
 * come from this source is never touched: if the source has it too, the migration is refused before anything is written. One page of rows and
 * one large file are in memory at a time.
 */
import { EngineError, hidePassword, makeImportId, settleAddress } from "@lossless/core";
import { deriveMessage } from "@lossless/core/formats";
import type { ListedConversation, Snapshot, Store } from "@lossless/core/ports";
import { renderRecord } from "./archive-records.ts";
import { readRecords } from "./export-archive.ts";
import type { ArchiveCounts } from "./export-archive.ts";
import { ArchiveIntake, nameConversation } from "./archive-intake.ts";

export interface MigrateOptions {
  readonly from: Store;
  readonly to: Store;
  /** The name of the source in the target, by which a later run recognises what it has already copied. */
  readonly name: string;
  /** Skips conversations that exist in the target, instead of refusing. */
  readonly skipExisting?: boolean | undefined;
  /** Approximate number of rows of conversations that are copied in one transaction. */
  readonly groupRows?: number | undefined;
  readonly now: number;
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: ((progress: MigrateProgress) => void) | undefined;
}

export interface MigrateProgress {
  readonly step: "copy" | "compare" | "verify";
  readonly done: number;
  readonly total: number;
}

export interface MigrateResult extends ArchiveCounts {
  /** Conversations that an earlier run copied and that are unchanged. */
  readonly presentBefore: number;
  /** Conversations of the target that were left alone. */
  readonly leftOut: readonly string[];
  /** Records that were found to be equal on both sides. */
  readonly compared: number;
  readonly dryRun: boolean;
  /** Data of the source that is not copied to the target. */
  readonly notCopied: NotCopied;
}

export interface NotCopied {
  /** A model recomputes them. */
  readonly vectors: number;
  /** Records of model calls, which caps and `lcm spend` count. */
  readonly modelCalls: number;
  /** Pending folds; the next turn records them again. */
  readonly debts: number;
}

async function countNotCopied(from: Store): Promise<NotCopied> {
  const [{ spaces }, modelCalls, debts] = await Promise.all([
    from.countVectors(),
    from.countSpendCalls(0),
    from.listDebts(),
  ]);
  return { vectors: spaces.reduce((sum, { vectors }) => sum + vectors, 0), modelCalls, debts: debts.length };
}

/** The name of a source in its target. */
export const nameOrigin = (database: string): string => hidePassword(settleAddress(database));

interface Pair {
  readonly source: ListedConversation;
  /** How many with the same owner, key and age come before it. */
  readonly nth: number;
  /** Its conversation in the target, as it was found. */
  readonly target: ListedConversation | null;
}

/** Enough rows that the cost of a transaction is negligible. */
const GROUP_ROWS = 5_000;

export async function migrateArchive(options: MigrateOptions): Promise<MigrateResult> {
  return options.from.withSnapshot(async (source) => {
    const plan = await makePlan(source, options.to, options);
    return new Migration(source, options).run(plan);
  });
}

/** What a migration would copy. `null`: the target does not exist yet. */
export async function planMigration(
  options: Omit<MigrateOptions, "to" | "now"> & { readonly to: Store | null },
): Promise<MigrateResult> {
  return options.from.withSnapshot(async (source) => {
    const { missing, present, leftOut } = await makePlan(source, options.to, options);
    const ids = missing.map((pair) => pair.source.conversationId);
    const counted = await options.from.countMessages(ids);
    return {
      conversations: missing.length,
      messages: counted.reduce((sum, { messages, revisions }) => sum + messages + revisions, 0),
      summaries: missing.reduce((sum, pair) => sum + pair.source.summaries, 0),
      files: 0,
      presentBefore: present.length,
      leftOut,
      compared: 0,
      dryRun: true,
      notCopied: await countNotCopied(options.from),
    };
  });
}

interface MigrationPlan {
  /** To be copied or continued. */
  readonly missing: readonly Pair[];
  /** Copied by an earlier run, up to what the source had then. */
  readonly present: readonly Pair[];
  /** Conversations of the target itself. */
  readonly leftOut: readonly string[];
  readonly importId: string;
}

async function makePlan(
  source: Snapshot,
  to: Store | null,
  { name, skipExisting = false }: Pick<MigrateOptions, "name" | "skipExisting">,
): Promise<MigrationPlan> {
  const marks = ((await to?.listImports()) ?? []).filter((mark) => mark.source === name);
  const ours = new Set(marks.map(({ conversationId }) => conversationId));
  const targets = (await to?.listMoved({})) ?? [];
  const pairs = pairUp(await source.listMoved({}), targets);
  const isOurs = ({ target }: Pair): boolean => target !== null && ours.has(target.conversationId);
  const isActive = findActive(
    targets,
    pairs.filter((pair) => isOurs(pair)),
  );
  const [taken, free] = split(pairs, (pair) =>
    pair.target === null ? isActive(pair.source) : !isOurs(pair) && pair.target.rows > 0,
  );
  if (taken.length > 0 && !skipExisting) throw refuse(name, taken);
  const [present, missing] = await separate(source, to, free);
  const leftOut = taken.map((pair) => pair.source.sessionKey);
  return { missing, present, leftOut, importId: marks[0]?.importId ?? makeImportId() };
}

function refuse(name: string, taken: readonly Pair[]): EngineError {
  const keys = taken.slice(0, 5).map(({ source }) => source.sessionKey);
  const more = taken.length > keys.length ? ` and ${taken.length - keys.length} more` : "";
  return new EngineError(
    "usage",
    `cannot migrate ${name}: the target has these conversations already: ${keys.join(", ")}${more}`,
    { step: { kind: "skip_or_choose_target" } },
  );
}

class Migration {
  readonly #source: Snapshot;
  readonly #options: MigrateOptions;
  readonly #counts: ArchiveCounts = emptyCounts();

  constructor(source: Snapshot, options: MigrateOptions) {
    this.#source = source;
    this.#options = options;
  }

  async run({ missing, present, leftOut, importId }: MigrationPlan): Promise<MigrateResult> {
    await this.#copy(missing, importId);
    const compared = await this.#compare([...missing, ...present]);
    await this.#verify();
    const notCopied = await countNotCopied(this.#options.from);
    return { ...this.#counts, presentBefore: present.length, leftOut, compared, dryRun: false, notCopied };
  }

  async #copy(missing: readonly Pair[], importId: string): Promise<void> {
    const total = missing.reduce((sum, { source }) => sum + source.rows, 0);
    let done = 0;
    for (const group of toGroups(missing, this.#options.groupRows ?? GROUP_ROWS)) {
      const counts = await this.#options.to.bringIn(
        async (into) => {
          const { name: path, now } = this.#options;
          const seen = new Map(group.map(({ source, nth }) => [nameConversation(source), nth]));
          const follows = group.every(({ source, target }) => (target?.rows ?? 0) <= source.rows);
          const how = { path, importId, derive: deriveMessage, now, follows };
          const intake = new ArchiveIntake(into, how, seen);
          const read = emptyCounts();
          let lineNumber = 0;
          for await (const record of this.#read(group, read, (rows) =>
            this.#tell("copy", done + rows, total),
          ))
            await intake.take(record, (lineNumber += 1));
          await intake.prove();
          const [problem] = intake.finish(0).problems;
          if (problem !== undefined)
            throw new EngineError("invalid_input", `cannot migrate ${path}: ${problem.message}`, {
              hint: "the target was changed meanwhile; run it again",
            });
          return read;
        },
        { isRepeatable: true },
      );
      for (const key of Object.keys(counts) as (keyof ArchiveCounts)[]) this.#counts[key] += counts[key];
      done += group.reduce((sum, { source }) => sum + source.rows, 0);
    }
  }

  async *#read(
    group: readonly Pair[],
    counts: ArchiveCounts,
    onRows: (rows: number) => void,
  ): ReturnType<typeof readRecords> {
    const conversationIds = group.map(({ source }) => source.conversationId);
    const onProgress = ({ done }: { readonly done: number }): void => onRows(done);
    for await (const record of readRecords(this.#source, { conversationIds, onProgress }, counts)) {
      this.#checkSignal();
      yield record;
    }
  }

  /** Reads both sides again, side by side. Looks up the target's conversations again. */
  async #compare(pairs: readonly Pair[]): Promise<number> {
    const total = pairs.reduce((sum, { source }) => sum + source.rows, 0);
    const found = Map.groupBy(await this.#options.to.listMoved({}), nameConversation);
    let [records, done] = [0, 0];
    for (const { source, nth } of pairs) {
      const target = found.get(nameConversation(source))?.[nth];
      if (target === undefined) throw differ(source, "it is not there");
      records += await this.#compareOne(source, target, (rows) => this.#tell("compare", done + rows, total));
      done += source.rows;
    }
    return records;
  }

  #compareOne(
    source: ListedConversation,
    target: ListedConversation,
    onRows: (rows: number) => void,
  ): Promise<number> {
    const onProgress = ({ done }: { readonly done: number }): void => onRows(done);
    return this.#options.to.withSnapshot(async (there) => {
      const chosen = { conversationIds: [target.conversationId] };
      const others = readRecords(there, chosen, emptyCounts());
      let records = 0;
      const own = { conversationIds: [source.conversationId], onProgress };
      for await (const record of readRecords(this.#source, own, emptyCounts())) {
        this.#checkSignal();
        const other = await others.next();
        records += 1;
        if (other.done === true || renderRecord(other.value) !== renderRecord(record))
          throw differ(source, `its record ${records} is not the same on both sides`);
      }
      if ((await others.next()).done !== true) throw differ(source, "the target has more of it");
      return records;
    });
  }

  /** Derived data of the target, including its index, must prove there. */
  async #verify(): Promise<void> {
    const { to } = this.#options;
    await to.flushIndex();
    const { problems } = await to.verify(deriveMessage, (done, total) => this.#tell("verify", done, total));
    const [problem] = problems;
    if (problem === undefined) return;
    throw new EngineError(
      "verification_failed",
      `cannot finish the migration of ${this.#options.name}: the target does not verify: ${problem.message}`,
      { step: { kind: "verify" } },
    );
  }

  #tell(step: MigrateProgress["step"], done: number, total: number): void {
    this.#options.onProgress?.({ step, done, total });
  }

  #checkSignal(): void {
    if (this.#options.signal?.aborted !== true) return;
    throw new EngineError("aborted", `cannot finish the migration of ${this.#options.name}: cancelled`, {
      hint: "run it again: it continues with the missing conversations",
    });
  }
}

const emptyCounts = (): ArchiveCounts => ({ conversations: 0, messages: 0, summaries: 0, files: 0 });

/** Finds each conversation's counterpart, as an import would. */
function pairUp(sources: readonly ListedConversation[], targets: readonly ListedConversation[]): Pair[] {
  const found = Map.groupBy(targets, nameConversation);
  const seen = new Map<string, number>();
  return sources.map((source) => {
    const identity = nameConversation(source);
    const nth = seen.get(identity) ?? 0;
    seen.set(identity, nth + 1);
    return { source, nth, target: found.get(identity)?.[nth] ?? null };
  });
}

/** Whether the target has another active conversation of the same family. One of ours that was archived in the source since will be archived there, too. */
function findActive(
  targets: readonly ListedConversation[],
  ours: readonly Pair[],
): (source: ListedConversation) => boolean {
  const nameKey = ({ owner, sessionKey }: ListedConversation): string => JSON.stringify([owner, sessionKey]);
  const ended = new Set(
    ours.flatMap(({ source, target }) => (source.archivedAt === null ? [] : target?.conversationId)),
  );
  const isLasting = ({ archivedAt, conversationId }: ListedConversation): boolean =>
    archivedAt === null && !ended.has(conversationId);
  const active = new Set(targets.filter(isLasting).map(nameKey));
  return (source) => source.archivedAt === null && active.has(nameKey(source));
}

/** Separates conversations whose target equals the source, as far as that is known without reading rows, from the others. */
async function separate(
  source: Snapshot,
  to: Store | null,
  pairs: readonly Pair[],
): Promise<[present: Pair[], missing: Pair[]]> {
  if (to === null) return [[], [...pairs]];
  const present = await to.withSnapshot(async (there) => {
    const found = new Set<Pair>();
    for (const pair of pairs)
      if (pair.target !== null && (await isAsFar(source, pair.source, there, pair.target))) found.add(pair);
    return found;
  });
  return split(pairs, (pair) => present.has(pair));
}

function split<T>(all: readonly T[], isFirst: (one: T) => boolean): [T[], T[]] {
  return [all.filter(isFirst), all.filter((one) => !isFirst(one))];
}

async function isAsFar(
  here: Snapshot,
  source: ListedConversation,
  there: Snapshot,
  target: ListedConversation,
): Promise<boolean> {
  const describe = ({ conversationId: _id, lastAt: _lastAt, ...facts }: ListedConversation): string =>
    renderRecord({ record: "conversation", number: 0, ...facts });
  if (describe(source) !== describe(target)) return false;
  const own = await here.readMovedSessions([source.conversationId]);
  const other = await there.readMovedSessions([target.conversationId]);
  return JSON.stringify(own) === JSON.stringify(other);
}

/** Groups the conversations that are copied in one transaction. Conversations that only their order tells apart go into different groups. */
function toGroups(pairs: readonly Pair[], groupRows: number): Pair[][] {
  const groups: Pair[][] = [];
  let rows = Number.POSITIVE_INFINITY;
  let names = new Set<string>();
  for (const pair of pairs) {
    const name = nameConversation(pair.source);
    if (rows + pair.source.rows > groupRows || names.has(name)) {
      groups.push([]);
      [rows, names] = [0, new Set()];
    }
    groups.at(-1)?.push(pair);
    names.add(name);
    rows += pair.source.rows;
  }
  return groups;
}

function differ({ sessionKey }: ListedConversation, why: string): EngineError {
  return new EngineError(
    "verification_failed",
    `cannot finish the migration: ${sessionKey}: ${why}; something was stored in the target meanwhile, or one side is damaged`,
    {
      step: { kind: "verify_both" },
    },
  );
}
