/**
 * The executed blocks of the source, as V8 counts them. For every function the parts that no input has reached are kept; an input is new when it
 * makes one of them smaller, or calls a function for the first time.
 */
import { Session } from "node:inspector";
import type { Profiler } from "node:inspector";

const OWN = /\/packages\/[^/]+\/src\//;

type Span = readonly [from: number, to: number];

export class Coverage {
  readonly #session = new Session();
  /** Keyed by script and function. */
  #unreached = new Map<string, readonly Span[]>();

  constructor() {
    this.#session.connect();
    this.#post("Profiler.enable");
    this.#post("Profiler.startPreciseCoverage", { callCount: true, detailed: true });
  }

  get functions(): number {
    return this.#unreached.size;
  }

  forget(): void {
    this.#unreached = new Map();
  }

  /** Reads what ran since the last call. Returns whether any of it had not run before; `keep: false` does not record it. */
  take({ keep } = { keep: true }): boolean {
    let isNew = false;
    const { result } = this.#post("Profiler.takePreciseCoverage") as Profiler.TakePreciseCoverageReturnType;
    for (const { url, functions } of result.filter((script) => OWN.test(script.url)))
      for (const { ranges } of functions) {
        const [whole] = ranges;
        if (whole === undefined || whole.count === 0) continue;
        const key = `${url}:${whole.startOffset}-${whole.endOffset}`;
        const known = this.#unreached.get(key);
        const left = known ? intersect(known, listUnreached(ranges)) : listUnreached(ranges);
        if (known && measure(left) === measure(known)) continue;
        isNew = true;
        if (keep) this.#unreached.set(key, left);
      }
    return isNew;
  }

  close(): void {
    this.#session.disconnect();
  }

  #post(method: string, params: object = {}): unknown {
    let answer: unknown;
    this.#session.post(method, params, (error, result) => {
      if (error) throw error;
      answer = result;
    });
    return answer;
  }
}

/** Ranges are nested and in order; an inner one overrides the one around it. */
function listUnreached(ranges: readonly Profiler.CoverageRange[]): Span[] {
  const spans: Span[] = [];
  const edges = [...new Set(ranges.flatMap(({ startOffset, endOffset }) => [startOffset, endOffset]))].sort(
    (a, b) => a - b,
  );
  for (const [at, from] of edges.slice(0, -1).entries()) {
    const to = edges[at + 1] ?? from;
    const innermost = ranges.findLast(({ startOffset, endOffset }) => startOffset <= from && endOffset >= to);
    if (innermost?.count === 0) spans.push([from, to]);
  }
  return spans;
}

function intersect(some: readonly Span[], others: readonly Span[]): Span[] {
  return some.flatMap(([from, to]) =>
    others.flatMap(([start, end]): Span[] => {
      const both: Span = [Math.max(from, start), Math.min(to, end)];
      return both[0] < both[1] ? [both] : [];
    }),
  );
}

const measure = (spans: readonly Span[]): number => spans.reduce((sum, [from, to]) => sum + to - from, 0);
