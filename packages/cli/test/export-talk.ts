/** A session of Claude Code to export: a secret that a heading would cut, Markdown that tries to act, an edit, a failure, reasoning, a picture. */
export const KEY = `sk-${"a1B2".repeat(8)}`;
const TOKEN = `ghp_${"x9Y8".repeat(10)}`;
/** One red point. */
const PICTURE =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";

export function makeTalk(): string {
  const line = (minute: number, type: "user" | "assistant", content: unknown): object => ({
    type,
    uuid: `u${minute}`,
    parentUuid: minute === 0 ? null : `u${minute - 1}`,
    sessionId: "4b1c2d3e-0000-4000-8000-000000000001",
    version: "2.0.0",
    isSidechain: false,
    userType: "external",
    cwd: "/home/me/shop",
    gitBranch: "main",
    timestamp: new Date(Date.UTC(2026, 2, 1, 9, minute)).toISOString(),
    message: { role: type, content, ...(type === "assistant" ? { model: "model-x" } : {}) },
  });
  const lines = [
    line(
      0,
      "user",
      `Round the **price** of the basket in the shop, and use this key when you call the service: ${KEY}`,
    ),
    line(1, "assistant", [
      { type: "thinking", thinking: "A quiet thought about pelicans" },
      {
        type: "text",
        text: '# Plan\n\n1. Read `basket.ts`\n2. [Docs](https://example.org/a), [trap](javascript:alert(1))\n\n<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>\n\n```ts\nconst price = 1;\n```',
      },
      {
        type: "tool_use",
        id: "call_edit",
        name: "Edit",
        input: {
          file_path: "src/basket.ts",
          old_string: "return sum;",
          new_string: "return Math.round(sum);",
        },
      },
    ]),
    line(2, "user", [{ type: "tool_result", tool_use_id: "call_edit", content: "Updated.\nLine two" }]),
    line(3, "assistant", [
      { type: "tool_use", id: "call_bash", name: "Bash", input: { command: "npm test" } },
    ]),
    line(4, "user", [
      {
        type: "tool_result",
        tool_use_id: "call_bash",
        content: `exit 1: one zebra failed\n\u001b[31m${TOKEN}\u001b[0m https://x.example/?k%3D${KEY}`,
        is_error: true,
      },
    ]),
    line(5, "assistant", "</script></style><style>body{display:none}</style> The zebra is fixed."),
    line(6, "user", [
      { type: "text", text: "And this picture?" },
      { type: "image", source: { type: "base64", media_type: "image/png", data: PICTURE } },
    ]),
    line(7, "assistant", "A red point."),
    { type: "file-history-snapshot", messageId: "u7", snapshot: {} },
    { type: "queue-operation", operation: "enqueue", content: "housekeeping-word" },
  ];
  return `${lines.map((one) => JSON.stringify(one)).join("\n")}\n`;
}
