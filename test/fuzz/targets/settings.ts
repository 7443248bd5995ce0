/** Settings in files and variables; and the files of agents that `lcm setup` edits and restores. */
import { applySetup, planRemoval, planSetup, SETUP_AGENTS } from "../../../packages/agents/src/index.ts";
import { resolveSettings } from "@lossless/core";
import { SETTING_KEYS } from "@lossless/core/settings";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { accept, hold } from "../target.ts";
import type { Target } from "../target.ts";

export const settingsTarget: Target = {
  name: "settings",
  words: [
    ...SETTING_KEYS,
    "32k",
    "80%",
    "1h",
    "true",
    "LCM_FRESH_TAIL_COUNT",
    "@keys",
    "(a+)+$",
    "agent:*",
    "plugins",
    "entries",
    "lossless-claw",
    "config",
  ],
  open: async () => ({
    run: async (input) => {
      const config = parse(input);
      if (config === undefined) return;
      const env = Object.fromEntries(
        Object.entries(config ?? {}).map(([key, value]) => [
          key.startsWith("LCM_") ? key : `LCM_${key}`,
          typeof value === "string" ? value : JSON.stringify(value),
        ]),
      );
      for (const given of [
        { env: {}, config },
        { env, config: {} },
      ]) {
        await accept(() => resolveSettings(given));
        // A host has to start: any input gives settings, and they stay the same when they are read again.
        const { settings, sources } = resolveSettings({
          ...given,
          tolerant: true,
          replaceConflicts: true,
          stateDir: "/s",
        });
        const isSet = ([key]: [string, unknown]): boolean =>
          sources[key as keyof typeof sources]?.kind !== "derived";
        const kept = Object.fromEntries(Object.entries(withoutNulls(settings)).filter(isSet));
        // A refusal on the second read would be an error here.
        const again = resolveSettings({ env: {}, config: kept, stateDir: "/s" });
        for (const [key, value] of Object.entries(kept))
          hold(
            isDeepStrictEqual(withoutNulls(again.settings)[key], value),
            `${key} is another the second time`,
            value,
          );
      }
    },
    close: async () => undefined,
  }),
};

/** Null means unset, like leaving it out. */
const withoutNulls = (value: object): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(value)
      .filter(([, each]) => each !== null && each !== undefined)
      .map(([key, each]) => [key, isPlain(each) ? withoutNulls(each) : each]),
  );

const isPlain = (value: unknown): value is object =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function parse(input: Buffer): Record<string, unknown> | null | undefined {
  try {
    return JSON.parse(input.toString("utf8")) as Record<string, unknown>;
  } catch {
    // Input that is not JSON is refused before the settings see it.
    return undefined;
  }
}

const COMMAND = ["/opt/node", "/opt/lcm.js", "mcp"];

export const setupTarget: Target = {
  name: "setup",
  words: [
    "mcpServers",
    "mcp_servers",
    "lossless",
    "[mcp_servers.lossless]",
    "hooks",
    "command",
    "type",
    "matcher",
    "SessionStart",
    "PreCompact",
    "// note",
    "/* note */",
    ",",
    "# note",
    '"""',
    "'''",
    "enabled = true",
  ],
  open: async (folder) => {
    const home = join(folder, "home");
    return {
      run: async (input) => {
        for (const agent of SETUP_AGENTS) {
          rmSync(home, { recursive: true, force: true });
          mkdirSync(join(home, "data"), { recursive: true });
          const request = {
            agent,
            env: {},
            home,
            command: COMMAND,
            tools: [],
            database: join(home, "data", "lcm.db"),
          };
          const paths = planSetup(request)
            .map(({ path }) => path)
            .filter((path) => /\.(?:json|jsonc|toml)$/.test(path));
          for (const path of paths) {
            mkdirSync(dirname(path), { recursive: true });
            writeFileSync(path, input);
          }
          const done = await accept(() => applySetup(request, planSetup(request), false));
          if (done === undefined) {
            hold(
              planSetup(request).every(({ before, after }) => before === after),
              "a second setup changes something",
              agent,
            );
            applySetup(request, planRemoval(request), true);
          }
          for (const path of paths)
            hold(readFileSync(path).equals(input), "a file of the agent is not as it was", agent, path);
        }
      },
      close: async () => undefined,
    };
  },
};
