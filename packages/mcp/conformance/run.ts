/**
 * `npm run test:mcp`: checks the MCP server with tools of others. The protocol's conformance suite tests our HTTP stack, once with the fixtures
 * it requires (`fixtures.ts`) and once with the product's server, in both eras; the inspector lists everything on stdin with its strict checks.
 * Expected failures, with reasons, are in `expected-*.yml`; an unlisted failure ends this with status 1, and so does a listed one that passes.
 * Scenarios that a revision does not require (extensions, drafts) are run and do not count.
 *
 * The programs are installed from the lock file beside this one into the cache, once, about 150 MB. Ends only processes it started.
 */
import { spawn, spawnSync } from "node:child_process";
import { hash } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { request, type RequestListener } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openEngine } from "lossless-claw";
import { startLoopback } from "@lossless/testkit/loopback.ts";
import { SAMPLE } from "@lossless/testkit/sample.ts";
import { cachePath, installLocked, isCached } from "@lossless/testkit/tool-cache.ts";
import { makeFactory, openOnDemand, startHttp, type McpServerFactory } from "../src/index.ts";
import { makeFixtures } from "./fixtures.ts";

const HERE = import.meta.dirname;
const LCM = join(HERE, "../../cli/bin/lcm.js");
const TOKEN = "a-token-for-the-suite";
const REVISIONS = ["2025-11-25", "2026-07-28"];
/** Scenarios that need no fixture, and so also run against the product. */
const PLAIN: Readonly<Record<string, readonly string[]>> = {
  "2025-11-25": [
    "server-initialize",
    "ping",
    "tools-list",
    "resources-list",
    "prompts-list",
    "dns-rebinding-protection",
    "server-session-lifecycle",
  ],
  "2026-07-28": [
    "server-stateless",
    "tools-list",
    "resources-list",
    "prompts-list",
    "sep-2164-resource-not-found",
    "caching",
    "dns-rebinding-protection",
    "http-header-validation",
  ],
};
/** The inspector's requests. For tools it also checks for schemas that some client cannot read. */
const QUESTIONS = [
  ["tools/list", "--strict"],
  ["resources/list"],
  ["resources/templates/list"],
  ["prompts/list"],
  ["tools/call", "--tool-name", "lcm_grep", "--tool-arg", "pattern=carrier ban"],
];

const tools = await ensureTools();
const folder = mkdtempSync(join(tmpdir(), "lossless-mcp-"));
const database = join(folder, "lcm.db");
let failed = 0;
try {
  await withServer(makeFixtures, async (url) => {
    for (const revision of REVISIONS) await examine(url, revision, ["--requirements", revision]);
  });
  report(
    "the sample is imported",
    spawnSync(process.execPath, [LCM, "import", SAMPLE, "--db", database]).status,
  );
  const archive = openOnDemand(() => openEngine({ database, readOnly: true }));
  const reader = { engine: archive.engine, owner: undefined, project: undefined, timeZone: "UTC" };
  await withServer(makeFactory(reader, "0"), async (url) => {
    for (const revision of REVISIONS)
      for (const scenario of PLAIN[revision] ?? [])
        await examine(url, revision, ["--spec-version", revision, "--scenario", scenario]);
  });
  await archive.close();
  for (const question of QUESTIONS) await inspect(question.join(" "), question);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
console.log(failed === 0 ? "all as expected" : `${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;

async function ensureTools(): Promise<string> {
  const target = cachePath(
    `mcp-${hash("sha256", readFileSync(join(HERE, "package-lock.json"))).slice(0, 12)}`,
  );
  if (!isCached(target)) {
    console.log("installing the conformance suite and the inspector into the cache (about 150 MB, once)");
    await installLocked(HERE, target);
  }
  return join(target, "node_modules", "@modelcontextprotocol");
}

/** The server behind a proxy that adds the token: the suite has no option for one. */
async function withServer(factory: McpServerFactory, work: (url: string) => Promise<void>): Promise<void> {
  const server = await startHttp(factory, { port: 0, token: TOKEN, onProblem: () => undefined });
  const proxy = await startLoopback(forwardTo(server.url));
  try {
    await work(`${proxy.url}/mcp`);
  } finally {
    await proxy.close();
    await server.close();
  }
}

function forwardTo(url: string): RequestListener {
  return (incoming, outgoing) => {
    const headers = { ...incoming.headers, authorization: `Bearer ${TOKEN}` };
    const forwarded = request(url, { method: incoming.method, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(outgoing);
    });
    forwarded.on("error", () => outgoing.destroy());
    outgoing.on("close", () => forwarded.destroy());
    incoming.pipe(forwarded);
  };
}

async function examine(url: string, revision: string, choice: readonly string[]): Promise<void> {
  const expected = join(HERE, `expected-${revision}.yml`);
  const { status, output } = await run("conformance/dist/index.js", [
    "server",
    "--url",
    url,
    "--expected-failures",
    expected,
    ...choice,
  ]);
  const last = output.match(/^(Total: .*|Passed: .*)$/m)?.[0] ?? "";
  report(`${choice.slice(-1)[0]} of ${revision}  ${last}`, status, output);
}

async function inspect(name: string, question: readonly string[]): Promise<void> {
  const command = [process.execPath, LCM, "--db", database, "mcp"];
  const { status, output } = await run(inspectorProgram(), ["--cli", ...command, "--method", ...question]);
  report(`the inspector asks ${name}`, status, output);
}

function inspectorProgram(): string {
  const { bin } = JSON.parse(readFileSync(join(tools, "inspector/package.json"), "utf8")) as {
    bin: Record<string, string>;
  };
  return join("inspector", bin["mcp-inspector"] ?? "");
}

/** Asynchronous: the server under test runs in this process. */
async function run(program: string, args: readonly string[]): Promise<{ status: number; output: string }> {
  const child = spawn(process.execPath, [join(tools, program), ...args], {
    cwd: folder,
    env: { PATH: process.env["PATH"], HOME: folder, TZ: "UTC", NO_COLOR: "1" },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (chunk: Buffer) => (output += chunk.toString("utf8")));
  const [status] = (await once(child, "close")) as [number | null];
  return { status: status ?? 1, output };
}

function report(name: string, status: number | null, output = ""): void {
  if (status === 0) return console.log(`ok    ${name}`);
  failed += 1;
  console.log(`FAIL  ${name}\n${output.slice(-6000)}`);
}
