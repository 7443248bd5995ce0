/** One message: JSON parsed in place agrees with `JSON.parse`, and the derived data is complete, findable and deterministic. */
import { deriveMessage, viewMessage, compileRedaction } from "@lossless/core/testing";
import { asBuffer, findRoot, iterateElements, mapMembers } from "@lossless/core/formats";
import type { ByteRange } from "@lossless/core/formats";
import { isDeepStrictEqual } from "node:util";
import { openMemoryEngine, prove } from "../memory-engine.ts";
import { accept, hold } from "../target.ts";
import type { Target } from "../target.ts";

const redact = compileRedaction(["@keys", "@tokens", "@cards", "hunter\\d"]);

export const messageTarget: Target = {
  name: "message",
  words: [
    "role",
    "content",
    "type",
    "text",
    "thinking",
    "tool_use",
    "tool_result",
    "toolCall",
    "toolResult",
    "image",
    "data:image/png;base64,iVBORw0KGgo=",
    "source",
    "base64",
    "arguments",
    "input",
    "parts",
    "functionCall",
    "tool_calls",
    "usage",
    "input_tokens",
    "sk-ant-api03-aaaaaaaaaaaaaaaaaaaaaaaa",
    "4111 1111 1111 1111",
    "hunter2",
    "\\u0000",
    "\\ud83d\\ude00",
  ],
  open: async () => ({
    run: async (input) => {
      checkSpans(input);
      const view = viewMessage(input);
      hold(
        isDeepStrictEqual(view, viewMessage(Buffer.from(input))),
        "a message looks different the second time",
      );
      deriveMessage(input, []);
      checkRedaction(input);
      await store(input);
    },
    close: async () => undefined,
  }),
};

/** If the bytes are JSON, each member and element is where the parser says. */
function checkSpans(input: Buffer): void {
  let value: unknown;
  try {
    value = JSON.parse(input.toString("utf8"));
  } catch {
    // Not JSON: there is nothing to compare with.
    return;
  }
  // The parser replaces bytes that are not UTF-8; we read them unchanged.
  if (!input.equals(Buffer.from(input.toString("utf8")))) return;
  const root = findRoot(asBuffer(input));
  if (root === null) return;
  walk(asBuffer(input), root, value, 0);
}

function walk(bytes: Buffer, range: ByteRange, value: unknown, depth: number): void {
  const text = bytes.toString("utf8", range.at, range.at + range.length);
  hold(isDeepStrictEqual(JSON.parse(text), value), "a span of JSON is another value", text);
  if (depth > 4 || typeof value !== "object" || value === null) return;
  if (Array.isArray(value)) {
    const elements = [...iterateElements(bytes, range)];
    hold(elements.length === value.length, "a list has another length", elements.length, value.length);
    for (const [at, element] of elements.entries()) walk(bytes, element, value[at], depth + 1);
    return;
  }
  const members = mapMembers(bytes, range);
  hold(
    isDeepStrictEqual([...members.keys()].toSorted(), Object.keys(value).toSorted()),
    "an object has other members",
  );
  for (const [key, member] of members)
    walk(bytes, member, (value as Record<string, unknown>)[key], depth + 1);
}

/** Redaction is idempotent and keeps JSON valid. */
function checkRedaction(input: Buffer): void {
  const once = redact?.(input);
  if (once === undefined || once === null) return;
  const isJson = (bytes: Uint8Array): boolean => {
    try {
      JSON.parse(Buffer.from(bytes).toString("utf8"));
      return true;
    } catch {
      // "Not JSON" is a valid result.
      return false;
    }
  };
  const bytes = once as unknown as { readonly bytes: Uint8Array };
  if (!(bytes.bytes instanceof Uint8Array)) return;
  hold(!isJson(input) || isJson(bytes.bytes), "redaction breaks JSON");
}

async function store(input: Buffer): Promise<void> {
  const engine = openMemoryEngine();
  try {
    const session = { key: "agent:main:fuzz", id: "s1", owner: "main" };
    const result = await accept(() =>
      engine.ingest({ session, messages: [{ eventId: "e1", bytes: input }] }),
    );
    if (result === null) return;
    const body = await engine.readMessage({ messageId: result.results[0]?.messageId ?? 0 });
    hold(body !== null && Buffer.compare(body.bytes, input) === 0, "other bytes come out than went in");
    for (const budgetTokens of [300, 100_000])
      await accept(() => engine.assemble({ conversationId: result.conversationId, budgetTokens }));
    await prove(engine);
  } finally {
    await engine.close();
  }
}
