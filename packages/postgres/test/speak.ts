/** Something to say: words, calls of tools and their results, a large paste, and our own tools. */

export const session = { key: "agent:main:test", id: "session-1", owner: "main" };
export const START = 1_700_000_000_000;

/** What is said at a place. */
export function speak(at: number): { role: string; content: unknown; toolCallId?: string } {
  const words = `message ${at} about ${["harbours", "ledgers", "tides", "sextants"][at % 4]} ${"and so on ".repeat(at % 40)}`;
  const id = `call-${Math.floor(at / 8)}`;
  const tool = at % 16 < 8 ? "read_file" : "lcm_grep";
  if (at % 8 === 5)
    return { role: "assistant", content: [{ type: "toolCall", id, name: tool, arguments: {} }] };
  if (at % 8 === 6) return { role: "toolResult", content: [{ type: "text", text: words }], toolCallId: id };
  if (at === 33)
    return { role: "user", content: `look at this\n${"a long line of a file\n".repeat(12_000)}` };
  return { role: at % 2 === 0 ? "user" : "assistant", content: words };
}

/** An address whose archive is made with so many partitions. */
export const divide = (address: string, partitions: number): string =>
  partitions === 0 ? address : `${address}&partitions=${partitions}`;
