/** All keys of the previous screen, and the global ones. */
import { COMMON_KEYS, MOVE_KEYS, readMove, type Key, type KeyHelp } from "../keys.ts";
import { cell, renderSpans, span, type Paint } from "../paint.ts";
import type { Desk, Screen, Size } from "../screen.ts";

const MORE: readonly KeyHelp[] = [
  { keys: "Ctrl-L", does: "read everything again" },
  { keys: "Ctrl-Z", does: "the shell; fg returns" },
  { keys: "Ctrl-C", does: "quit at once" },
  { keys: "wheel, click", does: "scroll; choose, open" },
];

const KEY_COLUMNS = 14;
/** Below this, half a line is too short for a sentence. */
const TWO_COLUMNS_FROM = 72;

export class HelpScreen implements Screen {
  readonly name = "keys";
  readonly keys: readonly KeyHelp[] = [];
  readonly #desk: Desk;
  readonly #about: Screen;
  #top = 0;
  /** Visible rows, and all rows. */
  #rows = 1;
  #total = 0;

  constructor(desk: Desk, about: Screen) {
    this.#desk = desk;
    this.#about = about;
  }

  load(): Promise<void> {
    return Promise.resolve();
  }

  /** Any key returns, except for those that quit, and those that scroll if there is more to see. */
  async handle({ name }: Key): Promise<boolean> {
    if (name === "q") return false;
    const last = this.#total - this.#rows;
    const move = last > 0 ? readMove(name, this.#rows) : null;
    if (move !== null) {
      const wanted = move.kind === "by" ? this.#top + move.rows : move.kind === "first" ? 0 : last;
      this.#top = Math.max(0, Math.min(last, wanted));
      return true;
    }
    if (!name.startsWith("wheel")) await this.#desk.back();
    return true;
  }

  render({ columns, rows }: Size, paint: Paint): string[] {
    const sections: [string, readonly KeyHelp[]][] = [
      [`In ${this.#about.name}`, this.#about.keys],
      ["Moving", MOVE_KEYS],
      ["Everywhere", [...COMMON_KEYS, ...MORE]],
    ];
    const lines = sections.flatMap(([title, keys]) =>
      keys.length === 0
        ? []
        : ["", `  ${paint.title(title)}`, ...keys.map((key) => renderKey(key, columns, paint))],
    );
    const half = Math.ceil(lines.length / 2);
    const isScrolled = lines.length > rows && (columns < TWO_COLUMNS_FROM || half > rows);
    [this.#rows, this.#total] = [rows, isScrolled ? lines.length : 0];
    if (isScrolled) {
      this.#top = Math.min(this.#top, lines.length - rows);
      return lines.slice(this.#top, this.#top + rows);
    }
    if (lines.length <= rows) return lines;
    // Two columns if one is not enough.
    const width = Math.floor(columns / 2);
    const compact = sections.flatMap(([title, keys]) => [
      span(title, paint.title),
      ...keys.map((key) => key),
    ]);
    return Array.from({ length: Math.min(rows, half) }, (_, at) => {
      const left = compact[at];
      const right = compact[at + half];
      return renderHalf(left, width, paint) + renderHalf(right, width, paint);
    });
  }
}

function renderKey({ keys, does }: KeyHelp, columns: number, paint: Paint): string {
  return renderSpans([span("    "), cell(keys, KEY_COLUMNS, { style: paint.name }), span(does)], columns);
}

function renderHalf(
  entry: KeyHelp | { readonly text: string } | undefined,
  columns: number,
  paint: Paint,
): string {
  if (entry === undefined) return "";
  const inner = Math.max(1, columns - 2);
  if (!("does" in entry))
    return renderSpans([span("  "), cell(entry.text, inner, { style: paint.title })], columns);
  const does = Math.max(1, inner - KEY_COLUMNS);
  return renderSpans(
    [span("  "), cell(entry.keys, KEY_COLUMNS, { style: paint.name }), cell(entry.does, does)],
    columns,
  );
}
