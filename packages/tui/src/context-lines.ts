/**
 * A context as lines to choose from: what each represents, what it costs, why it is there. Also the former context of a summary: the same, with
 * its sources in its place. Pure.
 */
import { formatMessageId, isSummaryId, parseMessageId } from "@lossless/core";
import type { AssembledContext, DissolveResult, ExplainedItem } from "@lossless/core";
import { describeIds, describeReason } from "@lossless/core/doors";

export interface ContextLine {
  readonly kind: ExplainedItem["kind"];
  /** Its id on the screen; identifies it among the lines. */
  readonly id: string;
  readonly label: string;
  readonly messageId: number | null;
  readonly summaryId: string | null;
  readonly messages: number | null;
  readonly tokens: number;
  readonly reason: string;
  readonly earliestAt: number | null;
  readonly latestAt: number | null;
  /** It was here before; a summary now replaces it. */
  readonly isFormer: boolean;
}

export function listContextLines({ items }: Pick<AssembledContext, "items">): ContextLine[] {
  return items.map((item) => ({
    kind: item.kind,
    id: describeIds(item),
    label: item.kind === "summary" ? `summary d${item.depth}` : (item.role ?? item.kind),
    messageId: item.messageId,
    summaryId: item.summaryId,
    messages: item.messages,
    tokens: item.tokens,
    reason: describeReason(item),
    earliestAt: item.earliestAt,
    latestAt: item.latestAt,
    isFormer: false,
  }));
}

/** The lines with the sources of a summary in its place; for a summary that is not shown, only its sources. */
export function putBack(lines: readonly ContextLine[], report: DissolveResult): ContextLine[] {
  const former = report.sources.map(({ id, tokens, isShown }): ContextLine => {
    const messageId = parseMessageId(id);
    return {
      kind: isSummaryId(id) ? "summary" : "message",
      id: messageId === null ? id : formatMessageId(messageId),
      label: isSummaryId(id) ? "summary" : "message",
      messageId,
      summaryId: isSummaryId(id) ? id : null,
      messages: null,
      tokens,
      reason: isShown ? `now under ${report.summaryId}` : `hidden; now under ${report.summaryId}`,
      earliestAt: null,
      latestAt: null,
      isFormer: true,
    };
  });
  const at = lines.findIndex(({ summaryId }) => summaryId === report.summaryId);
  return at < 0 ? former : [...lines.slice(0, at), ...former, ...lines.slice(at + 1)];
}
