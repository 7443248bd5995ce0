/**
 * The cost of a hook for the agent that waits for it, compared with a bare `sh` that appends a line: alternating runs of the actual commands of
 * agents, from start to end, with input and output. `--rounds N` overrides the 100 rounds.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { findBundleFolder, findSpoolFolder, renderHookCommand } from "@lossless/agents";
import { installHookScript } from "../packages/agents/test/install-hooks.ts";
import { median, round } from "./history.ts";
import type { BenchResult } from "./report.ts";

const ROUNDS = 100;
const SESSION = "5e0c1a52-8d1f-4f0e-9c6a-2b7d3e4f5a61";
const EVENT = {
  session_id: SESSION,
  transcript_path: `/home/user/.claude/projects/-home-user-app/${SESSION}.jsonl`,
  cwd: "/home/user/app",
  permission_mode: "default",
};
const STOP = { ...EVENT, hook_event_name: "Stop", last_assistant_message: "It is done. ".repeat(100) };
const COMPACTED = { ...EVENT, hook_event_name: "SessionStart", source: "compact" };
/** The maximum size of a bundle. */
const BUNDLE = `${JSON.stringify({ hookSpecificOutput: { additionalContext: "word ".repeat(1_000) } })}\n`;

interface Case {
  readonly what: string;
  readonly command: string;
  readonly event: object;
  /** As a multiple of the bare one; null for that. */
  readonly bar: number | null;
  readonly printed: string;
}

export async function run(args: readonly string[]): Promise<BenchResult> {
  const rounds = args.includes("--rounds") ? Number(args[args.indexOf("--rounds") + 1]) : ROUNDS;
  const folder = mkdtempSync(path.join(tmpdir(), "lossless-hooks-"));
  const database = path.join(folder, "lcm.db");
  try {
    installHookScript(database, "claude-code");
    const cases = listCases(database, path.join(folder, "lines"));
    const times = measure(cases, rounds, database);
    const bare = median(times[0] ?? []);
    return {
      name: `what a hook costs, median of ${rounds} alternating runs`,
      rows: cases.map(({ what, bar }, at) => {
        const ms = median(times[at] ?? []);
        const holds = bar === null ? "" : ms <= bar * bare ? "yes" : "NO";
        return { what, ms: round(ms, 2), share: round(ms / bare, 2), bar: bar ?? "", holds };
      }),
      notes: ["share: of a bare sh that appends the event to a file without starting another program"],
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function listCases(database: string, lines: string): Case[] {
  const hook = (event: string): string => renderHookCommand(database, "claude-code", event);
  return [
    { what: "bare sh", command: `read -r l; echo "$l" >>${lines}`, event: STOP, bar: null, printed: "" },
    { what: "a hook that spools", command: hook("Stop"), event: STOP, bar: 3, printed: "" },
    {
      what: "a hook that hands over a bundle",
      command: hook("SessionStart"),
      event: COMPACTED,
      bar: 6,
      printed: BUNDLE,
    },
  ];
}

/** The round empties the spool, as the watcher would. */
function measure(cases: readonly Case[], rounds: number, database: string): number[][] {
  const times: number[][] = cases.map(() => []);
  for (let at = 0; at < rounds; at += 1) {
    const spool = findSpoolFolder(database);
    for (const name of readdirSync(spool)) rmSync(path.join(spool, name));
    for (const [place, { command, event, printed }] of cases.entries()) {
      writeFileSync(path.join(findBundleFolder(database), `claude-code.${SESSION}.json`), BUNDLE);
      const input = `${JSON.stringify(event)}\n`;
      const began = performance.now();
      const { stdout } = spawnSync("/bin/sh", ["-c", command], { input, encoding: "utf8" });
      times[place]?.push(performance.now() - began);
      if (stdout !== printed) throw new Error(`a hook printed ${JSON.stringify(stdout)}`);
    }
    if (readdirSync(spool).length !== cases.length - 1) throw new Error("a hook spooled nothing");
  }
  return times;
}
