/**
 * The plugin's own log: one JSON object per line, events and warnings, no text of messages. At its maximum size the file is renamed and a new
 * one started; a few old ones are kept. A log that cannot be written is reported once and never stops anything.
 */

import { appendFileSync, mkdirSync, renameSync, rmSync, statSync } from "node:fs";
import { dirname } from "node:path";
import type { EngineEvent, Settings } from "@lossless/core";
import type { PluginLogger } from "./host.ts";

const KEPT_FILES = 5;
/** Causes come from databases and providers; a long one may contain its input. */
const MAX_MESSAGE_CHARS = 500;

type Level = "info" | "warn" | "error";

export class LogFile {
  #settings: Settings["independentLogFile"];
  #onFailure: (error: unknown) => void;
  #hasFailed = false;

  constructor(settings: Settings["independentLogFile"], onFailure: (error: unknown) => void) {
    this.#settings = settings;
    this.#onFailure = onFailure;
  }

  write(level: Level, facts: Readonly<Record<string, unknown>>): void {
    const { enabled, file } = this.#settings;
    if (!enabled) return;
    const line = `${JSON.stringify({ at: new Date().toISOString(), level, ...facts }, shorten)}\n`;
    try {
      mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
      this.#rotate(Buffer.byteLength(line));
      appendFileSync(file, line, { mode: 0o600 });
      this.#hasFailed = false;
    } catch (error) {
      if (!this.#hasFailed) this.#onFailure(error);
      this.#hasFailed = true;
    }
  }

  /** Events of the engine, in numbers; messages for the host's log come through `logTo`. */
  writeEvent(event: EngineEvent): void {
    if (event.kind !== "stored" && event.kind !== "compacted" && event.kind !== "spend") return;
    const { kind, ...facts } = event;
    this.write("info", { event: kind, ...facts });
  }

  #rotate(moreBytes: number): void {
    const { file, maxFileBytes } = this.#settings;
    const size = statSync(file, { throwIfNoEntry: false })?.size ?? 0;
    if (size === 0 || size + moreBytes <= maxFileBytes) return;
    rmSync(`${file}.${KEPT_FILES}`, { force: true });
    for (let number = KEPT_FILES - 1; number >= 1; number--)
      move(`${file}.${number}`, `${file}.${number + 1}`);
    move(file, `${file}.1`);
  }
}

/** A logger that writes to the host's log and to ours. */
export function logTo(host: PluginLogger, log: Pick<LogFile, "write">): PluginLogger {
  const both =
    (level: Level) =>
    (message: string): void => {
      host[level](message);
      log.write(level, { message });
    };
  return { info: both("info"), warn: both("warn"), error: both("error") };
}

/** Another process may have moved it in between. */
function move(from: string, to: string): void {
  if (statSync(from, { throwIfNoEntry: false }) !== undefined) renameSync(from, to);
}

function shorten(_key: string, value: unknown): unknown {
  return typeof value === "string" && value.length > MAX_MESSAGE_CHARS
    ? `${value.slice(0, MAX_MESSAGE_CHARS)}…`
    : value;
}
