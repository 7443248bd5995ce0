import { afterEach, beforeEach, expect, test } from "vitest";
import { startFakeModel, type FakeModel } from "../src/fake-model.ts";

let model: FakeModel;

beforeEach(async () => {
  model = await startFakeModel();
});

afterEach(async () => {
  await model.close();
});

function ask(text: string, extra: Record<string, unknown> = {}): Promise<Response> {
  return fetch(`${model.url}/chat/completions`, {
    method: "POST",
    body: JSON.stringify({ model: "fake-1", messages: [{ role: "user", content: text }], ...extra }),
  });
}

async function readReply(response: Response): Promise<unknown> {
  const body = (await response.json()) as { choices: { message: { content: unknown } }[] };
  return body.choices[0]!.message.content;
}

test("says what it is told, whole or as a stream", async () => {
  expect(await readReply(await ask("SAY good morning"))).toBe("good morning");
  const stream = await (await ask("SAY good morning", { stream: true })).text();
  expect(stream).toContain('"content":"good morning"');
  expect(stream.trimEnd().endsWith("data: [DONE]")).toBe(true);
});

test("calls a tool that the request offers, and answers its result", async () => {
  const tools = [{ type: "function", function: { name: "clock" } }];
  const call = (await (await ask('CALL_TOOL clock {"zone":"UTC"}', { tools })).json()) as {
    choices: { message: { tool_calls: unknown[] } }[];
  };
  expect(call.choices[0]!.message.tool_calls).toMatchObject([
    { function: { name: "clock", arguments: '{"zone":"UTC"}' } },
  ]);
  const messages = [
    { role: "user", content: "CALL_TOOL clock {}" },
    { role: "tool", content: "noon" },
  ];
  expect(await readReply(await ask("", { messages, tools }))).toBe("the tool said: noon");
});

test("fails as told, and overflows once per key", async () => {
  expect((await ask("FAIL_HTTP 503")).status).toBe(503);
  const overflow = await ask("OVERFLOW_ONCE k SAY fine");
  expect([overflow.status, ((await overflow.json()) as { error: { code: string } }).error.code]).toEqual([
    400,
    "context_length_exceeded",
  ]);
  expect(await readReply(await ask("OVERFLOW_ONCE k SAY fine"))).toBe("fine");
});

test("holds the first request with a key until it is released", async () => {
  const held = ask("HOLD h SAY at last");
  await model.waitForRequest((request) => request.answer === "held", 10_000);
  expect(await readReply(await ask("HOLD h SAY at once"))).toBe("at once");
  model.release("h");
  expect(await readReply(await held)).toBe("at last");
});

test("does not take what the host appends for what a person wrote", async () => {
  const messages = [
    { role: "user", content: "SAY hello" },
    { role: "user", content: "<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>> SAY something else" },
  ];
  expect(await readReply(await ask("", { messages }))).toBe("hello");
  expect(model.requests.at(-1)).toMatchObject({ userText: "SAY hello", answer: "text" });
});
