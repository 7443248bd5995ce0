/**
 * `npm run test:agents`: the real Claude Code, Codex, Gemini CLI, OpenCode and pi, headless, against a fake model on loopback. Each is set up
 * with `lcm setup`, takes turns while `lcm watch` runs, compacts, calls `lcm_grep`, and is disconnected again. Then every line of its
 * transcripts must be in the archive exactly once, and its configuration must be as before.
 *
 * The agents are installed from the lock file beside this one into the cache, once, about 1.4 GB. Arguments select agents by name; `--keep`
 * keeps the folders, `--verbose` prints more. Ends only processes it started.
 */
import { hash } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { cachePath, installLocked, isCached } from "@lossless/testkit/tool-cache.ts";
import { LIVE_AGENTS, type LiveAgent } from "./agents.ts";
import { startAgentModel, type AgentModel } from "./model.ts";
import { LiveStage } from "./stage.ts";

const HERE = import.meta.dirname;
const FACT = "the harbour code is K7-LANTERN";
const names = process.argv.slice(2).filter((word) => !word.startsWith("--"));
const isVerbose = process.argv.includes("--verbose");
const isKept = process.argv.includes("--keep");

const tools = await ensureTools();
let failed = 0;
for (const agent of LIVE_AGENTS.filter(({ name }) => names.length === 0 || names.includes(name)))
  await play(agent);
console.log(failed === 0 ? "all passed" : `${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;

async function ensureTools(): Promise<string> {
  const lock = readFileSync(join(HERE, "package-lock.json"));
  const target = cachePath(`agents-${hash("sha256", lock).slice(0, 12)}`);
  if (!isCached(target)) {
    console.log("installing five agents into the cache (about 1.4 GB, once)");
    await installLocked(HERE, target);
  }
  return target;
}

async function play(agent: LiveAgent): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), `lossless-live-${agent.name}-`));
  const model = await startAgentModel();
  const project = join(folder, "project");
  mkdirSync(project);
  const stage = new LiveStage(agent, { home: join(folder, "home"), project, model: model.url, tools });
  const check = async (name: string, work: () => Promise<void> | void): Promise<void> => {
    try {
      await work();
      console.log(`ok    ${agent.name}: ${name}`);
    } catch (error) {
      failed += 1;
      console.log(`FAIL  ${agent.name}: ${name}\n${error instanceof Error ? error.stack : String(error)}`);
    }
  };
  try {
    await playScenes(agent, stage, model, check);
  } finally {
    await stage.stopWatching();
    await model.close();
    if (isKept) console.log(`kept: ${folder}`);
    else rmSync(folder, { recursive: true, force: true });
  }
}

type Check = (name: string, work: () => Promise<void> | void) => Promise<void>;

async function playScenes(
  agent: LiveAgent,
  stage: LiveStage,
  model: AgentModel,
  check: Check,
): Promise<void> {
  agent.configure(stage.place);
  if (agent.name === "claude-code")
    await check("claude plugin validate accepts our plugin", () => stage.validatePlugin());
  const before = stage.snapshot();
  await check("lcm setup writes its entries, once", async () => {
    await stage.setUp();
    expect(await stage.setUp(), "a second time changes a file").toEqual([]);
  });
  await stage.watch();
  await check("takes turns", async () => {
    await stage.turn(`SAY ${FACT}`);
    await stage.turn("SAY the second turn is taken");
  });
  await check("the watcher stores them", () => stage.waitForStored("K7-LANTERN"));
  if (agent.hasBundle)
    await check("a bundle is prepared", () => stage.waitFor(() => stage.bundles().length > 0, "a bundle"));
  const from = model.requests.length;
  await check("compacts", async () => {
    await stage.compact();
    await stage.turn("SAY the turn after the compaction");
    const asked = model.requests.slice(from).map(({ said, toolResult }) => toolResult ?? said);
    if (isVerbose)
      for (const said of asked) console.log(`      asked: ${JSON.stringify(said.slice(0, 300))}`);
    expect(
      asked.some((said) => agent.compaction.test(said)),
      "no summary was asked for",
    ).toEqual(true);
  });
  if (agent.hasBundle)
    await check("the bundle is in the next request, once", () => {
      const last = model.requests.findLast(({ said }) => said.includes("the turn after the compaction"));
      expect(last !== undefined, "no request came").toEqual(true);
      expect(stage.countBundles(last!.body)).toEqual(1);
    });
  await check("calls lcm_grep", () => callGrep(stage, model));
  await check("every line of its transcripts is in the archive once", async () => {
    await stage.stopWatching();
    await stage.compareTranscripts();
  });
  await check("lcm setup --remove gives its configuration back", async () => {
    await stage.remove();
    stage.compareConfiguration(before);
  });
}

/** Claude Code waits five seconds for a server at its start, and a busy machine may need more: then the next turn has the tools. */
async function callGrep(stage: LiveStage, model: AgentModel): Promise<void> {
  for (let left = 3; left > 0; left -= 1) {
    await stage.turn('CALL lcm_grep {"pattern":"K7-LANTERN","mode":"full_text"}');
    const results = model.requests
      .map(({ toolResult }) => toolResult ?? "")
      .filter((result) => result !== "");
    if (results.some((result) => /msg_\d+/u.test(result) && result.includes("K7-LANTERN"))) return;
    if (results.length > 0) throw new Error(`no result with a message: ${results.join("\n").slice(0, 2000)}`);
  }
  throw new Error(
    `no such tool in ${model.requests
      .at(-1)
      ?.tools.map(({ name }) => name)
      .join(" ")}`,
  );
}

function expect(value: unknown, message = ""): { toEqual(wanted: unknown): void } {
  return {
    toEqual(wanted) {
      if (JSON.stringify(value) === JSON.stringify(wanted)) return;
      throw new Error(`${message}: ${JSON.stringify(value)} instead of ${JSON.stringify(wanted)}`);
    },
  };
}
