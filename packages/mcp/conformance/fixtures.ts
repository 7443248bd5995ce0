/**
 * Fixtures of the conformance suite: the tools, resources and prompts that it requires of a server under test. Registered on a bare server
 * behind our HTTP stack; the product has none of them. Wording and values are those that the suite expects.
 */
import { McpServer, ResourceTemplate } from "@modelcontextprotocol/server";
import type {
  CallToolResult,
  McpServerFactory,
  ServerContext,
  StandardSchemaWithJSON,
} from "@modelcontextprotocol/server";
import { setTimeout } from "node:timers/promises";

/** One pixel. */
const PNG =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
/** A header without samples. */
const WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA=";

const FIXED = { listChanged: false };

type Content = CallToolResult["content"][number];

const text = (words: string): Content => ({ type: "text", text: words });
const image: Content = { type: "image", data: PNG, mimeType: "image/png" };
const resource = (uri: string, mimeType: string, words: string): Content => ({
  type: "resource",
  resource: { uri, mimeType, text: words },
});

const TOOLS: Readonly<Record<string, readonly Content[]>> = {
  test_simple_text: [text("This is a simple text response for testing.")],
  test_image_content: [image],
  test_audio_content: [{ type: "audio", data: WAV, mimeType: "audio/wav" }],
  test_embedded_resource: [
    resource("test://embedded-resource", "text/plain", "This is an embedded resource content."),
  ],
  test_multiple_content_types: [
    text("Multiple content types test:"),
    image,
    resource("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
  ],
};

export const makeFixtures: McpServerFactory = () => {
  const server = new McpServer(
    { name: "conformance-fixtures", version: "0" },
    { capabilities: { tools: FIXED, resources: FIXED, prompts: FIXED, completions: {} } },
  );
  addTools(server);
  addResources(server);
  addPrompts(server);
  return server;
};

function addTools(server: McpServer): void {
  for (const [name, content] of Object.entries(TOOLS))
    server.registerTool(name, { description: `Fixture ${name}` }, () => ({ content: [...content] }));
  server.registerTool("test_error_handling", { description: "Fixture that fails" }, () => {
    throw new Error("This tool intentionally returns an error for testing");
  });
  server.registerTool(
    "test_tool_with_progress",
    { description: "Fixture that takes its time" },
    reportProgress,
  );
}

async function reportProgress({ mcpReq }: ServerContext): Promise<CallToolResult> {
  const progressToken = mcpReq._meta?.progressToken;
  for (const progress of [0, 50, 100]) {
    if (progressToken !== undefined)
      await mcpReq.notify({
        method: "notifications/progress",
        params: { progressToken, progress, total: 100 },
      });
    // The suite expects them one after another.
    await setTimeout(50);
  }
  return { content: [text("Done")] };
}

function addResources(server: McpServer): void {
  const uri = "test://static-text";
  const words = "This is the content of the static text resource.";
  server.registerResource("static-text", uri, { description: "Text", mimeType: "text/plain" }, () => ({
    contents: [{ uri, mimeType: "text/plain", text: words }],
  }));
  const binary = "test://static-binary";
  server.registerResource("static-binary", binary, { description: "Bytes", mimeType: "image/png" }, () => ({
    contents: [{ uri: binary, mimeType: "image/png", blob: PNG }],
  }));
  const template = new ResourceTemplate("test://template/{id}/data", { list: undefined });
  server.registerResource("template", template, { description: "Template" }, ({ href }, { id }) => ({
    contents: [
      {
        uri: href,
        mimeType: "application/json",
        text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${String(id)}` }),
      },
    ],
  }));
}

function addPrompts(server: McpServer): void {
  const say = (...content: Content[]) => ({
    messages: content.map((part) => ({ role: "user" as const, content: part })),
  });
  server.registerPrompt("test_simple_prompt", { description: "Fixture" }, () =>
    say(text("This is a simple prompt for testing.")),
  );
  server.registerPrompt("test_prompt_with_image", { description: "Fixture" }, () =>
    say(image, text("Please analyze the image above.")),
  );
  server.registerPrompt(
    "test_prompt_with_arguments",
    { description: "Fixture", argsSchema: describeTexts("arg1", "arg2") },
    ({ arg1, arg2 }) => say(text(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)),
  );
  server.registerPrompt(
    "test_prompt_with_embedded_resource",
    { description: "Fixture", argsSchema: describeTexts("resourceUri") },
    ({ resourceUri = "" }) =>
      say(
        resource(resourceUri, "text/plain", "Embedded resource content for testing."),
        text("Please process the embedded resource above."),
      ),
  );
  server.server.setRequestHandler("completion/complete", () => ({
    completion: { values: ["paris", "park", "party"], total: 3, hasMore: false },
  }));
}

/** An object of required texts. */
function describeTexts(...names: string[]): StandardSchemaWithJSON<unknown, Record<string, string>> {
  const schema = {
    type: "object",
    properties: Object.fromEntries(names.map((name) => [name, { type: "string", description: name }])),
    required: names,
  };
  return {
    "~standard": {
      version: 1,
      vendor: "lossless",
      validate: (value) => ({ value: value as Record<string, string> }),
      jsonSchema: { input: () => schema, output: () => schema },
    },
  };
}
