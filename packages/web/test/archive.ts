/**
 * Archives to look into: a folded conversation with tools and a picture, and one that tries to be more than text; the sample that ships with
 * the project; and one conversation of a hundred thousand messages.
 */
import { join } from "node:path";
import { resolveSettings } from "@lossless/core";
import { openEngine } from "lossless-claw";
import type { Complete, Engine } from "@lossless/core";
import { importTranscript } from "@lossless/interchange";
import { startInspector } from "../src/server.ts";
import type { Inspector } from "../src/server.ts";
import { SAMPLE } from "@lossless/testkit/sample.ts";

export const MAIN = { key: "agent:main:main", id: "s1", owner: "main" };
export const HOSTILE = { key: "agent:<b>hostile</b>", id: "s2", owner: "other" };
export const HOSTILE_TEXT = `<script>window.hacked = 1</script><img src=x onerror="window.hacked = 1"> \u202Eesrever\u202C ${"x".repeat(30_000)}`;
/** One red point. */
const PNG =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";

export interface Site {
  readonly inspector: Inspector;
  /** The archive as an agent has it open. */
  readonly writer: Engine;
  readonly database: string;
  readonly close: () => Promise<void>;
}

export async function openSite(folder: string, options: SiteOptions = {}): Promise<Site> {
  return serve(join(folder, "lcm.db"), options, async (writer) => {
    await writer.ingest({
      session: MAIN,
      messages: makeTalk(120).map((message, index) => ({ eventId: `e${index}`, message })),
    });
    await writer.compact({ sessionKey: MAIN.key, budgetTokens: 8_000, force: true });
    await writer.ingest({
      session: HOSTILE,
      messages: makeHostile().map((message, index) => ({ eventId: `h${index}`, message })),
    });
  });
}

/** A session of a coding agent: Markdown, an edit with its result, a call that failed, housekeeping, and many plain turns. */
const CODING = { key: "agent:coding", id: "4b1c2d3e-0000-4000-8000-000000000001", owner: "main" };

export async function openCoding(folder: string, options: SiteOptions = {}): Promise<Site> {
  return serve(join(folder, "lcm.db"), options, async (writer) => {
    await writer.ingest({
      session: CODING,
      origin: { agent: "claude-code", project: "/home/me/shop", branch: "main" },
      messages: makeCoding().map((message, index) => ({ eventId: `c${index}`, message })),
    });
  });
}

/** One of the words is everywhere; both together are only near the end, behind what a page shows of a long part. */
const LONG_RESULT = [
  ...Array.from({ length: 400 }, (_, index) => `line ${index}: a walrus rests`),
  "the walrus on the iceberg",
  ...Array.from({ length: 40 }, (_, index) => `line ${index} after it`),
].join("\n");

function makeCoding(): object[] {
  const at = (minute: number): number => Date.UTC(2026, 2, 1, 9, minute);
  const call = (id: string, name: string, input: object): object => ({
    role: "assistant",
    content: [{ type: "toolCall", id, name, arguments: input }],
  });
  const result = (toolCallId: string, text: string, isError = false): object => ({
    role: "toolResult",
    toolCallId,
    content: [{ type: "text", text }],
    isError,
  });
  const talk = Array.from({ length: 80 }, (_, index) => ({
    role: index % 2 === 0 ? "user" : "assistant",
    content: `Later word ${index}`,
    timestamp: at(20 + index),
  }));
  return [
    { role: "user", content: "Round the **price** of the basket", timestamp: at(0) },
    {
      role: "assistant",
      content:
        "# Plan\n\n1. Read `basket.ts`\n2. [Docs](https://example.org/a), [trap](javascript:alert(1))\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n<img src=x onerror=alert(1)>\n\n```ts\nconst price = 1;\n```\n\n```text\nconst no = code;\n```",
      timestamp: at(1),
    },
    {
      ...call("call_edit", "Edit", {
        file_path: "src/basket.ts",
        old_string: "return sum;\nend",
        new_string: "return Math.round(sum);\nend",
      }),
      timestamp: at(2),
    },
    { ...result("call_edit", "The file was updated.\nLine two"), timestamp: at(3) },
    { ...call("call_bash", "Bash", { command: "npm test -- basket" }), timestamp: at(4) },
    { ...result("call_bash", "exit code 1: one zebra failed", true), timestamp: at(5) },
    { type: "model_change", modelId: "other", timestamp: at(6) },
    ...talk.slice(0, 40),
    { ...call("call_read", "Read", { file_path: "zoo.md" }), timestamp: at(60) },
    { ...result("call_read", LONG_RESULT), timestamp: at(60) },
    ...talk.slice(40),
  ];
}

/** An archive that is there already, or an empty one. */
export const openArchive = (database: string): Promise<Site> => serve(database, {}, () => Promise.resolve());

export async function openSample(folder: string): Promise<Site> {
  return serve(join(folder, "lcm.db"), {}, async (writer) => {
    await importTranscript({ engine: writer, path: SAMPLE });
    await writer.compact({ conversationId: 1, budgetTokens: 32_000 });
  });
}

export const LARGE_MESSAGES = 100_000;
const LARGE_BATCH = 20_000;

export async function openLarge(folder: string): Promise<Site> {
  return serve(join(folder, "lcm.db"), {}, async (writer) => {
    for (let first = 0; first < LARGE_MESSAGES; first += LARGE_BATCH) {
      await writer.ingest({ session: MAIN, messages: makeSteps(first, LARGE_BATCH) });
      await writer.compact({ sessionKey: MAIN.key, budgetTokens: 32_000 });
    }
  });
}

const makeSteps = (first: number, count: number): { eventId: string; message: object }[] =>
  Array.from({ length: count }, (_, index) => {
    const step = first + index;
    const content = `Step ${step}: parcel ${(step * 7) % 1009} leaves the depot`;
    const role = step % 2 === 0 ? "user" : "assistant";
    return {
      eventId: `e${step}`,
      message: { role, content, timestamp: Date.UTC(2026, 0, 1) + step * 60_000 },
    };
  });

interface SiteOptions {
  /** Whether the page may change the archive. */
  readonly write?: boolean;
  /** File with prices of models. */
  readonly prices?: string;
  /** The model that writes summaries anew. */
  readonly complete?: Complete;
  /** False where an archive of its own for each test matters, and threads do not: two of them cost more than most tests. */
  readonly thread?: boolean;
}

const MODEL = { provider: "test", model: "tiny" };

async function serve(
  database: string,
  { write = false, complete, thread, prices }: SiteOptions,
  fill: (writer: Engine) => Promise<unknown>,
): Promise<Site> {
  const { settings } = resolveSettings({ env: {}, config: { databasePath: database } });
  const writer = await openEngine({ database, settings, thread: false });
  await fill(writer);
  const model = complete === undefined ? {} : { complete, hostModel: MODEL };
  const engine = await openEngine({ database, settings, readOnly: !write, thread, ...model });
  const inspector = await startInspector({
    engine,
    scope: {},
    port: 0,
    pollMs: 20,
    timezone: "UTC",
    version: "0.0.0",
    database,
    prices,
    write: write ? { settings, model: complete === undefined ? null : "test/tiny" } : null,
    examine: async () => {
      const { examine } = await import("@lossless/core/repair");
      return examine({ engine, settings, databasePath: database, filesDir: settings.largeFilesDir });
    },
  });
  const close = async (): Promise<void> => {
    await inspector.close();
    await engine.close();
    await writer.close();
  };
  return { inspector, writer, database, close };
}

function makeTalk(count: number): object[] {
  return Array.from({ length: count }, (_, index) => {
    const timestamp = Date.UTC(2026, 2, 1) + index * 3_600_000;
    const words = `Step ${index}: the parcel label printer and the backoff of the carrier, number ${index * 7}. ${"More words about it. ".repeat(12)}`;
    if (index % 4 === 0) return { role: "user", content: words, timestamp };
    if (index % 4 === 1) {
      const call = {
        type: "toolCall",
        id: `call_${index}`,
        name: "read_file",
        arguments: { path: `src/step-${index}.ts` },
      };
      return { role: "assistant", content: [{ type: "text", text: words }, call], timestamp };
    }
    if (index % 4 === 2) {
      const content = [{ type: "text", text: `const step = ${index}; // printed\n${words}` }];
      return {
        role: "toolResult",
        toolCallId: `call_${index - 1}`,
        toolName: "read_file",
        content,
        timestamp,
      };
    }
    return {
      role: "assistant",
      content: `${words}\n\`\`\`ts\nconst value = "${index}"; // a comment\n\`\`\``,
      timestamp,
    };
  });
}

function makeHostile(): object[] {
  return [
    { role: "user", content: HOSTILE_TEXT },
    { role: "user", content: [{ type: "image", data: PNG, mimeType: "image/png" }] },
    {
      role: "user",
      content: [
        {
          type: "image",
          data: Buffer.from("<svg onload=alert(1)>                ").toString("base64"),
          mimeType: "image/png",
        },
      ],
    },
  ];
}
