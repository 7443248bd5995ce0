/**
 * The search of one target, in its own process: mutates inputs of the corpus, keeps those that reach a new block of the source, and reports each
 * input that violates a rule, shortened. The current input is always on disk, so that the parent knows which one killed or hung this process.
 */
import { makeRandom } from "@lossless/testkit/random.ts";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inOrderOfWorth, readCorpus, writeCorpus } from "./corpus.ts";
import { Coverage } from "./coverage.ts";
import { mutate } from "./mutate.ts";
import { checkPrototypes } from "./target.ts";
import type { Probe, Target } from "./target.ts";
import { TARGETS } from "./targets.ts";

export interface SearchOrder {
  readonly target: string;
  readonly seed: number;
  readonly untilMs: number;
  readonly runs: number;
  /** Writes finds to the corpus. */
  readonly keeps: boolean;
  /** The file of the current input. */
  readonly current: string;
}

export type SearchNews =
  | { readonly kind: "failure"; readonly input: string; readonly error: string }
  | { readonly kind: "done"; readonly runs: number; readonly functions: number; readonly kept: number };

/** The number of different failures that ends a search. */
const MAX_FAILURES = 5;
/** Larger inputs are not kept: people must be able to read them. */
const MAX_KEPT_BYTES = 4_096;
/** Reading the counts costs about a millisecond: fast inputs share it. */
const GROUP = 8;
const QUICK_MS = 2;

export async function search(order: SearchOrder, tell: (news: SearchNews) => void): Promise<void> {
  const target = findTarget(order.target);
  const folder = mkdtempSync(join(tmpdir(), "lcm-fuzz-"));
  const coverage = new Coverage();
  const probe = await target.open(folder);
  try {
    const running = new Search(target, probe, coverage, order, tell);
    await running.begin();
    await running.go();
    tell({ kind: "done", ...(await running.end()) });
  } finally {
    await probe.close();
    coverage.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

export function findTarget(name: string): Target {
  const found = TARGETS.find((target) => target.name === name);
  if (found) return found;
  throw new Error(
    `no target is named "${name}"; there are ${TARGETS.map((target) => target.name).join(", ")}`,
  );
}

class Search {
  readonly #target: Target;
  readonly #probe: Probe;
  readonly #coverage: Coverage;
  readonly #order: SearchOrder;
  readonly #tell: (news: SearchNews) => void;
  readonly #random;
  readonly #failures = new Set<string>();
  #inputs: Buffer[] = [];
  #runs = 0;

  constructor(
    target: Target,
    probe: Probe,
    coverage: Coverage,
    order: SearchOrder,
    tell: (news: SearchNews) => void,
  ) {
    this.#target = target;
    this.#probe = probe;
    this.#coverage = coverage;
    this.#order = order;
    this.#tell = tell;
    this.#random = makeRandom(order.seed);
  }

  /** What the corpus reaches is not new. */
  async begin(): Promise<void> {
    for (const { input } of readCorpus(this.#target.name)) {
      await this.#try(input);
      this.#coverage.take();
      this.#inputs.push(input);
    }
  }

  async go(): Promise<void> {
    const { untilMs, runs } = this.#order;
    const until = Date.now() + untilMs;
    while (Date.now() < until && this.#runs < runs && this.#failures.size < MAX_FAILURES) {
      const group: Buffer[] = [];
      const startedAt = performance.now();
      do {
        group.push(this.#mutate());
        await this.#try(group.at(-1) ?? Buffer.alloc(0));
      } while (group.length < GROUP && performance.now() - startedAt < QUICK_MS * group.length);
      if (group.length === 1) this.#keepIfNew(group[0]);
      else if (this.#coverage.take({ keep: false }))
        for (const input of group) {
          await this.#try(input);
          this.#keepIfNew(input);
        }
    }
  }

  /** The inputs that together reach what all of them reach, preferring shorter ones. */
  async end(): Promise<{ runs: number; functions: number; kept: number }> {
    const { functions } = this.#coverage;
    const runs = this.#runs;
    if (!this.#order.keeps) return { runs, functions, kept: 0 };
    this.#coverage.forget();
    const found = this.#inputs.map((input) => ({ name: "0".repeat(12), input }));
    const needed: Buffer[] = [];
    for (const { input } of inOrderOfWorth([...readCorpus(this.#target.name), ...found])) {
      await this.#try(input);
      if (this.#coverage.take()) needed.push(input);
    }
    writeCorpus(this.#target.name, needed);
    return { runs, functions, kept: needed.length };
  }

  #mutate(): Buffer {
    // Recent finds lead further.
    const { length } = this.#inputs;
    const at =
      this.#random.below(3) === 0
        ? length - 1 - this.#random.below(Math.min(length, 8))
        : this.#random.below(length);
    const base = this.#inputs[at] ?? Buffer.alloc(0);
    return mutate(base, { random: this.#random, others: this.#inputs, words: this.#target.words });
  }

  #keepIfNew(input: Buffer | undefined): void {
    if (this.#coverage.take() && input !== undefined && input.length <= MAX_KEPT_BYTES)
      this.#inputs.push(input);
  }

  async #try(input: Buffer): Promise<void> {
    this.#runs++;
    const error = await this.#run(input);
    if (error === null || this.#failures.has(sameFailure(error))) return;
    this.#failures.add(sameFailure(error));
    const short = await this.#shorten(input, sameFailure(error));
    this.#tell({ kind: "failure", input: short.toString("base64"), error: error.stack ?? String(error) });
  }

  async #run(input: Buffer): Promise<Error | null> {
    writeFileSync(this.#order.current, input);
    return tryInput(this.#probe, input);
  }

  /** Removes pieces as long as the same failure shows. */
  async #shorten(input: Buffer, failure: string): Promise<Buffer> {
    let short = input;
    for (let size = short.length >> 1; size > 0; size >>= 1)
      for (let at = 0; at + size <= short.length;) {
        const less = Buffer.concat([short.subarray(0, at), short.subarray(at + size)]);
        const error = await this.#run(less);
        if (error !== null && sameFailure(error) === failure) short = less;
        else at += size;
      }
    return short;
  }
}

/** Null when every rule holds. */
export async function tryInput(probe: Probe, input: Buffer): Promise<Error | null> {
  let stray: unknown = null;
  const note = (error: unknown): void => {
    stray = error;
  };
  process.on("unhandledRejection", note).on("uncaughtException", note);
  try {
    await probe.run(input);
    checkPrototypes();
    if (stray !== null) throw stray;
    return null;
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  } finally {
    process.off("unhandledRejection", note).off("uncaughtException", note);
  }
}

/** Numbers and quoted texts differ from input to input. */
const sameFailure = (error: Error): string =>
  error.message
    .split("\n")[0]
    ?.replaceAll(/\d+|"[^"]*"|'[^']*'/g, "…")
    .slice(0, 80) ?? "";
