/**
 * The plugin for Claude Code, for users who install plugins instead of running `lcm setup claude-code`: the same MCP server, hooks and skill, as
 * a folder, and the marketplace file that names it. It is part of the package, so it contains no path of this machine: it starts `lcm`, and its
 * hooks find the archive by the same variables as `lcm`.
 */
import { listHookEvents } from "../hooks/events.ts";
import { renderScript } from "../hooks/script.ts";
import { SKILL, SKILL_NAME } from "./skill.ts";

/** The folder of the plugin in the package. */
const FOLDER = "claude-plugin";
const NAME = "lossless";
const DESCRIPTION = "Find and reopen everything from past sessions, also after a compaction.";
const HOOK_SECONDS = 5;

/** Paths in the package, and the content of these files. */
export const renderClaudePlugin = (version: string): Readonly<Record<string, string>> => ({
  ".claude-plugin/marketplace.json": toJson({
    name: "lossless-claw",
    owner: { name: "lossless-claw" },
    metadata: { description: DESCRIPTION, version },
    plugins: [{ name: NAME, source: `./${FOLDER}`, description: DESCRIPTION, version }],
  }),
  [`${FOLDER}/.claude-plugin/plugin.json`]: toJson({
    name: NAME,
    version,
    description: DESCRIPTION,
    author: { name: "lossless-claw" },
    license: "MIT",
    mcpServers: "./.mcp.json",
  }),
  [`${FOLDER}/.mcp.json`]: toJson({
    mcpServers: { [NAME]: { command: "lcm", args: ["mcp"], alwaysLoad: true } },
  }),
  [`${FOLDER}/hooks/hooks.json`]: toJson({ description: DESCRIPTION, hooks: describeHooks() }),
  [`${FOLDER}/hook.sh`]: renderPluginScript(),
  [`${FOLDER}/skills/${SKILL_NAME}/SKILL.md`]: SKILL.replace(
    "\n<!-- Written by lcm setup, which also removes it. -->\n",
    "",
  ),
});

const toJson = (value: object): string => `${JSON.stringify(value, null, 2)}\n`;

const describeHooks = (): object =>
  Object.fromEntries(
    listHookEvents("claude-code").map(({ name }) => {
      const command = `sh "\${CLAUDE_PLUGIN_ROOT}/hook.sh" ${name} 2>/dev/null || true`;
      return [name, [{ hooks: [{ type: "command", command, timeout: HOOK_SECONDS }] }]];
    }),
  );

/**
 * An archive on a server has a local name, made from its host and database as `nameLocally` makes it. An address that needs decoding for that is
 * left to `lcm setup`.
 */
const FIND_DATABASE = `state=\${OPENCLAW_STATE_DIR:-\${LCM_OPENCLAW_DIR:-$HOME/.openclaw}}
database=\${LCM_DATABASE_PATH:-$state/lcm.db}
case $database in
/*) ;;
postgres://*|postgresql://*)
  place=\${database#*://} asked= host= port=
  case $place in *\\?*) asked=\${place#*\\?} place=\${place%%\\?*} ;; esac
  case $place in *@/*) place=localhost/\${place##*@/} ;; *@*) place=\${place##*@} ;; esac
  while [ -n "$asked" ]; do
    case $asked in host=*) host=\${asked#host=} host=\${host%%&*} ;; port=*) port=\${asked#port=} port=\${port%%&*} ;; esac
    case $asked in *\\&*) asked=\${asked#*&} ;; *) asked= ;; esac
  done
  case $place$host$port in *%*) exit 0 ;; esac
  name=$(printf '%s %s %s' "$place" "$host" "$port" | { sha256sum || shasum -a 256; } 2>/dev/null)
  [ -n "$name" ] || exit 0
  database=$state/lcm-\${name%"\${name#????????????}"} ;;
*) exit 0 ;;
esac`;

function renderPluginScript(): string {
  const script = renderScript("claude-code", {
    spool: '"$database.capture/spool"',
    bundles: '"$database.capture/bundles"',
  });
  const [, ...lines] = script.split("\n");
  return ["# Hands events of Claude Code to lossless-claw.", FIND_DATABASE, ...lines].join("\n");
}
