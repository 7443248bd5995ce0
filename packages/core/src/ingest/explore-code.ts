/** Describes source code: its language, what it imports, what it declares. Uses patterns for many languages at once. */
import { countOf, excerpt, listSome } from "./explore-text.ts";

const LANGUAGES: ReadonlyMap<string, string> = new Map(
  Object.entries({
    bash: "Shell",
    c: "C",
    cc: "C++",
    cjs: "JavaScript",
    cpp: "C++",
    cs: "C#",
    css: "CSS",
    cts: "TypeScript",
    ex: "Elixir",
    exs: "Elixir",
    go: "Go",
    h: "C",
    hpp: "C++",
    java: "Java",
    js: "JavaScript",
    jsx: "JavaScript",
    kt: "Kotlin",
    lua: "Lua",
    mjs: "JavaScript",
    mts: "TypeScript",
    php: "PHP",
    pl: "Perl",
    py: "Python",
    r: "R",
    rb: "Ruby",
    rs: "Rust",
    scala: "Scala",
    sh: "Shell",
    sql: "SQL",
    swift: "Swift",
    ts: "TypeScript",
    tsx: "TypeScript",
    zig: "Zig",
    zsh: "Shell",
  }),
);

const LANGUAGES_BY_TYPE: ReadonlyMap<string, string> = new Map(
  Object.entries({
    "application/javascript": "JavaScript",
    "application/sql": "SQL",
    "application/typescript": "TypeScript",
    "application/x-sh": "Shell",
    "text/css": "CSS",
    "text/javascript": "JavaScript",
    "text/typescript": "TypeScript",
    "text/x-c": "C",
    "text/x-go": "Go",
    "text/x-java": "Java",
    "text/x-python": "Python",
    "text/x-ruby": "Ruby",
    "text/x-rust": "Rust",
    "text/x-sh": "Shell",
  }),
);

export function languageOf(extension: string, mimeType: string): string | null {
  return LANGUAGES.get(extension) ?? LANGUAGES_BY_TYPE.get(mimeType) ?? null;
}

const MAX_SYMBOLS = 24;
const MAX_IMPORTS = 12;

/** Where an import statement names what it imports; the first group that matched is the name. */
const IMPORTS = [
  /^\s*import\b[^\n]*?\bfrom\s+["']([^"']+)["']/,
  /^\s*import\s+["']([^"']+)["']/,
  /^[\w\s{},=:*]*\brequire\(\s*["']([^"']+)["']\s*\)/,
  /^\s*from\s+([\w.]+)\s+import\b/,
  /^\s*import\s+([\w.]+(?:\s*,\s*[\w.]+)*)\s*;?\s*(?:#.*)?$/,
  /^\s*(?:pub\s+)?use\s+([\w:\\]+)/,
  /^\s*#\s*include\s+[<"]([^>"]+)[>"]/,
  /^\s*using\s+([\w.]+)\s*;/,
  /^\s*(?:source|\.)\s+(\S+)\s*$/,
  /^\s*(?:[\w.]+\s+)?"([\w./-]+\.[\w./-]+\/[\w./-]+)"$/,
];

/** Where a declaration names what it declares. The keyword is kept, so that a reader knows what it is. */
const SYMBOLS = [
  /^(?:export\s+)?(?:default\s+)?(?:declare\s+)?(?:abstract\s+)?(?:async\s+)?(function|class|interface|type|enum|namespace)\*?\s+([\w$]+)/,
  /^(?:export\s+)?(const|let|var)\s+([\w$]+)\s*(?::[^=]+)?=\s*(?:async\s*)?(?:function\b|\([^)]*\)\s*(?::[^=]+)?=>|\w+\s*=>)/,
  /^export\s+(const|let|var)\s+([\w$]+)/,
  /^\s*(?:async\s+)?(def|class|module)\s+([\w.?!]+)/,
  /^\s*(?:pub(?:\([^)]*\))?\s+)?(?:async\s+|unsafe\s+|const\s+)*(fn|struct|enum|trait|impl|mod|union)\b(?:<[^>]*>)?\s+([\w:<>]+)/,
  /^(func|type)\s+(?:\([^)]*\)\s*)?(\w+)/,
  /^\s*(?:(?:public|private|protected|internal|static|final|abstract|sealed|data|open|override)\s+)+(class|interface|enum|record|struct|object|fun|func)\s+(\w+)/,
  /^\s*(?:@\w+\s+)?(fun|func|protocol|extension|object|struct|class)\s+(\w+)/,
  /^\s*(?:public|private|protected)\s+(?:static\s+|final\s+|async\s+)*()(?:[\w<>[\],.?]+\s+)+(\w+)\s*\(/,
  /^\s*(create\s+(?:or\s+replace\s+)?(?:temp(?:orary)?\s+)?(?:table|view|index|function|trigger|procedure))\s+(?:if\s+not\s+exists\s+)?([\w."`]+)/i,
  /^(?:function\s+)()([\w:-]+)\s*(?:\(\))?\s*\{/,
  /^()([\w:-]+)\s*\(\)\s*\{/,
  /^(?:static\s+|inline\s+|extern\s+)*()(?:[\w*]+\s+)+\*?(\w+)\s*\([^;]*\)\s*\{?\s*$/,
];

export function describeCode(text: string, language: string, size: string, lineCount: number): string[] {
  const { imports, symbols } = readDeclarations(text);
  const lines = [`${language} source, ${size}, ${countOf(lineCount, "line")}`];
  if (imports.length > 0) lines.push(`Imports: ${listSome(imports, MAX_IMPORTS)}`);
  if (symbols.length > 0) lines.push(`Declares: ${listSome(symbols, MAX_SYMBOLS)}`);
  if (symbols.length === 0) lines.push(`Starts: ${excerpt(text, 300)}`);
  return lines;
}

/** Tools print files with a number before each line; the code begins after it. */
const LINE_NUMBER = /^ *\d{1,7}(?:→|\t|\| ?|: ?|- ?)/;

/** Source code that came without a name, for example as the output of a tool. Null when it does not look like code. */
export function describeListing(text: string, size: string, lineCount: number): string[] | null {
  const sample = text.split("\n", 400).filter((line) => line.trim() !== "");
  const isNumbered = sample.filter((line) => LINE_NUMBER.test(line)).length > sample.length * 0.8;
  const bare = isNumbered ? sample.map((line) => line.replace(LINE_NUMBER, "")) : sample;
  const codeLines = bare.filter((line) => line.length < 500 && /(?:[{};,(]|\):|=>)\s*$/.test(line)).length;
  if (sample.length < 5 || codeLines < bare.length * 0.3) return null;
  const whole = isNumbered ? text.replace(new RegExp(LINE_NUMBER, "gm"), "") : text;
  if (readDeclarations(whole).symbols.length < 3) return null;
  return describeCode(whole, isNumbered ? "Numbered listing of" : "Unnamed", size, lineCount);
}

function readDeclarations(text: string): { imports: string[]; symbols: string[] } {
  const imports = new Set<string>();
  const symbols = new Set<string>();
  for (const line of text.split("\n")) {
    if (line.length > 500 || line.trim() === "") continue;
    const imported = firstMatch(IMPORTS, line)?.[1];
    if (imported !== undefined) imports.add(imported);
    else addSymbol(symbols, line);
  }
  return { imports: [...imports], symbols: [...symbols] };
}

const NO_SYMBOL = /^(?:if|for|while|switch|return|else|catch|case|do|new|in|of)$/;

function addSymbol(symbols: Set<string>, line: string): void {
  const match = firstMatch(SYMBOLS, line);
  const name = match?.[2];
  if (match === null || name === undefined || NO_SYMBOL.test(name)) return;
  symbols.add(match[1] ? `${match[1]} ${name}` : name);
}

function firstMatch(patterns: readonly RegExp[], line: string): RegExpExecArray | null {
  for (const pattern of patterns) {
    const match = pattern.exec(line);
    if (match) return match;
  }
  return null;
}
