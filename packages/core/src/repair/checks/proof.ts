/** What `verify` finds: messages, chain, gaps, event ids, cover, graph and large files. The index has a separate check. */
import { isServerAddress } from "../../model/address.ts";
import type { NextStep } from "../../model/next-step.ts";
import type { Engine } from "../../engine/engine.ts";
import type { Problem } from "../../store/store.ts";
import { listBackups } from "../backup.ts";
import type { CheckInput, Finding } from "../finding.ts";

export async function checkProof({ verify, databasePath, engine }: CheckInput): Promise<Finding[]> {
  const problems = (await verify()).problems.filter(({ code }) => code !== "index");
  const backup = listBackups(databasePath)[0]?.path ?? null;
  // An archive on a server is not replaced by a file.
  const isReplaced = backup !== null && !isServerAddress(databasePath);
  const restore: NextStep | null = isReplaced ? { kind: "restore", backup } : null;
  const broken = await listBrokenSummaries(engine, problems);
  const mended = new Set<number>();
  return problems.map(({ code, id, message }) => {
    const finding: Finding = { code: `proof_${code}`, severity: "error", id, message, step: restore };
    const found = GRAPH_CODES.has(code) ? [...broken].find(([, ids]) => ids.includes(id)) : undefined;
    if (found === undefined) return finding;
    const [conversationId, summaryIds] = found;
    if (mended.has(conversationId)) return { ...finding, step: DROP };
    mended.add(conversationId);
    return { ...finding, step: DROP, fix: { kind: "drop_summaries", conversationId, summaryIds } };
  });
}

/** Problems of a summary: it is made from messages, which are intact, and can be remade. */
const GRAPH_CODES: ReadonlySet<string> = new Set(["graph", "cover", "altered", "seal"]);
const DROP: NextStep = { kind: "drop_summaries" };

/** The summaries that do not verify, by conversation. */
export async function listBrokenSummaries(
  engine: Engine,
  problems: readonly Problem[],
): Promise<Map<number, string[]>> {
  const broken = new Map<number, string[]>();
  const ids = problems.filter(({ code, id }) => GRAPH_CODES.has(code) && id.startsWith("sum_"));
  for (const summaryId of new Set(ids.map(({ id }) => id))) {
    const conversationId = (await engine.readSummary({ summaryId }))?.conversationId;
    if (conversationId === undefined) continue;
    broken.set(conversationId, [...(broken.get(conversationId) ?? []), summaryId]);
  }
  return broken;
}
