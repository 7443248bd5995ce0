/** Open guards: models that are not called right now, and why. */
import type { CheckInput, Finding } from "../finding.ts";

export async function checkGuards({ engine }: CheckInput): Promise<Finding[]> {
  const { guards } = await engine.status();
  return guards.map(({ name, openUntil, reason }) => ({
    code: "guard_open",
    severity: "warning",
    id: name,
    message: `${name} is paused until ${new Date(openUntil).toISOString()}: ${reason}; summaries are written without it meanwhile`,
    step: name.startsWith("spend") ? { kind: "show_spend" } : null,
  }));
}
