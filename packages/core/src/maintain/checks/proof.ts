/** What `verify` finds: messages, chain, gaps, event ids, cover, graph and large files. The index has a check of its own. */
import type { Problem } from "../../store/store.ts";
import { listBackups } from "../backup.ts";
import type { CheckInput, Finding } from "../finding.ts";

export async function checkProof({ verify, databasePath }: CheckInput): Promise<Finding[]> {
  const { problems } = await verify();
  const newest = listBackups(databasePath)[0]?.path ?? null;
  return problems.filter(({ code }) => code !== "index").map((problem) => toFinding(problem, newest));
}

function toFinding({ code, id, message }: Problem, backup: string | null): Finding {
  return {
    code: `proof_${code}`,
    severity: "error",
    id,
    message,
    mend: backup === null ? null : `lcm restore ${backup}`,
  };
}
