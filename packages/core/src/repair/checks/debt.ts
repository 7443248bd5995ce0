/** Compaction debt that does not get paid: retried repeatedly, waiting for a day, or of a conversation that has ended. */
import type { Debt } from "../../store/folding.ts";
import type { CheckInput, Finding } from "../finding.ts";

const MANY_ATTEMPTS = 3;
const OLD_MS = 24 * 60 * 60_000;

export async function checkDebt({ engine, now }: CheckInput): Promise<Finding[]> {
  const findings: Finding[] = [];
  for (const debt of await engine.listDebts()) {
    const conversation = await engine.readConversation({ conversationId: debt.conversationId });
    if (conversation !== null && conversation.archivedAt !== null) findings.push(describeInactive(debt));
    else if (isStuck(debt, now)) findings.push(describeStuck(debt, now));
  }
  return findings;
}

function isStuck({ attempts, requestedAt, lastFailure, leaseUntil }: Debt, now: number): boolean {
  const isWorkedOn = leaseUntil !== null && leaseUntil > now;
  return !isWorkedOn && ((attempts >= MANY_ATTEMPTS && lastFailure !== null) || now - requestedAt > OLD_MS);
}

function describeInactive({ conversationId }: Debt): Finding {
  return {
    code: "debt_inactive",
    severity: "info",
    id: `conversation ${conversationId}`,
    message: `conversation ${conversationId} has compaction due, but has ended`,
    step: { kind: "fix" },
    fix: { kind: "close_debt", conversationId },
  };
}

function describeStuck(debt: Debt, now: number): Finding {
  const { conversationId, attempts, budgetTokens, lastFailure, requestedAt } = debt;
  const hours = Math.floor((now - requestedAt) / 3_600_000);
  const why = lastFailure === null ? "" : `: ${lastFailure}`;
  return {
    code: "debt_stuck",
    severity: "warning",
    id: `conversation ${conversationId}`,
    message: `compaction of conversation ${conversationId} has been due for ${hours} hours, tried ${attempts} times${why}`,
    step: { kind: "compact", conversationId, budgetTokens },
  };
}
