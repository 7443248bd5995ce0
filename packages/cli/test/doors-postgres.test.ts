/** Every door on an archive in a server, as real programs: web inspector, terminal UI, MCP server, watcher, and import beside a file. */
import { execFileSync, spawn, spawnSync } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { findSharedData, listTranscripts } from "@lossless/testkit";
import { describePostgres } from "@lossless/testkit/postgres-server.ts";
import { isSoak } from "@lossless/testkit/rounds.ts";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { createRunner, LCM, makeFolder, readSampleLines } from "./support.ts";
import { look } from "./worker-stage.ts";

const folder = makeFolder();
const run = createRunner(folder.path);
afterAll(folder.remove);
const { PATH = "", NODE_COMPILE_CACHE = "" } = process.env;
const ENV = { PATH, NODE_COMPILE_CACHE, HOME: folder.path, OPENCLAW_STATE_DIR: folder.path, TZ: "UTC" };
const MESSAGES = 60;

/** A program that runs until the test ends it. */
function start(args: readonly string[]): {
  child: ChildProcess;
  nextLine: () => Promise<string>;
  end: () => Promise<void>;
} {
  const child = spawn(process.execPath, [LCM, ...args], {
    cwd: folder.path,
    env: ENV,
    stdio: ["pipe", "pipe", "pipe"],
  });
  let errors = "";
  child.stderr.on("data", (chunk: Buffer) => (errors += chunk.toString()));
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  onTestFinished(() => void child.kill("SIGKILL"));
  return {
    child,
    nextLine: async () => {
      const { value, done } = await lines.next();
      if (done === true) throw new Error(`lcm ${args.join(" ")} has ended: ${errors}`);
      return value;
    },
    end: async () => {
      const ended = once(child, "close");
      child.kill("SIGINT");
      expect({ ended: await ended, errors }).toMatchObject({ ended: [0, null] });
    },
  };
}

describePostgres("on an archive in PostgreSQL", async (server) => {
  const database = await server.createDatabase();
  const db = ["--db", database];

  beforeAll(async () => {
    const transcript = join(folder.path, "session.jsonl");
    writeFileSync(transcript, readSampleLines(MESSAGES));
    expect(await run(["import", transcript, ...db])).toMatchObject({ status: 0 });
    expect(await run(["compact", "--conversation", "1", "--budget", "2000", ...db])).toMatchObject({
      status: 0,
    });
  });

  test("the web inspector shows conversations, messages, graph and context", async () => {
    const web = start(["web", ...db, "--json"]);
    let line = "";
    while (!line.includes('"url"')) line = await web.nextLine();
    const url = /http[^"]+/.exec(line)?.[0] ?? "";
    expect(await (await fetch(url)).text()).toContain('<div id="app">');
    const headers = { "x-lcm-token": new URL(url).searchParams.get("token") ?? "" };
    const ask = async (path: string): Promise<string> => {
      const response = await fetch(new URL(path, url), { headers });
      const text = await response.text();
      expect({ path, status: response.status, text }).toMatchObject({ status: 200 });
      return text;
    };
    expect(await ask("/api/conversations")).toContain(`"messages":${MESSAGES}`);
    expect(await ask("/api/conversations/1/messages?limit=5")).toContain('"messageId":');
    expect(await ask("/api/conversations/1/graph")).toContain("sum_");
    expect(await ask("/api/conversations/1/context?budget=2000")).toContain("sum_");
    await web.end();
  });

  test("the MCP server finds and opens a message", async () => {
    const mcp = start(["mcp", ...db]);
    let id = 0;
    const ask = async (method: string, params: unknown): Promise<string> => {
      mcp.child.stdin?.write(`${JSON.stringify({ jsonrpc: "2.0", id: (id += 1), method, params })}\n`);
      return mcp.nextLine();
    };
    const clientInfo = { name: "test", version: "0" };
    await ask("initialize", { protocolVersion: "2025-11-25", capabilities: {}, clientInfo });
    const found = await ask("tools/call", { name: "lcm_grep", arguments: { pattern: "the" } });
    const message = /msg_\d+/.exec(found)?.[0] ?? "";
    expect(message).not.toBe("");
    const opened = await ask("tools/call", { name: "lcm_describe", arguments: { id: message } });
    expect(opened).toContain(message);
    expect(opened).not.toContain('"isError":true');
    mcp.child.stdin?.end();
    await once(mcp.child, "close");
  });

  test.skipIf(spawnSync("tmux", ["-V"]).status !== 0)(
    "the terminal UI lists the conversation and opens it",
    async () => {
      const socket = join(folder.path, "tmux");
      const tmux = (...args: string[]): string =>
        execFileSync("tmux", ["-S", socket, "-f", "/dev/null", ...args], { encoding: "utf8", env: ENV });
      const program = `${process.execPath} ${LCM} tui --db '${database}'`;
      const window = "new-session -d -s main -x 100 -y 30".split(" ");
      tmux(...window, `sh -c "${program}; echo status $?; cat"`);
      onTestFinished(() => void spawnSync("tmux", ["-S", socket, "kill-server"]));
      const see = (text: RegExp): Promise<unknown> =>
        expect.poll(() => tmux("capture-pane", "-p", "-t", "main"), { interval: 200 }).toMatch(text);
      await see(/lcm {2}Conversations[^]*TITLE[^]*Clawdia/);
      tmux("send-keys", "-t", "main", "Enter");
      await see(/following/);
      tmux("send-keys", "-t", "main", "q");
      await see(/^status 0/m);
    },
  );

  test("the watcher stores a session as it grows, once", async () => {
    const path = join(folder.path, ".claude/projects/-app/s1.jsonl");
    const line = (n: number): string => {
      const link = { uuid: `u${n}`, parentUuid: n === 0 ? null : `u${n - 1}`, isSidechain: false };
      const message = { role: "user", content: `heron number ${n}` };
      return `${JSON.stringify({ ...link, sessionId: "s1", cwd: "/srv/app", type: "user", message })}\n`;
    };
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, line(0));
    const watched = await server.createDatabase();
    const watch = start(["watch", "--db", watched]);
    const listStored = (): Promise<string[]> =>
      look(watched, async (engine) => {
        const { items } = await engine.listConversations({ limit: 5 });
        const pages = await Promise.all(
          items.map(({ conversationId }) => engine.listMessages({ conversationId, limit: 50 })),
        );
        return pages.flatMap((page) => page.items.map(({ eventId }) => eventId));
      }).catch(() => []);
    await expect.poll(listStored).toEqual(["u0"]);
    appendFileSync(path, line(1) + line(2));
    await expect.poll(listStored).toEqual(["u0", "u1", "u2"]);
    await watch.end();
    expect(await run(["watch", "--once", "--db", watched])).toMatchObject({ status: 0, stderr: "" });
    expect(await listStored()).toEqual(["u0", "u1", "u2"]);
    expect((await run(["verify", "--db", watched])).stdout.toString()).toContain("everything is whole");
  });

  const shared = findSharedData();
  const kinds = isSoak ? ["claude-code", "codex", "gemini-cli", "pi", "swe-agent"] : ["codex"];
  const transcripts = shared === null ? [] : kinds.flatMap((kind) => listTranscripts(shared, kind));
  test.skipIf(transcripts.length === 0)(
    "importing real transcripts gives the same as on SQLite",
    async () => {
      const targets = [join(folder.path, "both.db"), await server.createDatabase()];
      const ask = async (...args: string[]): Promise<unknown> => {
        const answers: unknown[] = [];
        for (const target of targets) {
          const { status, stdout, stderr } = await run([...args, "--json", "--db", target]);
          expect({ args, status, stderr }).toMatchObject({ status: 0 });
          answers.push(withoutTimes((JSON.parse(stdout.toString()) as { data: unknown }).data));
        }
        expect(answers[1]).toEqual(answers[0]);
        return answers[0];
      };
      await ask("import", ...transcripts);
      // A second time adds nothing.
      await ask("import", ...transcripts);
      const { items } = (await ask("conversations", "list")) as { items: { id: number }[] };
      expect(items.length).toBeGreaterThan(0);
      for (const { id } of items.slice(0, 5))
        await ask("assemble", "--conversation", String(id), "--budget", "8000");
      for (const question of ["error", '"the file"', "test OR build", "read_file", "function name"])
        await ask("search", question, "--limit", "20");
      await ask("verify");
    },
  );
});

/** Times of the run itself: when a line was stored, and the time of a line that names none. */
const STARTED_AT = Date.now();
/** What depends on the machine, or names the archive. */
const VARYING = /^(database|databaseBytes|.*Ms|seconds|importId|imports?)$/;

function withoutTimes(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutTimes);
  if (typeof value === "string" && Date.parse(value) >= STARTED_AT) return "now";
  if (typeof value === "number" && value >= STARTED_AT) return "now";
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key]) => !VARYING.test(key))
      .map(([key, inner]) => [key, withoutTimes(inner)]),
  );
}
