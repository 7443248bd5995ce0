/** The demo's proof: verifies the archive, then a copy with one byte changed, and shows what verification reports. */
import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { formatMessageId, must } from "@lossless/core";
import type { VerifyResult } from "@lossless/core";
import { encodeBody } from "@lossless/core/testing";
import { renderReport } from "../commands/repair/verify.ts";
import {
  countOf,
  formatCount,
  formatSeconds,
  previewOf,
  toOneLine,
  truncateToWidth,
} from "@lossless/core/doors";
import { countNote, startProgress } from "../progress.ts";
import { style } from "../style.ts";
import { COLUMNS, readAll } from "./tour.ts";
import type { StoredMessage, Tour } from "./tour.ts";

export async function proveArchive(tour: Tour): Promise<void> {
  const startedAt = performance.now();
  const report = await verify(tour, tour.database);
  tour.explain(renderReport(report));
  tour.explain(
    style.faint(
      `Rebuilt each message, walked the hash chain, compared files and index: ${formatSeconds(performance.now() - startedAt)}`,
    ),
  );
}

async function verify(tour: Tour, database: string): Promise<VerifyResult> {
  const progress = startProgress("   Verifying", { isWanted: true });
  const report = await tour.withArchive(
    (engine) =>
      engine.verify({
        onProgress: (done, total) => progress.update(done, total, countNote(done, total, "messages")),
      }),
    database,
  );
  progress.finish();
  return report;
}

export async function findTampering(tour: Tour): Promise<void> {
  const copy = join(tour.folder, "copy");
  mkdirSync(copy, { mode: 0o700 });
  cpSync(tour.database, join(copy, "lcm.db"));
  cpSync(join(tour.folder, "lcm-files"), join(copy, "lcm-files"), { recursive: true });
  const file = readFileSync(join(copy, "lcm.db"));
  const { message, offset } = await findOnDisk(tour, file);
  const before = must(file[offset], "the byte to change");
  file[offset] = before ^ 1;
  writeFileSync(join(copy, "lcm.db"), file);
  const id = formatMessageId(message.row.messageId);
  tour.tell(`${style.name(id)}  ${truncateToWidth(toOneLine(previewOf(message)), COLUMNS - 16)}`);
  tour.tell(
    `Byte ${formatCount(offset)} of a copy of the database: ${toHex(before)} becomes ${toHex(before ^ 1)}\n`,
  );
  const report = await verify(tour, join(copy, "lcm.db"));
  const [first, ...others] = report.problems;
  if (first === undefined) return tour.tell(style.bad("verify did not notice"));
  tour.tell(`${style.good("found")}  verify fails and says:`);
  tour.explain(`${style.bad(first.code)}  ${first.message}`);
  if (others.length > 0)
    tour.tell(style.faint(`and ${countOf(others.length, "problem")} that follow from it`));
}

const toHex = (byte: number): string => `0x${byte.toString(16).padStart(2, "0")}`;

interface OnDisk {
  readonly message: StoredMessage;
  /** Of the byte in the middle of the stored message. */
  readonly offset: number;
}

/** A short message is contiguous in the file, so it can be found and changed without SQLite. */
async function findOnDisk(tour: Tour, file: Buffer): Promise<OnDisk> {
  return tour.withArchive(async (engine) => {
    for await (const message of readAll(engine)) {
      if (message.row.role !== "user" || message.row.hidden.length > 0) continue;
      const { body } = encodeBody(message.bytes);
      const at = file.indexOf(body);
      if (at >= 0) return { message, offset: at + Math.floor(body.byteLength / 2) };
    }
    throw new Error("no message of the sample is contiguous in the database file");
  });
}
