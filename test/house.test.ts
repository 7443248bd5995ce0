/** Repository hygiene: pages exist, are correct, and link to each other; no traces of the machine they were written on. */
import { statSync } from "node:fs";
import { join, posix } from "node:path";
import { describe, expect, test } from "vitest";
import { TABLE_NAMES } from "@lossless/core/ports";
import { UNPROVEN } from "@lossless/core/testing";
import { buildProgram, listCommands } from "../packages/cli/src/program.ts";
import { commandPath } from "../packages/cli/src/invocation.ts";
import { listProjectFiles, readProjectFile, ROOT } from "./source-files.ts";

const files = listProjectFiles();
const manifest = JSON.parse(readProjectFile("package.json")) as {
  version: string;
  scripts: Record<string, string>;
};
const pages = files.filter((path) => path.endsWith(".md"));

const THIS_FILE = "test/house.test.ts";

/** Traces of one machine, and addresses that must not be hard-coded. */
const TRACES: readonly (readonly [name: string, trace: RegExp])[] = [
  ["a path of the machine", /(?<![\w./~-])\/(?:work|root)(?:\/[\w.]|\b(?=["'`\s]))/],
  ["a path of the machine", /\/tmp\/lab\b/],
  ["the address of a package registry", /\bregistry\.(?:npmjs|yarnpkg|npmmirror)\.\w+/i],
  ["the address of a package registry", /\bnpm\.pkg\.github\.com|\bjsr\.io\b/i],
  ["a mark that a merge has left", /^(?:<{7}|>{7}) /],
];

test("no file carries traces of the machine it was written on", () => {
  const offences = files
    .filter((path) => path !== THIS_FILE)
    .flatMap((path) => {
      const lines = readProjectFile(path).split("\n");
      return lines.flatMap((line, index) =>
        TRACES.filter(([, trace]) => trace.test(line)).map(([name]) => `${path}:${index + 1} has ${name}`),
      );
    });
  expect(offences).toEqual([]);
});

/** A cast to a column's type. Values parsed from JSON are exempt. */
const CAST = /^(?!.*JSON\.parse).*\bas (?:unknown as|string|number|bigint|Uint8Array|Row|SQLOutputValue)\b/;
test("values of SQL get their type in one place of the adapter", () => {
  const casts = files
    .filter(
      (path) => /^packages\/(?:sqlite|postgres)\/src\/.*\.ts$/.test(path) && !path.endsWith("/connection.ts"),
    )
    .flatMap((path) =>
      readProjectFile(path)
        .split("\n")
        .flatMap((line, index) => (CAST.test(line) ? [`${path}:${index + 1}${line}`] : [])),
    );
  expect(casts).toEqual([]);
});

/** `{ …(x === undefined ? {} : { x }) }`: `x` alone is equivalent; use `given` if the member must be absent. */
const CONDITIONAL_SPREAD = /\.\.\.\([^()]* === (?:undefined|null) \? \{\} : \{ [\w"-]+(?:: [\w.]+)? \}\)/;
test("members that may be missing are not spread by a condition", () => {
  const spreads = files
    .filter((path) => /^(?:packages\/[^/]+\/(?:src|page)|bench|scripts)\/.*\.ts$/.test(path))
    .filter((path) => CONDITIONAL_SPREAD.test(readProjectFile(path)));
  expect(spreads).toEqual([]);
});

const WRITE = /\b(?:INSERT INTO|REPLACE INTO|UPDATE|DELETE FROM)\s+(\w+|\$\{[^}]*\})/g;
/** Tables that `verify` proves and that an adapter may still write by itself, and why. */
const WRITTEN_BY_ADAPTERS: Readonly<Record<string, string>> = {
  seals: "made before each commit from whatever the transaction changed",
  index_pending: "the text index of the adapter takes off what it has taken in",
  summary_refs: "numbers of summaries in that index",
};
/** Files that name the table they write by a variable, and which tables those are. */
const WRITES_BY_VARIABLE: Readonly<Record<string, string>> = {
  "write-rows.ts": "every declared table, from change sets",
  "intake-rows.ts": "rows that change sets made in a file beside the database",
  "full-text-index.ts": "the tables of the text index",
  "reindex.ts": "the tables of the text index",
};
test("what verify proves is written by change sets, never by a statement of an adapter", () => {
  const writes = files
    .filter((path) => /^packages\/(?:sqlite|postgres)\/src\/(?!migrations\/).*\.ts$/.test(path))
    .flatMap((path) => [...readProjectFile(path).matchAll(WRITE)].map(([, table = ""]) => ({ path, table })));
  const isProven = (table: string): boolean =>
    TABLE_NAMES.some((name) => name === table) && UNPROVEN[table]?.["*"] === undefined;
  const isAllowed = ({ path, table }: { path: string; table: string }): boolean =>
    table.startsWith("$")
      ? posix.basename(path) in WRITES_BY_VARIABLE
      : !isProven(table) || table in WRITTEN_BY_ADAPTERS;
  expect(writes.filter((write) => !isAllowed(write))).toEqual([]);
  const used = new Set(writes.flatMap(({ path, table }) => [table, posix.basename(path)]));
  const listed = [...Object.keys(WRITTEN_BY_ADAPTERS), ...Object.keys(WRITES_BY_VARIABLE)];
  expect(listed.filter((name) => !used.has(name))).toEqual([]);
});

describe("the pages", () => {
  test("the ones a reader expects are there", () => {
    for (const page of [
      "README.md",
      "ARCHITECTURE.md",
      "GLOSSARY.md",
      "CHANGELOG.md",
      "CONTRIBUTING.md",
      "SECURITY.md",
      "LICENSE",
      "docs/README.md",
    ]) {
      expect(files).toContain(page);
    }
  });

  test("every link to a file leads to one", () => {
    const broken = pages.flatMap((page) =>
      listLinks(page)
        .filter((target) => !exists(target))
        .map((target) => `${page} links to ${target}`),
    );
    expect(broken).toEqual([]);
  });

  test("every page of docs/ is linked from the README or from the index of docs/", () => {
    const linked = new Set([...listLinks("README.md"), ...listLinks("docs/README.md")]);
    const lonely = pages
      .filter((page) => page.startsWith("docs/") && page !== "docs/README.md")
      .filter((page) => !linked.has(page));
    expect(lonely).toEqual([]);
  });

  test("ARCHITECTURE.md fits on four screens", () => {
    const lines = readProjectFile("ARCHITECTURE.md").trimEnd().split("\n");
    expect(lines.length).toBeLessThanOrEqual(200);
    expect(lines.filter((line) => line.length > 120)).toEqual([]);
  });

  test("the README's tour of the code has at most eight stops", () => {
    const [, tour = ""] = readProjectFile("README.md").split("## The code in five minutes\n");
    const stops = tour.split("\n## ")[0]?.match(/^\d+\. /gm) ?? [];
    expect(stops.length).toBeGreaterThan(0);
    expect(stops.length).toBeLessThanOrEqual(8);
  });

  test("the picture in ARCHITECTURE.md names every package", () => {
    const picture = readProjectFile("ARCHITECTURE.md").split("```")[1] ?? "";
    const packages = new Set(files.flatMap((path) => /^packages\/([^/]+)\//.exec(path)?.[1] ?? []));
    expect([...packages].filter((name) => !new RegExp(`^ .*\\b${name}/`, "m").test(picture))).toEqual([]);
  });

  test("the picture in ARCHITECTURE.md names every folder of core", () => {
    const picture = readProjectFile("ARCHITECTURE.md");
    const folders = new Set(files.flatMap((path) => /^packages\/core\/src\/([^/]+)\//.exec(path)?.[1] ?? []));
    expect([...folders].filter((folder) => !picture.includes(`src/${folder}/`))).toEqual([]);
  });

  test("the glossary has the words that the code is written in", () => {
    const defined = new Set(
      [...readProjectFile("GLOSSARY.md").matchAll(/\*\*([^*]+)\*\*/g)].map((match) => match[1]),
    );
    const wanted =
      `archive arrival message part view payload splice turn owner session conversation family revision seq position
      placement boundary commitment chain ledger cover item hidden shown context summary sources fold stale epoch debt budget term
      generation grant host transcript importer store operation`.split(/\s+/);
    const phrases = [
      "large file",
      "exploration summary",
      "tool group",
      "event id",
      "fresh tail",
      "session key",
      "range line",
    ];
    expect([...wanted, ...phrases].filter((word) => !defined.has(word))).toEqual([]);
  });

  test("the glossary explains every reason to hide", async () => {
    const { HIDDEN } = await import("@lossless/core");
    const glossary = readProjectFile("GLOSSARY.md");
    expect(Object.keys(HIDDEN).filter((reason) => !glossary.includes(`\`${reason}\``))).toEqual([]);
  });

  test("the changelog speaks of the current version, which all packages share", () => {
    expect(readProjectFile("CHANGELOG.md")).toMatch(
      new RegExp(`^## ${manifest.version.replaceAll(".", "\\.")}\\b`, "m"),
    );
    for (const path of files.filter((file) => /^packages\/[^/]+\/package\.json$/.test(file))) {
      expect((JSON.parse(readProjectFile(path)) as { version: string }).version, path).toBe(manifest.version);
    }
  });
});

describe("commands in the pages", () => {
  const commands = pages.flatMap((page) => findCommands(page).map((command) => ({ page, command })));

  test("npm's exist in package.json", () => {
    const missing = commands.filter(({ command }) => {
      const script = /^npm (?:run ([\w:]+)|(start|test)\b)/.exec(command);
      const name = script?.[1] ?? script?.[2];
      return name !== undefined && !(name in manifest.scripts);
    });
    expect(commands.some(({ command }) => command.startsWith("npm "))).toBe(true);
    expect(missing).toEqual([]);
  });

  test("lcm's exist, with the options they are shown with", () => {
    const tree = listCommands(buildProgram());
    const shared = tree[0]?.options.map((option) => option.long) ?? [];
    const isKnown = (line: string): boolean => {
      const words = line
        .replace(/^(npx )?lcm/, "")
        .trim()
        .split(/\s+/);
      const named = [2, 1].map((count) =>
        tree.find((entry) => commandPath(entry) === words.slice(0, count).join(" ")),
      );
      const found = named.find((entry) => entry !== undefined && entry.parent !== null) ?? tree[0];
      const isCommand = found !== tree[0] || (words[0] ?? "") === "" || words[0]?.startsWith("-") === true;
      const options = [...shared, "--help", ...(found?.options.map((option) => option.long) ?? [])];
      return isCommand && words.filter((word) => /^--\w/.test(word)).every((word) => options.includes(word));
    };
    const lines = commands.filter(({ command }) => /^(npx )?lcm(?!:)\b/.test(command));
    expect(lines.length).toBeGreaterThan(5);
    expect(lines.filter(({ command }) => !isKnown(command) && !COMING.has(command))).toEqual([]);
  });
});

/** Commands that pages announce for later versions. */
const COMING = new Set(["lcm forget"]);

describe("the build", () => {
  test("the lock file names no registry", () => {
    expect(readProjectFile("package-lock.json")).not.toMatch(/"resolved": "https?:/);
  });

  test(".ci/run can be run, and runs the tests, the demo, the checks and the live hosts", () => {
    expect(statSync(join(ROOT, ".ci/run")).mode & 0o111).not.toBe(0);
    const script = readProjectFile(".ci/run");
    // The agents are over a gigabyte, so running them is opt-in.
    const tests = Object.keys(manifest.scripts).filter(
      (name) => name.startsWith("test:") && name !== "test:agents",
    );
    for (const command of [
      "npm test",
      "npm start",
      "npm run check",
      "npm run release:check",
      ...tests.map((name) => `npm run ${name}`),
    ])
      expect(script).toContain(command);
    expect(script).toContain("set -euo pipefail");
  });

  test("what people run in a fresh clone installs what is missing first", () => {
    const inner = new Set(["docs:check"]);
    const scripts = Object.entries(manifest.scripts as Record<string, string>);
    const direct = scripts.filter(
      ([name, command]) => command.startsWith("node ") && !name.startsWith("pre"),
    );
    for (const [name] of direct.filter(([name]) => !inner.has(name)))
      expect(manifest.scripts, name).toHaveProperty([`pre${name}`], "node scripts/ensure-installed.mjs");
  });

  test("npm run check looks at format, lint, types and docs", () => {
    for (const part of ["format:check", "lint", "types", "docs:check"]) {
      expect(manifest.scripts["check"]).toContain(`npm run ${part}`);
      expect(manifest.scripts).toHaveProperty([part]);
    }
  });

  test("what a script starts is there", () => {
    const started = Object.values(manifest.scripts).flatMap(
      (script) => /node (\S+\.\w+)/.exec(script)?.[1] ?? [],
    );
    expect(started.filter((path) => !files.includes(path))).toEqual([]);
  });
});

/** Links to files of the project, as paths from its root. */
function listLinks(page: string): string[] {
  const text = readProjectFile(page).replaceAll(/^```[\s\S]*?^```$/gm, "");
  return [...text.matchAll(/\]\(([^)\s#]+)[^)]*\)/g)]
    .map((match) => match[1] ?? "")
    .filter((target) => !/^[a-z]+:/.test(target))
    .map((target) => posix.normalize(posix.join(posix.dirname(page), target)));
}

function exists(path: string): boolean {
  return files.some((file) => file === path || file.startsWith(`${path.replace(/\/$/, "")}/`));
}

/** Lines of shell blocks, one command per line, and commands between backticks. */
function findCommands(page: string): string[] {
  const text = readProjectFile(page);
  const blocks = [...text.matchAll(/^```(?:sh|console)\n([\s\S]*?)^```$/gm)].flatMap((match) =>
    (match[1] ?? "").split("\n").map((line) => line.replace(/^\$ /, "").replace(/\s+(#|\||>).*$/, "")),
  );
  const inline = [...text.matchAll(/`((?:npx |npm |lcm )[^`\n]*)`/g)].map((match) => match[1] ?? "");
  return [...blocks, ...inline].filter((line) => /^(npx lcm|npm|lcm)\b/.test(line) && !line.includes("…"));
}
