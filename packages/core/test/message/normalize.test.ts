import { fc } from "@lossless/testkit/properties.ts";
import { describe, expect, test } from "vitest";
import { messageTokens, searchText, viewMessage } from "../../src/message/normalize.ts";
import type { MessageView, PartView } from "../../src/model/message.ts";
import { IMAGE_TOKENS, MESSAGE_OVERHEAD_TOKENS } from "../../src/text/tokens.ts";
import { anyText, jsonValue } from "./arbitraries.ts";
import { readTranscriptLines, transcriptFolder } from "./shared-data.ts";

const encode = (value: unknown): Buffer => Buffer.from(JSON.stringify(value), "utf8");
const view = (value: unknown): MessageView => viewMessage(encode(value));

/** What a part stands on in the arrival bytes. */
const underlying = (bytes: Buffer, part: PartView): unknown =>
  JSON.parse(bytes.toString("utf8", part.at, part.at + part.length));

/** The parts without their places. */
function summarize(message: unknown): unknown[] {
  return view(message).parts.map(({ at: _at, length: _length, ordinal: _ordinal, ...rest }) => rest);
}

const PIXEL =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const PIXEL_BYTES = Buffer.from(PIXEL, "base64").length;
const LONG_BASE64 = Buffer.from(Array.from({ length: 900 }, (_, i) => (i * 7919) % 256)).toString("base64");

describe("roles", () => {
  test.each([
    ["user", "user"],
    ["assistant", "assistant"],
    ["model", "assistant"],
    ["system", "system"],
    ["developer", "system"],
    ["tool", "tool"],
    ["toolResult", "tool"],
    ["tool_result", "tool"],
    ["function", "tool"],
    ["bashExecution", "other"],
    ["narrator", "other"],
    ["constructor", "other"],
  ])("reads %s as %s", (rawRole, role) => {
    const seen = view({ role: rawRole, content: "x" });
    expect(seen).toMatchObject({ role, rawRole, isMessage: true });
    expect(seen.parts[0]?.text).toBe("x");
  });

  test("calls a user message tool when it holds nothing but tool results", () => {
    const result = { type: "tool_result", tool_use_id: "t1", content: "ok" };
    expect(view({ role: "user", content: [result] }).role).toBe("tool");
    expect(view({ role: "user", content: [result, { type: "text", text: "and now?" }] }).role).toBe("user");
    expect(view({ role: "user", content: [] }).role).toBe("user");
  });

  test.each([
    ["its own object", { role: "user", content: "hi" }],
    ["the message member", { type: "message", id: "a", message: { role: "user", content: "hi" } }],
    [
      "the payload member",
      { type: "response_item", payload: { type: "message", role: "user", content: "hi" } },
    ],
  ])("finds the message in %s", (_name, value) => {
    const bytes = encode(value);
    const seen = viewMessage(bytes);
    expect(seen.isMessage).toBe(true);
    expect(underlying(bytes, seen.parts[0] as PartView)).toBe("hi");
  });

  test("reads items of the responses dialect that have no role", () => {
    const item = {
      type: "function_call",
      call_id: "c1",
      name: "shell",
      arguments: '{"command":["ls","-la"]}',
    };
    expect(view({ type: "response_item", payload: item })).toMatchObject({
      role: "assistant",
      isMessage: true,
      parts: [{ type: "tool_call", toolCallId: "c1", toolName: "shell", text: "shell\ncommand: ls -la" }],
    });
    expect(view({ type: "function_call_output", call_id: "c1", output: "a.txt" })).toMatchObject({
      role: "tool",
      parts: [{ type: "tool_result", toolCallId: "c1", text: "a.txt" }],
    });
  });
});

describe("blocks", () => {
  const cases: [string, unknown, unknown[]][] = [
    ["a string", { role: "user", content: "hello" }, [{ type: "text", text: "hello" }]],
    ["no content", { role: "assistant" }, []],
    ["null content", { role: "assistant", content: null }, []],
    ["content that is neither", { role: "user", content: { a: 1 } }, [{ type: "other", text: '{"a":1}' }]],
    [
      "text, input_text, output_text and bare strings",
      {
        role: "user",
        content: [
          { type: "text", text: "a", textSignature: "s" },
          { type: "input_text", text: "b" },
          { type: "output_text", text: "c" },
          "d",
          { type: "refusal", refusal: "no" },
        ],
      },
      ["a", "b", "c", "d", "no"].map((text) => ({ type: "text", text })),
    ],
    [
      "thinking, reasoning and what cannot be read of them",
      {
        role: "assistant",
        content: [
          { type: "thinking", thinking: "hm", thinkingSignature: LONG_BASE64 },
          { type: "thinking", thinking: "hidden", redacted: true },
          { type: "redacted_thinking", data: LONG_BASE64 },
          {
            type: "reasoning",
            summary: [{ type: "summary_text", text: "so" }],
            encrypted_content: LONG_BASE64,
          },
        ],
      },
      ["hm", "", "", "so"].map((text) => ({ type: "reasoning", text })),
    ],
    [
      "reasoning beside the content",
      { role: "assistant", reasoning_content: "first", content: "then" },
      [
        { type: "reasoning", text: "first" },
        { type: "text", text: "then" },
      ],
    ],
    [
      "calls of pi, Anthropic, the responses dialect and Gemini",
      {
        role: "assistant",
        content: [
          {
            type: "toolCall",
            id: "1",
            name: "read",
            arguments: { path: "src/a.ts", limit: 5, deep: { on: true, no: null } },
          },
          { type: "tool_use", id: "2", name: "Edit", input: { edits: [{ old: "x" }, { old: "y" }] } },
          { type: "function_call", id: "fc", call_id: "3", name: "sh", arguments: '{"cmd":"ls' },
          { type: "functionCall", name: "look", args: {} },
          { functionCall: { id: "5", name: "find", args: { q: "z" } } },
        ],
      },
      [
        {
          type: "tool_call",
          toolCallId: "1",
          toolName: "read",
          text: "read\npath: src/a.ts\nlimit: 5\ndeep\non: true\nno",
        },
        { type: "tool_call", toolCallId: "2", toolName: "Edit", text: "Edit\nedits\nold: x\nold: y" },
        { type: "tool_call", toolCallId: "3", toolName: "sh", text: 'sh\n{"cmd":"ls' },
        { type: "tool_call", toolName: "look", text: "look" },
        { type: "tool_call", toolCallId: "5", toolName: "find", text: "find\nq: z" },
      ],
    ],
    [
      "tool_calls and function_call of the chat dialect",
      {
        role: "assistant",
        content: "on it",
        tool_calls: [{ id: "c1", type: "function", function: { name: "get", arguments: '{"key":"v"}' } }],
        function_call: { name: "old", arguments: "{}" },
      },
      [
        { type: "text", text: "on it" },
        { type: "tool_call", toolCallId: "c1", toolName: "get", text: "get\nkey: v" },
        { type: "tool_call", toolName: "old", text: "old" },
      ],
    ],
    [
      "tool results with a string, with blocks, with an image, with nothing",
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: "1", content: "done", is_error: false },
          {
            type: "tool_result",
            tool_use_id: "2",
            is_error: true,
            content: [
              { type: "text", text: "see" },
              { type: "image", source: { type: "base64", media_type: "image/png", data: PIXEL } },
            ],
          },
          { type: "tool_result", tool_use_id: "3" },
          { type: "tool_result", tool_use_id: "4", content: [] },
        ],
      },
      [
        { type: "tool_result", text: "done", toolCallId: "1", isError: false },
        { type: "tool_result", text: "see", toolCallId: "2", isError: true },
        {
          type: "image",
          text: "",
          toolCallId: "2",
          isError: true,
          mimeType: "image/png",
          payloadBytes: PIXEL_BYTES,
        },
        { type: "tool_result", text: "", toolCallId: "3" },
        { type: "tool_result", text: "", toolCallId: "4" },
      ],
    ],
    [
      "outputs that are objects",
      {
        role: "tool",
        tool_call_id: "9",
        content: [
          { type: "text", text: "plain" },
          { type: "mystery", n: 1 },
        ],
      },
      [
        { type: "tool_result", text: "plain", toolCallId: "9" },
        { type: "other", text: '{"type":"mystery","n":1}', toolCallId: "9" },
      ],
    ],
    [
      "a toolResult message of pi",
      {
        role: "toolResult",
        toolCallId: "t",
        toolName: "bash",
        isError: true,
        content: [
          { type: "text", text: "one" },
          { type: "text", text: "two" },
        ],
      },
      ["one", "two"].map((text) => ({
        type: "tool_result",
        text,
        toolCallId: "t",
        toolName: "bash",
        isError: true,
      })),
    ],
    [
      "a toolResult message with an image only, whose call still has an answer",
      {
        role: "toolResult",
        toolCallId: "t",
        content: [{ type: "image", data: PIXEL, mimeType: "image/png" }],
      },
      [
        { type: "tool_result", text: "", toolCallId: "t" },
        { type: "image", text: "", toolCallId: "t", mimeType: "image/png", payloadBytes: PIXEL_BYTES },
      ],
    ],
    [
      "images as data, as data URL, as link, as nothing",
      {
        role: "user",
        content: [
          { type: "image", data: PIXEL, mimeType: "image/png" },
          { type: "image_url", image_url: { url: `data:image/png;base64,${PIXEL}` } },
          { type: "input_image", image_url: `data:IMAGE/PNG;base64,${PIXEL}` },
          { type: "image", source: { type: "url", url: "https://example.org/cat.png" } },
          { type: "input_image", image_url: null },
        ],
      },
      [
        { type: "image", text: "", mimeType: "image/png", payloadBytes: PIXEL_BYTES },
        { type: "image", text: "", mimeType: "image/png", payloadBytes: PIXEL_BYTES },
        { type: "image", text: "", mimeType: "image/png", payloadBytes: PIXEL_BYTES },
        { type: "image", text: "https://example.org/cat.png" },
        { type: "image", text: "" },
      ],
    ],
    [
      "documents and files",
      {
        role: "user",
        content: [
          {
            type: "document",
            title: "Plan",
            source: { type: "text", media_type: "text/plain", data: "step one" },
          },
          { type: "document", source: { type: "base64", media_type: "application/pdf", data: PIXEL } },
          { type: "file", file: { filename: "a.pdf", file_data: `data:application/pdf;base64,${PIXEL}` } },
          { type: "input_file", filename: "b.bin", file_id: "f1" },
          { type: "resource", resource: { uri: "file:///c.md", mimeType: "text/markdown", text: "# C" } },
          { type: "input_audio", input_audio: { data: PIXEL, format: "wav" } },
        ],
      },
      [
        { type: "file", text: "Plan\nstep one", mimeType: "text/plain", fileName: "Plan" },
        { type: "file", text: "", mimeType: "application/pdf", payloadBytes: PIXEL_BYTES },
        {
          type: "file",
          text: "a.pdf",
          mimeType: "application/pdf",
          fileName: "a.pdf",
          payloadBytes: PIXEL_BYTES,
        },
        { type: "file", text: "b.bin", fileName: "b.bin" },
        { type: "file", text: "file:///c.md\n# C", mimeType: "text/markdown" },
        { type: "file", text: "", payloadBytes: PIXEL_BYTES },
      ],
    ],
    [
      "a shell command run by the user",
      { role: "bashExecution", command: "ls", output: "a\nb", exitCode: 0 },
      [
        { type: "text", text: "$ ls" },
        { type: "text", text: "a\nb" },
      ],
    ],
    [
      "a custom message",
      { role: "custom", customType: "x", content: "note" },
      [{ type: "text", text: "note" }],
    ],
    [
      "a branch summary",
      { role: "branchSummary", summary: "went there" },
      [{ type: "text", text: "went there" }],
    ],
    [
      "a compaction summary",
      { role: "compactionSummary", summary: "so far" },
      [{ type: "text", text: "so far" }],
    ],
    [
      "unknown blocks, numbers and null",
      { role: "assistant", content: [{ type: "hologram", z: [1] }, 7, null] },
      [
        { type: "other", text: '{"type":"hologram","z":[1]}' },
        { type: "other", text: "7" },
        { type: "other", text: "null" },
      ],
    ],
    [
      "the parts of Gemini",
      { role: "model", parts: [{ text: "hi" }, { inlineData: { mimeType: "image/png", data: PIXEL } }] },
      [
        { type: "text", text: "hi" },
        { type: "image", text: "", mimeType: "image/png", payloadBytes: PIXEL_BYTES },
      ],
    ],
  ];

  test.each(cases)("reads %s", (_name, message, parts) => {
    expect(summarize(message)).toEqual(parts);
  });

  test("stand on their own bytes, do not overlap, and are numbered in order", () => {
    for (const [, message] of cases) {
      const bytes = Buffer.from(JSON.stringify({ type: "message", note: "ä", message }, null, 2), "utf8");
      const { parts } = viewMessage(bytes);
      for (const part of parts) expect(() => underlying(bytes, part)).not.toThrow();
      expect(parts.map((part) => part.ordinal)).toEqual(parts.map((_, i) => i));
      const placed = parts.toSorted((a, b) => a.at - b.at);
      for (const [i, part] of placed.entries()) {
        const next = placed[i + 1];
        if (next) expect(part.at + part.length).toBeLessThanOrEqual(next.at);
      }
    }
  });

  test("bound the text of what nobody knows", () => {
    const seen = view({ role: "user", content: [{ type: "mystery", data: "word ".repeat(50_000) }] });
    expect(seen.parts[0]?.text.length).toBeLessThanOrEqual(4097);
  });

  test("never show base64, wherever it stands", () => {
    const wrapped = LONG_BASE64.replace(/.{76}/g, "$&\n");
    const seen = view({
      role: "user",
      content: [
        { type: "text", text: `before data:image/png;base64,${LONG_BASE64} after` },
        { type: "text", text: `look:\n${wrapped}\nend` },
        { type: "tool_use", name: "put", input: { deep: [{ blob: LONG_BASE64 }] } },
        { type: "mystery", blob: LONG_BASE64 },
      ],
    });
    expect(searchText(seen)).not.toContain(LONG_BASE64.slice(0, 60));
    expect(seen.parts[0]).toMatchObject({
      text: "before [image/png data, 900 bytes] after",
      payloadBytes: 900,
    });
    expect(seen.parts[1]).toMatchObject({ text: "look:\n[base64 data, 900 bytes]\nend" });
  });

  test("leave hashes, paths, hex and lists of names as they are", () => {
    const text = [
      "sha256-" + LONG_BASE64.slice(0, 88),
      "0123456789abcdef".repeat(40),
      Array.from({ length: 200 }, (_, i) => `someFunctionName${i}`).join("\n"),
      "A".repeat(500),
    ].join(" ");
    expect(view({ role: "user", content: text }).parts[0]?.text).toBe(text);
  });
});

describe("what a message says about itself", () => {
  const time = 1_757_238_723_071;
  test.each([
    ["milliseconds", { timestamp: time }, time],
    ["seconds", { created_at: 1_757_238_723 }, 1_757_238_723_000],
    ["ISO text", { timestamp: "2025-09-07T09:52:03.071Z" }, time],
    ["ISO text with an offset", { createdAt: "2025-09-07T11:52:03.071+02:00" }, time],
    ["ISO text without a zone, as UTC", { timestamp: "2025-09-07 09:52:03.071" }, time],
    ["digits as text", { timestamp: "1757238723071" }, time],
    ["rubbish, as no time", { timestamp: "[trimmed for fixture]" }, undefined],
    ["numbers that are no time", { timestamp: -5 }, undefined],
  ])("reads %s", (_name, members, expected) => {
    expect(view({ role: "user", content: "x", ...members }).createdAt).toBe(expected);
  });

  test("prefers the message's own time to the envelope's", () => {
    const envelope = { timestamp: "2026-01-01T00:00:00Z" };
    expect(view({ ...envelope, message: { role: "user", content: "x", timestamp: time } }).createdAt).toBe(
      time,
    );
    expect(view({ ...envelope, message: { role: "user", content: "x" } }).createdAt).toBe(
      Date.UTC(2026, 0, 1),
    );
  });

  test("reads model, usage and stop reason in the words of pi, Anthropic and OpenAI", () => {
    const pi = { api: "anthropic-messages", provider: "anthropic", model: "m", stopReason: "toolUse" };
    expect(
      view({
        role: "assistant",
        content: [],
        ...pi,
        usage: { input: 3, output: 68, cacheRead: 0, cacheWrite: 9 },
      }),
    ).toMatchObject({
      model: { api: "anthropic-messages", provider: "anthropic", model: "m" },
      usage: { inputTokens: 3, outputTokens: 68, cacheReadTokens: 0, cacheWriteTokens: 9 },
      stopReason: "toolUse",
    });
    const anthropic = {
      input_tokens: 1,
      output_tokens: 2,
      cache_read_input_tokens: 3,
      cache_creation_input_tokens: 4,
    };
    expect(view({ role: "assistant", model: "m", usage: anthropic, stop_reason: "end_turn" })).toMatchObject({
      usage: { inputTokens: 1, outputTokens: 2, cacheReadTokens: 3, cacheWriteTokens: 4 },
      stopReason: "end_turn",
    });
    const openai = { prompt_tokens: 100, completion_tokens: 5, prompt_tokens_details: { cached_tokens: 80 } };
    expect(view({ role: "assistant", usage: openai }).usage).toEqual({
      inputTokens: 20,
      outputTokens: 5,
      cacheReadTokens: 80,
    });
    expect(view({ role: "user", usage: {} })).not.toHaveProperty("usage");
    // Not counts of tokens: they would end sums, and the database refuses them.
    for (const input of [1.5, 1e308, -1, Number.MAX_SAFE_INTEGER, "12"])
      expect(view({ role: "assistant", usage: { input, output: 2 } }).usage).toEqual({ outputTokens: 2 });
  });
});

describe("what is no message", () => {
  test.each([
    ["a header", { type: "session", id: "a", cwd: "/tmp" }, ""],
    ["a summary line", { type: "summary", summary: "Fixed the build" }, "Fixed the build"],
    [
      "a system note",
      { type: "system", subtype: "compact_boundary", content: "Conversation compacted" },
      "Conversation compacted",
    ],
    [
      "a note between linked rows",
      { type: "system", parentUuid: null, uuid: "a", content: "Reloaded" },
      "Reloaded",
    ],
    [
      "a custom entry with blocks",
      { type: "custom_message", content: [{ type: "text", text: "ctx" }] },
      "ctx",
    ],
    ["a plain string", "just words", "just words"],
    ["an array", [1, "two"], '[1,"two"]'],
    ["a message that is no object", { message: "hello", text: "t" }, "t"],
  ])("keeps the text of %s searchable", (_name, value, text) => {
    const seen = view(value);
    expect(seen).toMatchObject({ role: "other", rawRole: "", isMessage: false });
    expect(searchText(seen)).toBe(text);
  });

  test("shows the head of bytes that are no JSON", () => {
    const bytes = Buffer.from(`{"role":"user","content":"cut o${"é".repeat(10_000)}`);
    const seen = viewMessage(bytes);
    expect(seen).toMatchObject({
      isMessage: false,
      role: "other",
      parts: [{ at: 0, length: bytes.length, type: "other" }],
    });
    expect(seen.parts[0]?.text).toMatch(/^\{"role":"user","content":"cut oé+…$/);
    expect(seen.parts[0]?.text.length).toBeLessThan(4097);
    expect(viewMessage(Buffer.from('{"role":"user"} trailing')).isMessage).toBe(false);
    expect(viewMessage(Buffer.alloc(0)).parts).toHaveLength(1);
  });

  test("reads a line behind a byte order mark, and one whose text is no UTF-8", () => {
    expect(viewMessage(Buffer.from('\ufeff{"role":"user","content":"hi"}')).parts[0]?.text).toBe("hi");
    const latin1 = viewMessage(Buffer.from('{"role":"user","content":"caf\xe9"}', "latin1"));
    expect(latin1).toMatchObject({ isMessage: true, parts: [{ text: "caf\ufffd" }] });
  });
});

describe("any bytes", () => {
  const messageLike = fc.record(
    {
      role: fc.oneof(fc.constantFrom("user", "assistant", "tool", "toolResult", "custom"), jsonValue()),
      content: fc.oneof(fc.array(fc.oneof(blockLike(), jsonValue())), jsonValue()),
      tool_calls: fc.oneof(fc.array(blockLike()), jsonValue()),
      usage: jsonValue(),
      timestamp: jsonValue(),
      toolCallId: jsonValue(),
    },
    { requiredKeys: ["role"] },
  );

  function blockLike(): fc.Arbitrary<unknown> {
    const type = fc.constantFrom(
      ..."text thinking reasoning tool_use toolCall tool_result function_call_output image image_url document file odd".split(
        " ",
      ),
    );
    const members = fc.dictionary(
      fc.constantFrom(
        ..."text content output source image_url file data name input arguments tool_use_id function summary".split(
          " ",
        ),
      ),
      fc.oneof(jsonValue(), anyText()),
    );
    return fc.tuple(type, members).map(([name, rest]) => ({ ...rest, type: name }));
  }

  test("give a view whose parts stand inside the bytes", () => {
    const inputs = fc.oneof(
      fc.uint8Array({ maxLength: 200 }).map(Buffer.from),
      jsonValue().map(encode),
      messageLike.map(encode),
      messageLike.map((message) => encode({ type: "message", message })),
      messageLike.map((message) => encode(message).subarray(0, -1)),
    );
    fc.assert(
      fc.property(inputs, (bytes) => {
        const seen = viewMessage(bytes);
        for (const part of seen.parts) {
          expect(part.at + part.length).toBeLessThanOrEqual(bytes.length);
          if (seen.isMessage) expect(() => underlying(bytes, part)).not.toThrow();
        }
        expect(messageTokens(seen, (text) => text.length)).toBeGreaterThan(0);
      }),
      { numRuns: 1000 },
    );
  });

  test("give a view of numbers too large for JavaScript", () => {
    expect(viewMessage(Buffer.from('{"role":"user","content":[1e999]}')).parts[0]?.text).toBe("1e999");
    expect(viewMessage(Buffer.from("[-1e999]")).isMessage).toBe(false);
  });

  test("nested 20 000 levels deep give a view", () => {
    const deep = "[".repeat(20_000) + "]".repeat(20_000);
    for (const text of [
      deep,
      `{"role":"user","content":${deep}}`,
      `{"role":"user","content":[{"type":"odd","x":${deep}}]}`,
      `{"role":"assistant","content":[{"type":"tool_use","input":${deep}}]}`,
      `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":${deep}}]}`,
    ]) {
      expect(viewMessage(Buffer.from(text)).parts.length).toBeGreaterThan(0);
    }
  });
});

describe("an image whose data was cut out", () => {
  test.each([
    ["data", (note: string) => ({ type: "image", data: note, mimeType: "image/png" })],
    [
      "a source",
      (note: string) => ({ type: "image", source: { type: "base64", media_type: "image/png", data: note } }),
    ],
    ["a URL", (note: string) => ({ type: "image_url", image_url: { url: `data:image/png;base64,${note}` } })],
  ])("shows the reference that stands in %s and costs no more than it", (_name, block) => {
    const note = "[LCM File: file_0123456789abcdef | image.png | 12 kB]";
    const seen = view({ role: "user", content: [block(note)] });
    expect(seen.parts).toMatchObject([{ type: "image", text: note }]);
    expect(messageTokens(seen, () => 9)).toBe(9 + MESSAGE_OVERHEAD_TOKENS);
  });
});

describe("tokens", () => {
  const perCharacter = (text: string): number => text.length;

  test("are those of the text plus the frame", () => {
    expect(messageTokens(view({ role: "user", content: "12345" }), perCharacter)).toBe(
      5 + MESSAGE_OVERHEAD_TOKENS,
    );
  });

  test("have a flat price for an image, none for a link", () => {
    const image = { type: "image", data: PIXEL, mimeType: "image/png" };
    expect(messageTokens(view({ role: "user", content: [image, image] }), perCharacter)).toBe(
      2 * IMAGE_TOKENS + MESSAGE_OVERHEAD_TOKENS,
    );
  });

  test("count base64 in the middle of a text by its characters", () => {
    const tokens = messageTokens(view({ role: "user", content: LONG_BASE64 }), () => 0);
    expect(tokens).toBe(300 + MESSAGE_OVERHEAD_TOKENS);
  });
});

describe.each(["claude-code", "pi-v3-derived", "pi", "codex"])("the real transcripts of %s", (name) => {
  const folder = transcriptFolder(name);

  test.skipIf(folder === null)(
    "give views whose parts stand on the right bytes (skipped without the shared data)",
    () => {
      let messages = 0;
      for (const bytes of readTranscriptLines(folder as string)) {
        const seen = viewMessage(bytes);
        if (seen.isMessage) messages++;
        for (const part of seen.parts) if (seen.isMessage) expectPartToMatch(bytes, part);
      }
      expect(messages).toBeGreaterThan(2);
    },
  );
});

/** The bytes of a part are a JSON value that says what the part says. */
function expectPartToMatch(bytes: Buffer, part: PartView): void {
  const value = underlying(bytes, part);
  if (typeof value === "string") {
    if (part.text !== "") expect(value.startsWith(part.text.slice(0, 20).replace(/^\$ /, ""))).toBe(true);
    return;
  }
  expect(value).toHaveProperty("type");
  const strings = JSON.stringify(value);
  const firstLine = part.text.split("\n")[0] as string;
  expect(strings).toContain(JSON.stringify(firstLine.slice(0, 60)).slice(1, -1).replace(/:.*$/, ""));
  if (part.toolName !== undefined && part.type === "tool_call") expect(strings).toContain(part.toolName);
}
