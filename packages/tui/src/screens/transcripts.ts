/** Transcripts in the session folders of agents: those not in the archive yet, and importing them after a preview. */
import { EngineError, makeImportId } from "@lossless/core";
import { createDryTarget, importTranscript } from "@lossless/interchange";
import type { ImportResult } from "@lossless/interchange";
import { countOf, formatBytes, formatCount, formatTime, toOneLine, wrapToWidth } from "@lossless/core/doors";
import { isOpen, readMove, type Key, type KeyHelp } from "../keys.ts";
import { keepInList, LIST_START, moveInList, placeList, type ListCursor } from "../list-cursor.ts";
import type { ListArea } from "../mouse.ts";
import { cell, renderRow, renderSpans, span, storedSpan, type Paint } from "../paint.ts";
import type { Desk, Screen, Size } from "../screen.ts";
import { listTranscriptFiles, type TranscriptFile } from "../transcripts.ts";
import { makeConfirmScreen } from "./confirm.ts";

const KEYS: readonly KeyHelp[] = [
  { keys: "Enter", does: "look into it, import" },
  { keys: "a", does: "import all" },
  { keys: "u", does: "look for new ones" },
];

const HEAD_ROWS = 2;
/** A larger file is only examined when it is opened: reading it takes longer than a key may. */
const MAX_LOOKED_AT_BYTES = 4_000_000;
const SHOWN_PROBLEMS = 10;

export class TranscriptsScreen implements Screen {
  readonly name = "transcripts";
  readonly keys = KEYS;
  readonly #desk: Desk;
  readonly #states = new Map<string, string>();
  #files: readonly TranscriptFile[] = [];
  #cursor: ListCursor = LIST_START;

  constructor(desk: Desk) {
    this.#desk = desk;
  }

  get area(): ListArea {
    return placeList(this.#cursor, this.#files.length, this.#desk.size, HEAD_ROWS);
  }

  get #rows(): number {
    return Math.max(1, this.#desk.size.rows - HEAD_ROWS);
  }

  /** Also after an import: new lines are then no longer new. */
  async load(): Promise<void> {
    const chosen = this.#files[this.#cursor.selected]?.path;
    this.#files = await listTranscriptFiles(this.#desk.archive.sessionFolders);
    this.#states.clear();
    const at = this.#files.findIndex(({ path }) => path === chosen);
    this.#cursor = keepInList({ ...this.#cursor, selected: Math.max(0, at) }, this.#files.length, this.#rows);
  }

  /** What the visible files would add, one after the other. */
  async settle(): Promise<void> {
    const { top } = this.#cursor;
    for (const { path, bytes } of this.#files.slice(top, top + this.#rows)) {
      if (this.#cursor.top !== top) return;
      if (this.#states.has(path) || bytes > MAX_LOOKED_AT_BYTES) continue;
      this.#states.set(path, await this.#lookInto(path));
    }
  }

  async #lookInto(path: string): Promise<string> {
    try {
      const { imported } = await tryImport(this.#desk, path);
      return imported === 0 ? "stored" : `${formatCount(imported)} new`;
    } catch (error) {
      if (!(error instanceof EngineError)) throw error;
      return "no transcript";
    }
  }

  async handle(key: Key): Promise<boolean> {
    const move = readMove(key.name, this.#rows);
    if (move !== null) {
      this.#cursor = moveInList(this.#cursor, move, this.#files.length, this.#rows);
      return true;
    }
    if (key.name === "u") {
      await this.load();
      const { length } = this.#files;
      this.#desk.say(length === 0 ? "still no transcripts" : `${countOf(length, "transcript")} found`);
      return true;
    }
    const chosen = this.#files[this.#cursor.selected];
    if (chosen === undefined) return false;
    if (key.name !== "a" && !isOpen(key.name)) return false;
    await this.#desk.open(
      key.name === "a" ? makeImportAllScreen(this.#desk, this.#files) : makeImportScreen(this.#desk, chosen),
    );
    return true;
  }

  render({ columns, rows }: Size, paint: Paint): string[] {
    if (this.#files.length === 0) return renderNothing(this.#desk.archive.sessionFolders, columns, paint);
    const room = Math.max(1, rows - HEAD_ROWS);
    this.#cursor = keepInList(this.#cursor, this.#files.length, room);
    const { top, selected } = this.#cursor;
    const where = this.#desk.archive.sessionFolders.join(", ");
    const lines = this.#files
      .slice(top, top + room)
      .map((file, at) =>
        renderRow(
          [
            cell(formatTime(file.changedAt, this.#desk.timezone), 16, { style: paint.faint }),
            cell(formatBytes(file.bytes), 9, { right: true }),
            span("  "),
            cell(this.#states.get(file.path) ?? "", 13, { style: paint.good }),
            span(" "),
            storedSpan(this.#shorten(file.path, columns - 44)),
          ],
          { columns, isSelected: top + at === selected, paint },
        ),
      );
    return [
      renderSpans(
        [span(`  ${countOf(this.#files.length, "transcript")} in ${toOneLine(where)}`, paint.faint)],
        columns,
      ),
      renderSpans([span("  CHANGED               SIZE  STATE         FILE", paint.faint)], columns),
      ...lines,
    ];
  }

  /** Without the folder, which the first line shows; a long path keeps its end, which says most. */
  #shorten(path: string, columns: number): string {
    const folder = this.#desk.archive.sessionFolders.find((each) => path.startsWith(`${each}/`));
    const name = folder === undefined ? path : path.slice(folder.length + 1);
    return name.length <= columns ? name : `…${name.slice(-Math.max(1, columns - 1))}`;
  }
}

/** Says that there is nothing, where it searched, and what to do next. */
function renderNothing(folders: readonly string[], columns: number, paint: Paint): string[] {
  const says =
    folders.length === 0
      ? "No transcripts found: no agent keeps sessions in its usual folder here."
      : `No transcripts found in ${toOneLine(folders.join(", "))}.`;
  const next =
    folders.length === 0
      ? "Next: quit and start lcm tui --sessions DIR with the folder your agent writes to."
      : "Next: work with your agent and press u, or start lcm tui --sessions DIR with another folder.";
  const wrap = (text: string): string[] => wrapToWidth(text, columns - 4).map((line) => `  ${line}`);
  return ["", ...wrap(says), "", ...wrap(next).map((line) => paint.faint(line))];
}

/** A dry run of the import. */
function tryImport({ archive }: Desk, path: string): Promise<ImportResult> {
  const { engine, settings, scope } = archive;
  return importTranscript({ engine: createDryTarget(engine, settings), path, ...scope });
}

/** Imports files, with the archive opened once. An unreadable file is counted, and the others are imported. */
function importFiles(
  { archive }: Desk,
  files: readonly TranscriptFile[],
  onFile: (index: number) => void = () => undefined,
): Promise<{ stored: number; known: number; refused: readonly EngineError[] }> {
  if (!archive.settings.enabled)
    throw new EngineError("config", "cannot import: storing is switched off (enabled: false)");
  return archive.change(async (engine) => {
    let [stored, known] = [0, 0];
    const refused: EngineError[] = [];
    const importId = makeImportId();
    for (const [index, { path }] of files.entries()) {
      onFile(index);
      try {
        const { imported, revisions, skipped } = await importTranscript({
          engine,
          path,
          importId,
          ...archive.scope,
        });
        stored += imported + revisions;
        known += skipped;
      } catch (error) {
        if (!(error instanceof EngineError) || !["invalid_input", "not_found"].includes(error.code))
          throw error;
        refused.push(error);
      }
    }
    return { stored, known, refused };
  });
}

const WILL = "Every line is kept byte for byte; importing again adds only what is new.";

function makeImportScreen(desk: Desk, file: TranscriptFile): Screen {
  const { path, bytes, changedAt } = file;
  return makeConfirmScreen(desk, {
    name: "import",
    preview: async () => {
      const { imported, skipped, problems } = await tryImport(desk, path);
      return {
        title:
          imported === 0
            ? "All of it is stored already."
            : "What would be stored. Nothing has been changed yet.",
        lines: (paint) => [
          { text: "" },
          { text: `File      ${toOneLine(path)}` },
          { text: `Size      ${formatBytes(bytes)}, changed ${formatTime(changedAt, desk.timezone)}` },
          { text: `New       ${countOf(imported, "message")}` },
          { text: `Stored    ${countOf(skipped, "message")} before` },
          ...problems.slice(0, SHOWN_PROBLEMS).map(({ line, message }) => ({
            text: `Line ${line}  ${toOneLine(message)}`,
            style: paint.warning,
          })),
          { text: "" },
          { text: WILL, style: paint.faint },
          { text: "y imports it, n leaves it.", style: paint.title },
        ],
      };
    },
    apply: async () => {
      const { stored, known, refused } = await importFiles(desk, [file]);
      if (refused[0] !== undefined) throw refused[0];
      return `${countOf(stored, "message")} stored, ${formatCount(known)} known before`;
    },
  });
}

function makeImportAllScreen(desk: Desk, files: readonly TranscriptFile[]): Screen {
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
  return makeConfirmScreen(desk, {
    name: "import all",
    preview: () =>
      Promise.resolve({
        title: `Imports ${countOf(files.length, "transcript")} (${formatBytes(bytes)}). Nothing has been changed yet.`,
        lines: (paint) => [
          { text: "" },
          ...files.map(({ path }) => ({ text: toOneLine(path) })),
          { text: "" },
          { text: `${WILL} Files that are not transcripts are skipped.`, style: paint.faint },
          { text: "y imports them, n leaves them.", style: paint.title },
        ],
      }),
    apply: async () => {
      const { stored, known, refused } = await importFiles(desk, files, (index) =>
        desk.say(`importing ${formatCount(index + 1)} of ${formatCount(files.length)} …`),
      );
      const rest =
        refused.length === 0
          ? ""
          : `; ${countOf(refused.length, "file")} could not be read: lcm import says why`;
      return `${countOf(stored, "message")} stored, ${formatCount(known)} known before${rest}`;
    },
  });
}
