/** What `verify` finds: messages, chain, gaps, event ids, cover, graph and large files. The index has a check of its own. */
import type { NextStep } from "../../model/next-step.ts";
import type { Engine } from "../../engine/engine.ts";
import { listBackups } from "../backup.ts";
import type { CheckInput, Finding } from "../finding.ts";

export async function checkProof({ verify, databasePath, engine }: CheckInput): Promise<Finding[]> {
  const { problems } = await verify();
  const backup = listBackups(databasePath)[0]?.path ?? null;
  const restore: NextStep | null = backup === null ? null : { kind: "restore", backup };
  const findings: Finding[] = [];
  const mended = new Set<number>();
  for (const { code, id, message } of problems.filter((problem) => problem.code !== "index")) {
    const finding: Finding = { code: `proof_${code}`, severity: "error", id, message, step: restore };
    const conversationId = GRAPH_CODES.has(code) ? await findConversation(engine, id) : null;
    if (conversationId === null || mended.has(conversationId)) {
      findings.push(conversationId === null ? finding : { ...finding, step: DROP });
      continue;
    }
    mended.add(conversationId);
    findings.push({ ...finding, step: DROP, fix: { kind: "drop_summaries", conversationId } });
  }
  return findings;
}

/** What can be wrong with a summary: it is made from messages, which are whole, and can be made again. */
const GRAPH_CODES: ReadonlySet<string> = new Set(["graph", "cover", "altered"]);
const DROP: NextStep = { kind: "drop_summaries" };

async function findConversation(engine: Engine, id: string): Promise<number | null> {
  if (!id.startsWith("sum_")) return null;
  return (await engine.readSummary({ summaryId: id }))?.conversationId ?? null;
}
