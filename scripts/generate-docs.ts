/**
 * Generates the pages of docs/ that come from tables in the code. `--check` writes nothing and fails when a page is out of date, so that docs
 * and code cannot diverge. A new page is one more entry in PAGES.
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { ERROR_CODES } from "@lossless/core";
import { describeDefault, describeLimits, getSetting, SETTING_GROUPS } from "@lossless/core/settings";
import type { SettingKey } from "@lossless/core/settings";
import { helpOf } from "../packages/cli/src/commands/config/help.ts";
import { buildProgram, DESCRIPTION, listCommands } from "../packages/cli/src/program.ts";
import { commandPath } from "../packages/cli/src/invocation.ts";
import { renderStorage } from "./storage-page.ts";

interface Page {
  readonly path: string;
  readonly render: () => string;
}

const PAGES: readonly Page[] = [
  { path: "docs/configuration.md", render: renderConfiguration },
  { path: "docs/errors.md", render: renderErrors },
  { path: "docs/cli.md", render: renderCommands },
  { path: "docs/storage.md", render: () => renderStorage(NOTE, MIGRATIONS_DIR) },
];

const MIGRATIONS_DIR = join(import.meta.dirname, "../packages/sqlite/src/migrations");
const NOTE = "<!-- Made by `npm run docs` from the code. Change it there, not here. -->";

function renderConfiguration(): string {
  const sections = SETTING_GROUPS.map(({ title, keys }) =>
    [`## ${title}`, ...renderGroup(keys)].join("\n\n"),
  );
  return `${[CONFIGURATION_INTRO, ...sections, CONFIGURATION_NOTES].join("\n\n")}\n`;
}

const CONFIGURATION_INTRO = `${NOTE}

# Configuration

No configuration is required: every setting has a default. A value is taken from the first of these places that has it:

1. the environment,
2. \`lcm.json\` in the state directory (written by \`lcm config set\`; inside a host this file is not read),
3. the host's config: \`plugins.entries.lossless-claw.config\` in \`openclaw.json\`,
4. the default.

\`lcm config explain <key>\` shows a value, its default, and where it came from. Unknown keys and values out of range are refused
before anything is opened or written. The error names the place, and the nearest known key or the allowed range.

**Settings that cannot work together** are refused by \`lcm config set\`, which says what is allowed. \`leafChunkTokens\`, also in
\`contextThresholdOverrides\`, must be greater than \`leafTargetTokens\`, and \`condensedMinFanout\` must be at least \`condensedMinFanoutHard\`.

The OpenClaw plugin never stops a gateway because of a value that cannot be used. It takes the default, and \`/lcm status\`, \`/lcm doctor\` and
\`lcm doctor\` report it. Only a broken \`redactPatterns\`, \`redactedValues\` or \`redactionKeyFile\` stops storing, because the default would store secrets
that you wanted to keep out.

\`\`\`json
{
  "freshTailCount": 48,
  "ignoreSessionPatterns": ["agent:*:cron:**"],
  "autoRotateSessionFiles": { "startup": "off" }
}
\`\`\`

**State directory** (\`<state>\` below): \`OPENCLAW_STATE_DIR\`, else \`LCM_OPENCLAW_DIR\`, else \`~/.openclaw\`. Every path may begin
with \`~\`.

**In the environment** a flag is \`true\`, \`1\`, \`yes\`, \`on\` or \`false\`, \`0\`, \`no\`, \`off\`; a list is separated by commas. An empty variable
counts as not set, except \`LCM_STRIP_INJECTED_CONTEXT_TAGS\`, where empty means no tags. In a config file, write numbers and
flags as JSON numbers and booleans, not as text.

A key with a dot is inside an object, as \`autoRotateSessionFiles.startup\` above. An *older name* of a key (status *alias*) still
works and gives a notice. All keys are *active*, except those under [kept for older configurations](#kept-for-older-configurations).`;

const CONFIGURATION_NOTES = `## Session patterns

\`ignoreSessionPatterns\`, \`statelessSessionPatterns\` and the \`sessionPattern\` of a rule are matched against the whole session key.
\`*\` matches any text inside one segment between colons, \`**\` matches any text across segments.

| Pattern | Covers | Does not cover |
|---|---|---|
| \`agent:main:main\` | \`agent:main:main\` | \`agent:main:main:x\` |
| \`agent:*:cron:*\` | \`agent:main:cron:42\` | \`agent:main:cron:42:run:7\` |
| \`agent:*:cron:**\` | \`agent:main:cron:42:run:7\` | \`agent:main:main\` |

## Rules for the threshold

Each rule of \`contextThresholdOverrides\` has a \`match\` and a \`contextThreshold\`. It may have a \`name\`, and a \`freshTailCount\` and
\`leafChunkTokens\` that replace the general values.

| In \`match\` | Holds when | Weight |
|---|---|---|
| \`model\` | the model has exactly this name, with or without its provider | 100 |
| \`sessionPattern\` | the session key is covered | 50 |
| \`modelContextWindowMin\` | the model's window has at least this many tokens | 20 |
| \`modelContextWindowMax\` | the model's window has at most this many tokens | 20 |

A \`match\` needs at least one part, and all its parts must hold. Of the rules that match, the one with the greatest sum of
weights is used; if two sums are equal, the earlier rule. The conditions on the window hold only when the host says how large it is.

\`\`\`json
{
  "contextThresholdOverrides": [
    { "match": { "modelContextWindowMin": 900000 }, "contextThreshold": 0.25 },
    { "match": { "sessionPattern": "agent:*:telegram:**" }, "contextThreshold": 0.5, "freshTailCount": 24 }
  ]
}
\`\`\`

## Beside the config

The host decides whether the plugin may use another model than the session's. This is set beside the plugin's
config: \`plugins.entries.lossless-claw.llm\` and \`.subagent\`, each with \`allowModelOverride\` and \`allowedModels\`.`;

function renderGroup(keys: readonly SettingKey[]): string[] {
  const isWithoutEffect = keys.every((key) => getSetting(key).status === "accepted");
  const table = renderTable(
    ["Key", "Value", "Default", "Environment", isWithoutEffect ? "Why it does nothing" : "Effect"],
    keys.map(renderSetting),
  );
  return isWithoutEffect ? [ACCEPTED_INTRO, table] : [table];
}

const ACCEPTED_INTRO =
  "Status *accepted*: a configuration with these keys still loads. They have no effect and give one notice when set.";

function renderSetting(key: SettingKey): string[] {
  const setting = getSetting(key);
  const byDefault = describeDefault(setting);
  return [
    [code(key), ...setting.aliases.map((alias) => `older name ${code(alias)}`)].join("<br>"),
    describeLimits(setting),
    setting.default.kind === "fixed" ? code(byDefault) : byDefault,
    setting.env.map(code).join("<br>") || "–",
    setting.help,
  ];
}

function renderErrors(): string {
  const byExit = Map.groupBy(Object.entries(ERROR_CODES), ([, { exit }]) => exit);
  const exits = [...byExit.keys()].sort((left, right) => left - right);
  const rows = exits.flatMap((exit) =>
    (byExit.get(exit) ?? []).map(([name, { when }]) => [code(name), String(exit), when]),
  );
  return `${NOTE}

# Errors

Every error that is not a bug has a code that programs can test, a message that says what could not be done and why, and
mostly a hint with the next step. \`lcm\` prints them on stderr and ends with the status of the code; with \`--json\` it prints
\`{"ok": false, "error": {"code", "message", "hint"}}\`. In the library they are \`EngineError\`, with \`code\`, \`hint\` and, where the next step depends on the program, \`step\`.

A command that worked ends with status 0.

${renderTable(["Code", "Exit status", "When"], rows)}
`;
}

const HELP_COLUMNS = 100;

function renderCommands(): string {
  // The program wraps its help to the terminal's width; the page has a fixed width.
  const [program, ...commands] = listCommands(buildProgram());
  if (program === undefined) throw new Error("the program has no commands");
  const sections = commands
    .filter((command) => command.commands.length === 0)
    .map((command) => `## lcm ${commandPath(command)}\n\n${fence(helpOf(command, HELP_COLUMNS))}`);
  return `${NOTE}

# The command line

${DESCRIPTION}

\`npm install -g lossless-claw\` installs it. In a clone of the project, \`npx lcm …\` works without that; elsewhere \`npx lossless-claw …\` does, since \`lcm\` is another
package's name.

${fence(helpOf(program, HELP_COLUMNS))}

**Which archive.** \`--db\`, else the setting \`databasePath\` (see [configuration.md](configuration.md)). Only \`import\` creates a database;
commands that read open it read-only.

**For programs.** With \`--json\` a command prints one object on stdout: \`{"ok": true, "command", "data", "pagination"?, "meta"}\`. Lists are
\`data.items\`; \`pagination.next\` goes to \`--after\` (for \`search\`, to \`--offset\`) and is \`null\` at the end. Times are ISO 8601. \`ok\` is
\`false\`, with the data all the same, when the exit status is not 0: a target was not reached, the archive does not verify. Errors go to
stderr as \`{"ok": false, "error": {"code", "message", "hint"?}}\`.

**Exit status.** 0 worked, 1 something failed that should not, 2 the command line or its input is wrong, 3 not found, 4 a setting is wrong,
5 the database cannot be used, 6 verification failed, 130 cancelled by Ctrl-C. The codes are in [errors.md](errors.md).

**For people.** Tables fit the terminal and are never cut in a pipe. Colours appear on a terminal only; \`NO_COLOR\` turns them off, \`FORCE_COLOR\`
on. \`LCM_DEBUG=1\` shows where an error came from.

${sections.join("\n\n")}
`;
}

const fence = (text: string): string => `\`\`\`text\n${text.trimEnd()}\n\`\`\``;

function renderTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell) => cell.replaceAll(/(?<!\\)\|/g, String.raw`\|`)).join(" | ")} |`;
  return [line(head), `|${head.map(() => "---").join("|")}|`, ...rows.map(line)].join("\n");
}

function code(text: string): string {
  return `\`${text}\``;
}

function readPage(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return null;
    throw error;
  }
}

function main(): void {
  const root = join(dirname(fileURLToPath(import.meta.url)), "..");
  const isCheck = process.argv.includes("--check");
  const stale = PAGES.filter((page) => readPage(join(root, page.path)) !== page.render());
  if (!isCheck) {
    for (const page of stale) {
      mkdirSync(dirname(join(root, page.path)), { recursive: true });
      writeFileSync(join(root, page.path), page.render());
      console.log(`wrote ${page.path}`);
    }
    return;
  }
  for (const page of stale) console.error(`${page.path} is stale: run \`npm run docs\``);
  if (stale.length > 0) process.exitCode = 1;
}

main();
