/** Short texts of the kinds found in an agent's context, written for the token benchmark and its test. */

export const TOKEN_SAMPLES: readonly { readonly kind: string; readonly text: string }[] = [
  {
    kind: "English",
    text: `The nightly export failed again, and this time the cause is clear: the job holds one connection for each region, and the pool was
made for four. When the fifth region was added last week, the scheduler began to wait for a connection that never came back, so the
whole run timed out after thirty minutes and nothing was written. I see two ways out. We could raise the limit, which is quick but only
moves the problem to the next region, or we could let the regions share one connection and read them in turn, which makes the export
about ten percent slower and removes the limit for good. I would go with the second. Nobody reads the export before eight in the
morning, and it finishes at half past four even in the worst month. If you agree, I will write the change today, run it twice against
the copy of last month's data, and leave the old code behind a switch until Friday so that we can go back without a release.`,
  },
  {
    kind: "code, TypeScript",
    text: `import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";

interface RetryOptions {
  readonly attempts: number;
  readonly delayMs: number;
  onFailure?(error: unknown, attempt: number): void;
}

export async function withRetries<T>(task: () => Promise<T>, options: RetryOptions): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await task();
    } catch (error) {
      options.onFailure?.(error, attempt);
      if (attempt >= options.attempts) throw error;
      await new Promise((resolve) => setTimeout(resolve, options.delayMs * 2 ** attempt));
    }
  }
}

/** Rewrites the version in every manifest under the root; returns the files that changed. */
export async function bumpVersions(root: string, files: readonly string[], version: string): Promise<string[]> {
  const changed: string[] = [];
  for (const file of files) {
    const target = path.join(root, file);
    const manifest = JSON.parse(await readFile(target, "utf8")) as { version?: string };
    if (manifest.version === version) continue;
    manifest.version = version;
    await writeFile(target, JSON.stringify(manifest, null, 2) + "\\n");
    changed.push(file);
  }
  return changed;
}
`,
  },
  {
    kind: "code, Python",
    text: `from __future__ import annotations

import csv
import logging
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

log = logging.getLogger(__name__)


@dataclass
class Ledger:
    """Sums of a month, by account."""

    month: str
    totals: dict[str, float] = field(default_factory=lambda: defaultdict(float))

    def add(self, account: str, amount: float) -> None:
        if amount == 0:
            return
        self.totals[account] += amount

    def largest(self, count: int = 5) -> list[tuple[str, float]]:
        return sorted(self.totals.items(), key=lambda item: -abs(item[1]))[:count]


def read_ledger(path: Path, month: str) -> Ledger:
    ledger = Ledger(month)
    with path.open(newline="", encoding="utf-8") as handle:
        for number, row in enumerate(csv.DictReader(handle), start=2):
            if not row["date"].startswith(month):
                continue
            try:
                ledger.add(row["account"].strip(), float(row["amount"].replace(",", ".")))
            except (KeyError, ValueError) as error:
                log.warning("line %d of %s skipped: %s", number, path.name, error)
    return ledger
`,
  },
  {
    kind: "JSON",
    text: JSON.stringify(
      {
        id: "req_01HZX4T9",
        created: "2026-03-14T09:26:53.589Z",
        status: "failed",
        attempts: 3,
        user: { id: 48213, name: "Mara Lind", roles: ["editor", "reviewer"], active: true },
        items: Array.from({ length: 8 }, (_, index) => ({
          sku: `KX-${1200 + index * 37}`,
          title: `Shelf bracket, ${20 + index * 5} cm`,
          price: 4.95 + index * 1.5,
          stock: (index * 53) % 17,
          tags: ["steel", index % 2 ? "black" : "white"],
        })),
        error: { code: "E_TIMEOUT", message: "upstream did not answer within 3000 ms", retryable: true },
      },
      null,
      2,
    ),
  },
  {
    kind: "JSON, compact",
    text: Array.from({ length: 12 }, (_, index) =>
      JSON.stringify({
        type: index % 3 ? "tool_result" : "tool_use",
        id: `toolu_${(index * 7919).toString(36)}`,
        name: index % 2 ? "read_file" : "run_command",
        input: { path: `src/routes/order-${index}.ts`, offset: index * 40, limit: 200 },
        isError: index === 7,
        durationMs: 120 + index * 31,
      }),
    ).join("\n"),
  },
  {
    kind: "Chinese",
    text: `昨天晚上的导出任务又失败了，这次原因很清楚：任务为每个地区占用一个连接，而连接池只有四个。上周新增了第五个地区以后，调度器一直在等待一个永远不会归还的连接，
所以整个任务在三十分钟后超时，什么都没有写进去。我看有两个办法。第一个是把上限调高，改起来很快，但是下一个地区加进来时问题还会出现；第二个是让各个地区共用一个连接，
依次读取，这样导出会慢大约百分之十，但是再也没有上限。我倾向于第二个办法。早上八点以前没有人看这份导出，而且即使在最忙的月份，它也在四点半以前完成。如果你同意，
我今天就写好改动，用上个月的数据副本跑两遍，并且把旧代码保留到星期五，这样不用发布新版本也可以退回去。`,
  },
  {
    kind: "agent log",
    text: `$ npm test
> inventory@2.4.1 test
> vitest run

 RUN  v5.1.0 /home/dev/inventory

 ✓ test/stock.test.ts (14 tests) 212ms
 ✓ test/import.test.ts (9 tests) 1043ms
 ❯ test/reorder.test.ts (6 tests | 1 failed) 88ms
   × orders once when two sensors report the same shelf 31ms
     → expected 2 to be 1 // Object.is equality

AssertionError: expected 2 to be 1 // Object.is equality
    at /home/dev/inventory/test/reorder.test.ts:57:29
    at processTicksAndRejections (node:internal/process/task_queues:105:5)

 Test Files  1 failed | 2 passed (3)
      Tests  1 failed | 28 passed (29)
   Start at  14:02:51
   Duration  2.31s (transform 188ms, setup 0ms, collect 402ms, tests 1.34s)

The third file fails because both sensors call placeOrder() before either has stored its reading. I'll take the lock in
src/reorder/queue.ts and read the shelf again inside it.
`,
  },
];
