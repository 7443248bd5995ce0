/**
 * Records the terminal picture of the README: runs the commands in SCENES with the real program on the sample transcript, in an empty home
 * folder, and writes their output to docs/images/terminal.svg. `node scripts/record-terminal.ts` writes it; `--check` fails when the program now
 * prints something else.
 *
 * The picture types each command and then shows its output, in a loop. Without animation (no CSS support, or reduced motion) all of it is
 * visible.
 */
import { spawnSync } from "node:child_process";
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";

const ROOT = path.join(import.meta.dirname, "..");
const PICTURE = path.join(ROOT, "docs/images/terminal.svg");
const SAMPLE = path.join(ROOT, "packages/cli/sample/sample-session.jsonl");
const COLUMNS = 100;

const SCENES: readonly string[] = [
  "lcm import sample-session.jsonl",
  'lcm search "why is the back-off capped?" --limit 1',
  "lcm compact --budget 32k",
  "lcm show msg_93",
  "lcm verify",
];

/** A run of characters in one style; `column` is where it starts. */
interface Run {
  readonly text: string;
  readonly look: string;
  readonly column: number;
}

interface Scene {
  readonly command: string;
  readonly lines: readonly (readonly Run[])[];
}

function record(): Scene[] {
  const home = mkdtempSync(path.join(tmpdir(), "lcm-recording-"));
  try {
    copyFileSync(SAMPLE, path.join(home, "sample-session.jsonl"));
    return SCENES.map((command) => ({ command, lines: readLines(runCommand(command, home)) }));
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

function runCommand(command: string, home: string): string {
  const preload = path.join(ROOT, "scripts/as-terminal.mjs");
  const program = path.join(ROOT, "packages/cli/bin/lcm.js");
  const line = command.replace(/^lcm/, '"$NODE" --import "$PRELOAD" "$PROGRAM"');
  const run = spawnSync("sh", ["-c", line], {
    cwd: home,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
    env: {
      PATH: process.env["PATH"],
      NODE: process.execPath,
      PRELOAD: preload,
      PROGRAM: program,
      HOME: home,
      TZ: "UTC",
      PAGER: "cat",
      FORCE_COLOR: "1",
      COLUMNS: String(COLUMNS),
    },
  });
  if (run.status !== 0) throw new Error(`${command} failed with status ${run.status}:\n${run.stderr}`);
  return run.stdout.trimEnd();
}

/** The codes of node:util's styleText that the program uses, by the style they start; the others end a style. */
const LOOKS: Readonly<Record<string, string>> = {
  "1": "bold",
  "2": "faint",
  "31": "red",
  "32": "green",
  "33": "yellow",
  "36": "cyan",
};
const ENDS: Readonly<Record<string, readonly string[]>> = {
  "22": ["bold", "faint"],
  "39": ["red", "green", "yellow", "cyan"],
};

const SGR = new RegExp(`${String.fromCodePoint(27)}\\[(\\d+)m`);

function readLines(output: string): Run[][] {
  const looks = new Set<string>();
  return output.split("\n").flatMap((line) => {
    const rows: Run[][] = [[]];
    let column = 0;
    for (const [index, text] of line.split(SGR).entries()) {
      if (index % 2 === 1) {
        changeLook(looks, text);
        continue;
      }
      for (let rest = [...text]; rest.length > 0;) {
        // A terminal wraps longer lines.
        if (column === COLUMNS) {
          rows.push([]);
          column = 0;
        }
        const part = rest.slice(0, COLUMNS - column);
        rows.at(-1)?.push({ text: part.join(""), look: [...looks].join(" "), column });
        column += part.length;
        rest = rest.slice(part.length);
      }
    }
    return rows;
  });
}

function changeLook(looks: Set<string>, code: string): void {
  const begun = LOOKS[code];
  if (begun !== undefined) looks.add(begun);
  else if (ENDS[code] === undefined) throw new Error(`the recording does not know the terminal code ${code}`);
  else for (const look of ENDS[code]) looks.delete(look);
}

const CELL = 8.4;
const LINE = 20;
const MARGIN = 18;
const TOP = 44;
const WIDTH = Math.ceil(COLUMNS * CELL + 2 * MARGIN);

/** Seconds: typing one character, waiting for the output, reading a line of it, and the pause at the end. */
const TYPING = 0.04;
const WAITING = 0.4;
const READING = 0.35;
const RESTING = 6;

const STYLE = `text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#d7dce2;white-space:pre}
.faint{fill:#8b95a1}.green{fill:#6cc890}.yellow{fill:#e3b860}.cyan{fill:#6fc3df}.red{fill:#f08a80}.bold{font-weight:700}.prompt{fill:#6cc890}
.scene,.output{animation-timing-function:step-end;animation-iteration-count:infinite}
.cover{fill:#16191d;transform:translateX(${WIDTH}px);animation-iteration-count:infinite}`;
const STILL = `@media (prefers-reduced-motion:reduce){.scene,.output,.cover{animation:none!important}}`;

function render(scenes: readonly Scene[]): string {
  const moments = schedule(scenes);
  const total = (moments.at(-1)?.shown ?? 0) + lengthOfRest(scenes.at(-1));
  let row = 0;
  const rules: string[] = [];
  const groups = scenes.map((scene, index) => {
    const moment = moments[index];
    if (moment === undefined) throw new Error("every scene has its moment");
    rules.push(...renderMotion(index, scene, moment, total));
    const from = row;
    row += scene.lines.length + 2;
    return renderScene(scene, index, from);
  });
  const height = TOP + (row - 1) * LINE + MARGIN;
  const described = scenes.map(({ command }) => command).join("; ");
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img">
<title>lossless-claw in a terminal</title>
<desc>${escapeText(described)}</desc>
<style>
${STYLE}
${rules.join("\n")}
${STILL}
</style>
<rect width="${WIDTH}" height="${height}" rx="10" fill="#16191d"/>
<circle cx="20" cy="18" r="5" fill="#3a4149"/><circle cx="36" cy="18" r="5" fill="#3a4149"/><circle cx="52" cy="18" r="5" fill="#3a4149"/>
${groups.join("\n")}
</svg>
`;
}

interface Moment {
  readonly begins: number;
  readonly typed: number;
  readonly shown: number;
}

function schedule(scenes: readonly Scene[]): Moment[] {
  let clock = 0.5;
  return scenes.map((scene) => {
    const begins = clock;
    const typed = begins + scene.command.length * TYPING;
    const shown = typed + WAITING;
    clock = shown + 1 + scene.lines.length * READING;
    return { begins, typed, shown };
  });
}

const lengthOfRest = (scene: Scene | undefined): number => RESTING + (scene?.lines.length ?? 0) * READING;

function renderMotion(
  index: number,
  { command }: Scene,
  { begins, typed, shown }: Moment,
  total: number,
): string[] {
  const at = (seconds: number): string => `${((100 * seconds) / total).toFixed(2)}%`;
  const duration = `${total.toFixed(1)}s`;
  const steps = `steps(${command.length})`;
  return [
    `@keyframes s${index}{0%{opacity:0}${at(begins)}{opacity:1}}`,
    `@keyframes o${index}{0%{opacity:0}${at(shown)}{opacity:1}}`,
    `@keyframes c${index}{0%,${at(begins)}{transform:none;animation-timing-function:${steps}}${at(typed)}{transform:translateX(${(command.length * CELL).toFixed(1)}px);animation-timing-function:step-start}100%{transform:translateX(${WIDTH}px)}}`,
    `#s${index}{animation-name:s${index};animation-duration:${duration}}#o${index}{animation-name:o${index};animation-duration:${duration}}#c${index}{animation-name:c${index};animation-duration:${duration}}`,
  ];
}

function renderScene({ command, lines }: Scene, index: number, from: number): string {
  const prompt = renderLine(
    [
      { text: "$", look: "prompt", column: 0 },
      { text: command, look: "bold", column: 2 },
    ],
    from,
  );
  const coverX = (MARGIN + 2 * CELL).toFixed(1);
  const cover = `<rect class="cover" id="c${index}" x="${coverX}" y="${TOP + from * LINE - 15}" width="${WIDTH}" height="${LINE}"/>`;
  const output = lines.map((line, at) => renderLine(line, from + 1 + at)).join("");
  return `<g class="scene" id="s${index}">${prompt}${cover}</g>\n<g class="output" id="o${index}">${output}</g>`;
}

/** Each run has its start and width, so that columns align in any font. */
function renderLine(runs: readonly Run[], row: number): string {
  const spans = runs
    .filter(({ text }) => text.trim() !== "")
    .map(({ text, look, column }) => {
      const indent = text.length - text.trimStart().length;
      const word = text.trim();
      const x = (MARGIN + (column + indent) * CELL).toFixed(1);
      const width = ([...word].length * CELL).toFixed(1);
      return `<tspan x="${x}" textLength="${width}"${look === "" ? "" : ` class="${look}"`}>${escapeText(word)}</tspan>`;
    });
  return spans.length === 0 ? "" : `<text y="${TOP + row * LINE}">${spans.join("")}</text>`;
}

const escapeText = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

const picture = render(record());
if (!process.argv.includes("--check")) {
  writeFileSync(PICTURE, picture);
  console.log(`wrote ${path.relative(ROOT, PICTURE)}, ${(picture.length / 1000).toFixed(1)} kB`);
} else if (readFileSync(PICTURE, "utf8") !== picture) {
  console.error(`${path.relative(ROOT, PICTURE)} is stale: run \`npm run docs\``);
  process.exitCode = 1;
}
