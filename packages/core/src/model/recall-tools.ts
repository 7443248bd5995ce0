/**
 * Which tools are our own, and which parts of messages are their calls and results. Search, recall cues and summary sources skip those
 * parts: a search that finds earlier searches finds nothing new. They are stored like everything else.
 */

/** Hosts add a prefix to a tool's name (`mcp__lossless__lcm_grep`); it still ends with the name. */
const RECALL_TOOL = /(?:^|[^A-Za-z0-9])lcm_[a-z][a-z_]*$/;

export function isRecallTool(name: string): boolean {
  return RECALL_TOOL.test(name);
}

interface ToolPart {
  readonly type: string;
  readonly toolName?: string | undefined;
  readonly toolCallId?: string | undefined;
}

/**
 * For each message of a run, oldest first, the indexes of its recall parts in its list of parts. A result without a name belongs to the
 * nearest earlier call with the same id.
 */
export function findRecallParts(messages: readonly (readonly ToolPart[])[]): ReadonlySet<number>[] {
  const nameOf = new Map<string, string>();
  return messages.map((parts) => {
    const found = new Set<number>();
    for (const [place, { type, toolName, toolCallId }] of parts.entries()) {
      if (type === "tool_call" && toolCallId !== undefined) nameOf.set(toolCallId, toolName ?? "");
      const isNameless = type === "tool_result" && toolName === undefined && toolCallId !== undefined;
      const name = isNameless ? nameOf.get(toolCallId) : toolName;
      if (name !== undefined && isRecallTool(name)) found.add(place);
    }
    return found;
  });
}
