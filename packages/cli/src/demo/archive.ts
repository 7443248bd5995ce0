/** The demo's archive: shows what was stored, stores it again, and reads it back unchanged. */
import { hash } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import type { LargeFileRow, StatusResult } from "@lossless/core";
import { importTranscript } from "@lossless/interchange";
import { countOf, formatBytes, formatCount, toOneLine, truncateToWidth } from "@lossless/core/doors";
import { style } from "../style.ts";
import { renderPairs } from "../table.ts";
import { countLanguages } from "./languages.ts";
import { COLUMNS, readAll } from "./tour.ts";
import type { StoredMessage, Tour } from "./tour.ts";

export async function importAgain(tour: Tour): Promise<void> {
  const report = await tour.withArchive((engine) => importTranscript({ engine, path: tour.sample }));
  tour.tell(
    `${style.good("ok")}  ${formatCount(report.imported)} stored, ${formatCount(report.skipped)} known before`,
  );
}

export async function showStored(tour: Tour): Promise<void> {
  const { status, inventory } = await tour.withArchive(async (engine) => {
    const counted = new Inventory();
    for await (const message of readAll(engine)) counted.add(message);
    for (const fileId of counted.fileIds) {
      const file = await engine.readFile({ fileId });
      if (file !== null) counted.files.push(file);
    }
    return { status: await engine.status(), inventory: counted };
  });
  tour.tell(renderPairs(describeStored(status, inventory), style.faint));
  for (const file of inventory.files) {
    tour.say("");
    tour.tell(renderFile(file));
  }
}

/** The content of a conversation, counted message by message. */
class Inventory {
  readonly roles = new Map<string, number>();
  readonly hidden = new Map<string, number>();
  /** Tokens of the messages a model may see. */
  tokens = 0;
  readonly parts = new Map<string, number>();
  readonly tools = new Map<string, number>();
  readonly fileIds = new Set<string>();
  readonly files: LargeFileRow[] = [];
  readonly texts: string[] = [];

  add({ row, parts, view }: StoredMessage): void {
    if (view.isMessage) increment(this.roles, row.role);
    for (const reason of row.hidden) increment(this.hidden, reason);
    if (row.hidden.length === 0) this.tokens += row.tokens;
    for (const part of view.parts) {
      increment(this.parts, part.type.replace("_", " "));
      if (part.type === "tool_call") increment(this.tools, part.toolName ?? "unnamed");
      if (part.type === "text" && row.role !== "tool") this.texts.push(part.text);
    }
    for (const { fileId } of parts) if (fileId !== null) this.fileIds.add(fileId);
  }
}

const increment = (counts: Map<string, number>, name: string): void => {
  counts.set(name, (counts.get(name) ?? 0) + 1);
};

const listCounts = (counts: ReadonlyMap<string, number>, most = 6): string =>
  [...counts]
    .sort(([, left], [, right]) => right - left)
    .slice(0, most)
    .map(([name, count]) => `${formatCount(count)} ${name}`)
    .join(", ");

function describeStored(status: StatusResult, inventory: Inventory): [string, string][] {
  const cut = (text: string): string => truncateToWidth(text, COLUMNS - 17);
  return [
    ["Messages", cut(listCounts(inventory.roles))],
    ["Parts", cut(listCounts(inventory.parts))],
    ["Tool calls", cut(listCounts(inventory.tools))],
    ["Languages", cut(listCounts(countLanguages(inventory.texts), 5))],
    ["Hidden", cut(`${listCounts(inventory.hidden)} (kept, not shown to a model)`)],
    ["Tokens", `about ${formatCount(inventory.tokens)}`],
    ["Raw JSON", formatBytes(status.arrivalBytes)],
    [
      "Database",
      `${formatBytes(status.databaseBytes)}, with ${formatCount(status.summaries)} summaries and the search index`,
    ],
    [
      "Large files",
      `${countOf(inventory.files.length, "file")}, ${formatBytes(status.filesBytes)} beside it`,
    ],
  ];
}

function renderFile(file: LargeFileRow): string {
  const name = file.fileName ?? file.mimeType;
  const lines = file.lineCount === null ? "" : `, ${countOf(file.lineCount, "line")}`;
  const summary = file.explorationSummary
    .split("\n")
    .map(toOneLine)
    .filter((line) => line !== "")
    .slice(0, 4)
    .map((line) => truncateToWidth(line, COLUMNS - 6));
  return [
    `${style.name(file.fileId)}  ${toOneLine(name)}, ${formatBytes(file.byteSize)}${lines}`,
    ...summary.map((line) => style.faint(`  ${line}`)),
  ].join("\n");
}

export async function compareBytes(tour: Tour): Promise<void> {
  const lines = readFileSync(tour.sample, "utf8").trimEnd().split("\n");
  const { sample, equal, count } = await tour.withArchive(async (engine) => {
    let shown: StoredMessage | null = null;
    let same = 0;
    let at = 0;
    for await (const message of readAll(engine)) {
      if (Buffer.from(lines[at] ?? "").equals(message.bytes)) same += 1;
      if (shown === null && isTelling(message)) shown = message;
      at += 1;
    }
    return { sample: shown, equal: same, count: at };
  });
  if (sample !== null) showOne(tour, lines, sample);
  const isWhole = equal === count && count === lines.length;
  const mark = isWhole ? style.good("ok") : style.bad("not ok");
  tour.tell(
    `${mark}  ${formatCount(equal)} of ${formatCount(lines.length)} lines come back equal (${formatBytes(statSync(tour.sample).size)})`,
  );
}

/** An answer with thinking and a tool call shows more than a line of text. */
const isTelling = ({ view }: StoredMessage): boolean =>
  ["reasoning", "text", "tool_call"].every((type) => view.parts.some((part) => part.type === type));

function showOne(tour: Tour, lines: readonly string[], { row, bytes }: StoredMessage): void {
  const stored = Buffer.from(bytes).toString("utf8");
  const given = lines.find((line) => line === stored) ?? "";
  const cut = (text: string): string => truncateToWidth(toOneLine(text), COLUMNS - 13);
  tour.tell(
    renderPairs(
      [
        [
          `msg_${row.messageId}`,
          `${formatBytes(bytes.byteLength)}, an answer with thinking, text and a tool call`,
        ],
        ["given", cut(given)],
        ["stored", cut(stored)],
        ["SHA-256", `${hash("sha256", Buffer.from(given)).slice(0, 24)}… given`],
        ["", `${hash("sha256", bytes).slice(0, 24)}… stored`],
      ],
      style.faint,
    ),
  );
  tour.say("");
}
