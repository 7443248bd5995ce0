/** Enforces the direction of imports that ARCHITECTURE.md draws. The table below is the picture; a folder that is not in it fails. */
import { describe, expect, test } from "vitest";
import {
  findImports,
  readAllCode,
  readProjectFile,
  readSources,
  removeBlockComments,
  resolveImport,
} from "./source-files.ts";
import type { SourceFile } from "./source-files.ts";

const BASE = ["model", "text", "message", "settings", "store"] as const;
const OPERATIONS = ["ingest", "compact", "summarize", "assemble", "recall"] as const;
const BELOW_TOP = [...BASE, ...OPERATIONS, "bulk", "engine"];

/** What each layer of core may import besides itself. */
const LAYERS: Readonly<Record<string, readonly string[]>> = {
  model: [],
  text: ["model"],
  message: ["model", "text"],
  settings: ["model", "text"],
  store: ["model", "text"],
  archive: ["model", "text", "store"],
  ...Object.fromEntries(OPERATIONS.map((operation) => [operation, BASE])),
  bulk: [...BASE, "ingest"],
  engine: [...BASE, ...OPERATIONS, "bulk"],
  tools: BELOW_TOP,
  repair: BELOW_TOP,
  doors: [...BELOW_TOP, "repair"],
  entry: [...BELOW_TOP, "archive", "tools", "repair", "doors"],
};

const CORE = "packages/core/src/";
const sources = readSources();
const core = sources.filter((file) => file.path.startsWith(CORE));
/** Each adapter with the one module it may import besides Node and core. */
const ADAPTERS: Readonly<Record<string, RegExp>> = {
  "packages/sqlite/src/": /^node:/,
  "packages/postgres/src/": /^node:|^pg$/,
};
const adapter = sources.filter((file) => Object.keys(ADAPTERS).some((home) => file.path.startsWith(home)));
const INTERCHANGE = "packages/interchange/src/";
const allCode = readAllCode();

/** A folder of core is a layer; the files beside the folders are entry points for other packages. */
function layerOf(path: string): string {
  const [first = "", ...rest] = path.slice(CORE.length).split("/");
  return rest.length === 0 ? "entry" : first;
}

function packageOf(path: string): string | null {
  return /^packages\/([^/]+)\//.exec(path)?.[1] ?? null;
}

/** One line per offending import, so that a failure says what to fix. */
function listOffences(
  files: readonly SourceFile[],
  isOffence: (file: SourceFile, specifier: string, target: string | null) => boolean,
): string[] {
  return files.flatMap((file) =>
    file.imports
      .filter((specifier) => isOffence(file, specifier, resolveImport(file.path, specifier)))
      .map((specifier) => `${file.path} imports ${specifier}`),
  );
}

describe("the layers of core", () => {
  test("every file has a place in the picture", () => {
    expect(core.length).toBeGreaterThan(50);
    const homeless = core.filter((file) => !(layerOf(file.path) in LAYERS)).map((file) => file.path);
    expect(homeless).toEqual([]);
  });

  test("imports point one way", () => {
    const offences = listOffences(core, (file, _specifier, target) => {
      if (target === null || !target.startsWith(CORE)) return false;
      const layer = layerOf(file.path);
      return layerOf(target) !== layer && !LAYERS[layer]?.includes(layerOf(target));
    });
    expect(offences).toEqual([]);
  });

  test("the import fast path has one door", () => {
    const offences = listOffences(
      sources,
      (file, _specifier, target) =>
        target !== null &&
        target.startsWith(`${CORE}bulk/`) &&
        target !== `${CORE}bulk/index.ts` &&
        !file.path.startsWith(`${CORE}bulk/`),
    );
    expect(offences).toEqual([]);
  });

  test("no file imports itself by way of others", () => {
    expect(findCycle([...core, ...adapter])).toEqual([]);
  });

  test("needs Node and nothing else", () => {
    const offences = listOffences(
      core,
      (_file, specifier, target) =>
        !(specifier.startsWith("node:") || (target !== null && target.startsWith(CORE))),
    );
    expect(offences).toEqual([]);
  });

  test("SQL stands in the adapter only, and where other programs' databases are read and written", () => {
    const homes = [...Object.keys(ADAPTERS), `${INTERCHANGE}documented/`, `${INTERCHANGE}formats/`];
    const offenders = sources
      .filter((file) => packageOf(file.path) !== "testkit")
      .filter((file) => !homes.some((home) => file.path.startsWith(home)))
      .filter((file) =>
        /["'`]\s*(SELECT |INSERT INTO |UPDATE \w+ SET |DELETE FROM )/.test(removeBlockComments(file.text)),
      )
      .map((file) => file.path);
    expect(offenders).toEqual([]);
  });
});

test.each(Object.entries(ADAPTERS))(
  "%s needs its driver, the ports, and what adapters are built from",
  (home, driver) => {
    const files = adapter.filter((file) => file.path.startsWith(home));
    expect(files.length).toBeGreaterThan(5);
    const offences = listOffences(
      files,
      (_file, specifier, target) =>
        !driver.test(specifier) &&
        !/^@lossless\/core\/(ports|adapter)$/.test(specifier) &&
        target?.startsWith(home) !== true,
    );
    expect(offences).toEqual([]);
  },
);

test("blocks of words are known to the full-text index alone", () => {
  const index = /\/(?:full-text-index|index-queue|find-clues|reindex|verify-index)\.ts$/;
  const offences = listOffences(
    adapter,
    (file, _specifier, target) => target?.endsWith("/word-blocks.ts") === true && !index.test(file.path),
  );
  expect(offences).toEqual([]);
});

test("no getter of the store does work: what looks like a field runs no SQL", () => {
  const getter = /^ {2}(?:static )?get (\w+)\(\)[^{]*\{\n([\s\S]*?)^ {2}\}/gm;
  const working = [...core.filter((file) => file.path.startsWith(`${CORE}store/`)), ...adapter].flatMap(
    (file) =>
      [...file.text.matchAll(getter)]
        .filter(([, , body = ""]) => /(?<!new EngineError)(?<!\bif )\(/.test(body))
        .map(([, name]) => `${file.path}: ${name}`),
  );
  expect(working).toEqual([]);
});

/** The entry points of core, each with a reason in the file it names. */
const ENTRIES = [
  ".",
  "./ports",
  "./adapter",
  "./thread",
  "./settings",
  "./repair",
  "./formats",
  "./doors",
  "./testing",
];

/**
 * What each package may use of the others. A door uses the packages below it, and other doors only through the command line; only the library
 * knows databases.
 */
const USES: Readonly<Record<string, readonly string[]>> = {
  core: [],
  sqlite: ["core"],
  postgres: ["core"],
  interchange: ["core"],
  "lossless-claw": ["core", "sqlite", "postgres", "interchange"],
  models: ["core"],
  tui: ["core", "lossless-claw", "interchange"],
  web: ["core", "lossless-claw", "interchange"],
  mcp: ["core", "lossless-claw"],
  agents: ["core", "lossless-claw", "interchange"],
  cli: ["core", "lossless-claw", "interchange", "agents", "mcp", "models", "tui", "web"],
  openclaw: ["core", "lossless-claw", "interchange", "models"],
  testkit: ["core", "sqlite", "lossless-claw"],
};
const SQLITE_HOMES = ["packages/sqlite/src/", INTERCHANGE, "packages/testkit/src/"];

describe("the packages", () => {
  test("use core and each other by name, never by a path into it", () => {
    const others = allCode.filter((file) => packageOf(file.path) !== "core");
    const offences = listOffences(others, (file, _specifier, target) => {
      if (target === null) return false;
      const own = packageOf(file.path);
      return own === null ? target.startsWith(CORE) : packageOf(target) !== own;
    });
    expect(offences).toEqual([]);
  });

  test("call the library by the name it is published under", () => {
    const offences = listOffences(allCode, (_file, specifier) =>
      specifier.startsWith("@lossless/lossless-claw"),
    );
    expect(offences).toEqual([]);
  });

  test("find their own files bundled, too: beside the file that asks, or where own-files.ts says", () => {
    // The demo runs only from a clone, and so does the build of the page.
    const shipped = sources.filter(
      ({ path }) => !/^packages\/(testkit|cli\/src\/demo)\/|\/(own-files|page-build)\.ts$/.test(path),
    );
    const offenders = shipped.filter(({ text }) =>
      /new URL\(\s*["'`]\.\.\/|import\.meta\.(dirname|filename)/.test(text),
    );
    expect(offenders.map(({ path }) => path)).toEqual([]);
  });

  test("find in core what it offers, and nothing else", () => {
    const { exports } = JSON.parse(readProjectFile("packages/core/package.json")) as {
      exports: Record<string, string>;
    };
    expect(Object.keys(exports)).toEqual(ENTRIES);
    const inside = new Set(core.map((file) => file.path));
    const missing = Object.values(exports).filter((path) => !inside.has(`packages/core/${path.slice(2)}`));
    expect(missing).toEqual([]);
  });

  test("leave inner parts to tests, benchmarks and the demo", () => {
    const offences = listOffences(
      sources.filter((file) => packageOf(file.path) !== "testkit" && !file.path.includes("/demo/")),
      (_file, specifier) => /^@lossless\/\w+\/testing$/.test(specifier),
    );
    expect(offences).toEqual([]);
  });

  test("use each other one way; what ships uses no test tools", () => {
    const offences = listOffences(sources, (file, specifier) => {
      const other = /^(?:@lossless\/([^/]+)|(lossless-claw))(?:\/|$)/.exec(specifier);
      if (!other) return false;
      const own = packageOf(file.path) ?? "";
      return !USES[own]?.includes(other[1] ?? other[2] ?? "");
    });
    expect(offences).toEqual([]);
    const homeless = sources.filter((file) => !((packageOf(file.path) ?? "") in USES));
    expect(homeless.map((file) => file.path)).toEqual([]);
  });

  test("reach a database through its adapter, or read another program's", () => {
    const offences = listOffences(
      sources,
      (file, specifier) =>
        specifier === "node:sqlite" && !SQLITE_HOMES.some((home) => file.path.startsWith(home)),
    );
    expect(offences).toEqual([]);
  });

  test("leave the page of the inspector what runs in a browser", () => {
    const offences = listOffences(
      sources.filter((file) => file.path.startsWith("packages/web/page/")),
      (_file, specifier, target) =>
        // It is bundled into the page, and uses nothing of Node.
        specifier !== "@lossless/interchange/reading" &&
        (target === null ||
          !(target.startsWith("packages/web/page/") || /\/src\/(api-types|context-diff)\.ts$/.test(target))),
    );
    expect(offences).toEqual([]);
  });

  test("only the plugin names modules of OpenClaw", () => {
    const offences = listOffences(
      allCode.filter((file) => packageOf(file.path) !== "openclaw"),
      (_file, specifier) => /^openclaw(\/|$)/.test(specifier),
    );
    expect(offences).toEqual([]);
  });
});

test("every source file opens by saying what it is", () => {
  const opening = /^(#!.*\n)?(\/\*\*( |\n \* )\S)/;
  // The sample is generated by scripts and not part of the program; it may use line comments.
  const openingOfSample = /^(\/\/ |\/\*\*)/;
  const silent = allCode
    .filter((file) => /^packages\/web\/page\/|\/(src|live|sample)\/|^(bench|scripts|test)\//.test(file.path))
    .filter((file) => !(file.path.includes("/sample/") ? openingOfSample : opening).test(file.text))
    .map((file) => file.path);
  expect(silent).toEqual([]);
});

/** A command or a flag belongs to one door: the others have their own words for a step (`model/next-step.ts`). */
test("hints below the doors name no command and no flag", () => {
  const below = /^packages\/(?:core|sqlite|postgres|interchange|lossless-claw|models)\/src\/(?!doors\/)/;
  const hint = /\bhint:\s*(?:[^"'`,}]*\? *)?(["'`])((?:(?!\1)[^])*)\1/g;
  const named = sources
    .filter(({ path }) => below.test(path))
    .flatMap(({ path, text }) =>
      [...text.matchAll(hint)]
        .filter(([, , words = ""]) => /\blcm [a-z]|(?:^|\s)--[a-z]/.test(words))
        .map(([, , words]) => `${path}: ${words}`),
    );
  expect(named).toEqual([]);
});

/** A function's return type has one suffix. A bare `Report` is an object that is filled, and an answer comes from a model or a host. */
test("what is asked is a …Request, what comes back a …Result", () => {
  const other = /^(?:export )?(?:interface|type) (\w*(?:Outcome|Wish)|\w+Report)\b/gm;
  const named = allCode.flatMap(({ path, text }) =>
    [...text.matchAll(other)].map(([, name]) => `${path}: ${name}`),
  );
  expect(named).toEqual([]);
});

/**
 * Words of the glossary that code once used for several things, with the folders that own the one meaning. Forms of the verb (`Placed…`,
 * `Placement`, `run…()`) are not meant.
 */
const ONE_MEANING: readonly { readonly word: RegExp; readonly homes: RegExp }[] = [
  { word: /Runs?(?:[A-Z]\w*)?/, homes: /^packages\/core\/src\/(?:compact|summarize|archive|store\/folding)/ },
  { word: /Places?(?:[A-Z]\w*)?/, homes: /^packages\/(?:postgres\/src\/match|core\/src\/text\/)/ },
];

test("a word of the glossary has one meaning", () => {
  const strangers = ONE_MEANING.flatMap(({ word, homes }) => {
    const named = new RegExp(
      `^(?:export )?(?:interface|type|class) ((?:[A-Z]\\w*?)?${word.source})\\b`,
      "gm",
    );
    return sources
      .filter(({ path }) => !homes.test(path))
      .flatMap(({ path, text }) => [...text.matchAll(named)].map(([, name]) => `${path}: ${name}`));
  });
  expect(strangers).toEqual([]);
});

describe("the scanner behind these tests", () => {
  test.each([
    [`import { a } from "./a.ts";`, ["./a.ts"]],
    [`import type { A } from "./a.ts";`, ["./a.ts"]],
    [
      `import {\n  a,\n  b,\n} from "./a.ts";\nimport * as b from '@lossless/core';`,
      ["./a.ts", "@lossless/core"],
    ],
    [`export { a } from "./a.ts";\nexport * from "./b.ts";`, ["./a.ts", "./b.ts"]],
    [`import "./register.ts";`, ["./register.ts"]],
    [`const a = await import("./a.ts");\ntype B = import("./b.ts").B;`, ["./a.ts", "./b.ts"]],
    [`import data from "./a.json" with { type: "json" };`, ["./a.json"]],
    [`/**\n * import { a } from "./a.ts";\n */\nexport const b = 'from "./c.ts"';`, []],
    [`export const from = 1;\nconst text = "x";`, []],
  ])("reads the imports of %j", (text, expected) => {
    expect(findImports(text)).toEqual(expected);
  });

  test("finds a cycle and names it", () => {
    const file = (path: string, ...imports: string[]): SourceFile => ({ path, text: "", imports });
    expect(findCycle([file("a.ts", "./b.ts"), file("b.ts", "./c.ts"), file("c.ts")])).toEqual([]);
    expect(findCycle([file("a.ts", "./b.ts"), file("b.ts", "./c.ts"), file("c.ts", "./b.ts")])).toEqual([
      "b.ts",
      "c.ts",
      "b.ts",
    ]);
  });
});

/** The first cycle of imports, as a path; empty when there is none. */
function findCycle(files: readonly SourceFile[]): string[] {
  const byPath = new Map(files.map((file) => [file.path, file]));
  const done = new Set<string>();
  const visit = (path: string, way: readonly string[]): string[] => {
    if (way.includes(path)) return [...way.slice(way.indexOf(path)), path];
    if (done.has(path)) return [];
    for (const specifier of byPath.get(path)?.imports ?? []) {
      const target = resolveImport(path, specifier);
      const cycle = target !== null && byPath.has(target) ? visit(target, [...way, path]) : [];
      if (cycle.length > 0) return cycle;
    }
    done.add(path);
    return [];
  };
  for (const path of byPath.keys()) {
    const cycle = visit(path, []);
    if (cycle.length > 0) return cycle;
  }
  return [];
}
