/** Every key of the screen one came from, and those that work everywhere. */
import { COMMON_KEYS, MOVE_KEYS, type Key, type KeyHelp } from "../keys.ts";
import { cell, renderSpans, span, type Paint } from "../paint.ts";
import type { Desk, Screen, Size } from "../screen.ts";

const MORE: readonly KeyHelp[] = [
  { keys: "Ctrl-L", does: "read everything again" },
  { keys: "Ctrl-Z", does: "back to the shell; fg returns" },
  { keys: "Ctrl-C", does: "quit at once" },
];

const KEY_COLUMNS = 14;

export class HelpScreen implements Screen {
  readonly name = "keys";
  readonly keys: readonly KeyHelp[] = [];
  readonly #desk: Desk;
  readonly #about: Screen;

  constructor(desk: Desk, about: Screen) {
    this.#desk = desk;
    this.#about = about;
  }

  load(): Promise<void> {
    return Promise.resolve();
  }

  /** Any key leads back, but for those that quit. */
  async handle({ name }: Key): Promise<boolean> {
    if (name === "q") return false;
    await this.#desk.back();
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
    if (lines.length <= rows) return lines;
    // Two columns where one is not enough.
    const half = Math.ceil(lines.length / 2);
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
