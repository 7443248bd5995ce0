/** Whether search can be trusted. The index can always be rebuilt; no message depends on it. */
import type { CheckInput, Finding } from "../finding.ts";

export async function checkIndex({ verify }: CheckInput): Promise<Finding[]> {
  const problems = (await verify()).problems.filter(({ code }) => code === "index");
  const [first] = problems;
  if (first === undefined) return [];
  const more = problems.length > 1 ? ` (and ${problems.length - 1} more)` : "";
  return [
    {
      code: "index_degraded",
      severity: "warning",
      id: "index",
      message: `${first.message}${more}`,
      step: { kind: "rebuild_index" },
      fix: { kind: "reindex" },
    },
  ];
}
