// Builds the sample conversation that ships with the project, from the screenplays in `scenes/`.
//
//   node packages/cli/sample/build-sample.ts
//
// writes `sample-session.jsonl` (a session file, version 3), `facts.json` and `searches.json` beside itself.
// Nothing at run time needs this file: the three outputs are kept in the repository, and a test compares them
// with what is built here. Invariant: the output depends on the files in this folder and on nothing else.

import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expandBulk } from "./bulk.ts";
import { facts, searches, type Fact, type Search } from "./questions.ts";
import { BASE62, createRandom, digest, HEX, type Random } from "./random.ts";
import { parseCall, parseScreenplay, type Block, type Scene, type ToolCall } from "./screenplay.ts";

export interface Sample {
  readonly session: string;
  readonly facts: string;
  readonly searches: string;
}

interface Entry {
  readonly type: string;
  readonly id: string;
  readonly parentId: string | null;
  readonly [field: string]: unknown;
}

/** A passage is what a question can be answered from: the words of one message on the active branch. */
interface Passage {
  readonly id: string;
  readonly text: string;
}

interface PendingCall extends ToolCall {
  readonly id: string;
}

const FOLDER = import.meta.dirname;
const SESSION_ID = "3f6c1d52-8a0e-4b7d-9e41-c2a5d7b80f16";
const WORKSPACE = "/home/clawdia/workspace";
const HEARTBEAT =
  "Heartbeat. Look at HEARTBEAT.md and at the open tasks; do what is due. If nothing needs anybody, answer HEARTBEAT_OK and nothing else.";

/** A leaf on cream paper, 16 by 16 pixels, two bits each. */
const PHOTO =
  "iVBORw0KGgoAAAANSUhEUgAAABAAAAAQAgMAAABinRfyAAAADFBMVEX18ORGjEZ4UCgAAABqLgkYAAAANklEQVR42mNgAANGByDBGgAkxEKARFgoUCgs1IGBMS0VSERNdYBwwRIQJWwgHUwMMEJrAcQgAEudB+n3wddOAAAAAElFTkSuQmCC";

const SPEAKERS: Readonly<Record<string, string>> = { mira: "", photo: "", tomas: "[Tomás] ", lin: "[Lin] " };

const FORMAT_WIDTH = 110;

/** Dollars for a million tokens, as the shop's gateway bills them. */
const PRICES = { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 };

export function buildSample(): Sample {
  const writer = new SessionWriter();
  for (const scene of readScenes()) writer.playScene(scene);
  const passages = writer.readPassages();
  return {
    session: writer.renderSession(),
    facts: renderJson(facts.map((fact) => answerFact(fact, passages))),
    searches: renderJson(searches.map((search) => answerSearch(search, passages))),
  };
}

function readScenes(): Scene[] {
  const folder = join(FOLDER, "scenes");
  const files = readdirSync(folder).filter((name) => name.endsWith(".txt"));
  const scenes = files
    .sort()
    .flatMap((name) => parseScreenplay(name, readFileSync(join(folder, name), "utf8")));
  return scenes.sort((a, b) => a.startMs - b.startMs);
}

class SessionWriter {
  private readonly lines: string[] = [];
  private readonly entries = new Map<string, Entry>();
  private leafId: string | null = null;
  private branchPoint: string | null = null;
  private clockMs = 0;
  private random: Random = createRandom("header");
  private sceneKey = "header";
  private count = 0;
  private model = "fern-4-large";
  private contextTokens = 0;
  private freshTokens = 9_200;
  private thinking: string | undefined;
  private saying: string | undefined;
  private calls: PendingCall[] = [];
  private unanswered: PendingCall[] = [];
  private turnEnded = true;

  playScene(scene: Scene): void {
    if (scene.startMs <= this.clockMs) {
      throw new Error(
        `cannot play scene ${scene.key}: the one before ends at ${new Date(this.clockMs).toISOString()}`,
      );
    }
    this.clockMs = scene.startMs + createRandom(scene.key).int(0, 59_999);
    this.random = createRandom(`scene ${scene.key}`);
    this.sceneKey = scene.key;
    this.count = 0;
    if (this.lines.length === 0) this.writeHeader();
    for (const block of scene.blocks) this.playBlock(block);
    this.requireQuiet(`the end of scene ${scene.key}`);
  }

  renderSession(): string {
    return `${this.lines.join("\n")}\n`;
  }

  readPassages(): Passage[] {
    const passages: Passage[] = [];
    let entry = this.leafId === null ? undefined : this.entries.get(this.leafId);
    while (entry !== undefined) {
      if (entry.type === "message") passages.unshift({ id: entry.id, text: readWords(entry.message) });
      entry = entry.parentId === null ? undefined : this.entries.get(entry.parentId);
    }
    return passages;
  }

  private playBlock(block: Block): void {
    const text = expandBulk(block.text, this.random);
    switch (block.marker) {
      case "mira":
      case "tomas":
      case "lin":
      case "photo":
      case "beat":
        return this.writeUser(block, text);
      case "think":
        this.thinking = text;
        return;
      case "say":
        this.saying = text;
        return;
      case "call":
        return this.addCall(block, text);
      case "out":
      case "fail":
        return this.writeToolResult(block, text);
      case "reply":
        return this.writeReply(text, "stop");
      case "aborted":
        return this.writeReply(text, "aborted");
      case "broken":
        return this.writeReply(text, "error");
      default:
        return this.playStage(block, text);
    }
  }

  private playStage(block: Block, text: string): void {
    this.requireQuiet(block.place);
    switch (block.marker) {
      case "wait":
        this.clockMs += parseDuration(text);
        return;
      case "abandon":
        this.branchPoint = this.leafId;
        return;
      case "return":
        this.leafId = this.branchPoint;
        return;
      case "model":
        this.model = text;
        return this.writeEntry("model_change", { provider: "leafgate", modelId: text });
      case "level":
        return this.writeEntry("thinking_level_change", { thinkingLevel: text });
      case "custom": {
        const space = text.indexOf(" ");
        return this.writeEntry("custom", {
          customType: text.slice(0, space),
          data: JSON.parse(text.slice(space + 1)),
        });
      }
      default:
        throw new Error(`cannot play block at ${block.place}: unknown marker @${block.marker}`);
    }
  }

  private writeHeader(): void {
    const timestamp = new Date(this.clockMs).toISOString();
    this.lines.push(
      JSON.stringify({ type: "session", version: 3, id: SESSION_ID, timestamp, cwd: WORKSPACE }),
    );
  }

  private writeUser(block: Block, text: string): void {
    this.requireQuiet(block.place);
    this.passTime(25_000, 240_000);
    const words = block.marker === "beat" ? HEARTBEAT : `${SPEAKERS[block.marker]}${text}`;
    const image = { type: "image", data: PHOTO, mimeType: "image/png" };
    this.writeMessage({
      role: "user",
      content: block.marker === "photo" ? [{ type: "text", text: words }, image] : words,
      timestamp: this.clockMs,
      idempotencyKey: `${this.random.text(HEX, 12)}:user`,
    });
    this.freshTokens += estimateTokens(words);
    this.turnEnded = false;
  }

  private addCall(block: Block, text: string): void {
    if (this.turnEnded)
      throw new Error(`cannot add call at ${block.place}: the turn has ended, use @say before it`);
    if (this.unanswered.length > 0) throw new Error(`cannot add call at ${block.place}: a result is missing`);
    this.calls.push({ ...parseCall(text, block.place), id: `call_${this.random.text(BASE62, 20)}` });
  }

  private writeToolResult(block: Block, text: string): void {
    if (this.calls.length > 0) this.writeCalls();
    const call = this.unanswered.shift();
    if (call === undefined) throw new Error(`cannot write result at ${block.place}: no call is open`);
    this.passTime(200, 9_000);
    const isError = block.marker === "fail";
    const details = call.name === "exec" ? { details: { exitCode: isError ? 1 : 0 } } : {};
    this.writeMessage({
      role: "toolResult",
      toolCallId: call.id,
      toolName: call.name,
      content: [{ type: "text", text }],
      ...details,
      isError,
      timestamp: this.clockMs,
    });
    this.freshTokens += estimateTokens(text);
  }

  private writeCalls(): void {
    const calls = this.calls.map((call) => ({ type: "toolCall", ...orderCall(call) }));
    this.unanswered = this.calls;
    this.calls = [];
    this.writeAssistant([...this.takeWords(), ...calls], "toolUse");
  }

  private writeReply(text: string, stopReason: string): void {
    if (this.calls.length > 0 || this.unanswered.length > 0) {
      throw new Error(
        `cannot reply in scene ${this.sceneKey}: a result is missing before "${text.slice(0, 40)}"`,
      );
    }
    if (this.turnEnded)
      throw new Error(`cannot reply twice in scene ${this.sceneKey}: "${text.slice(0, 40)}"`);
    this.turnEnded = stopReason !== "error";
    if (stopReason === "error") return this.writeAssistant([], stopReason, text);
    this.saying = text;
    const note = stopReason === "aborted" ? "Request was aborted" : undefined;
    this.writeAssistant(this.takeWords(), stopReason, note);
  }

  private takeWords(): { type: string; [field: string]: unknown }[] {
    const content: { type: string; [field: string]: unknown }[] = [];
    if (this.thinking !== undefined) content.push(this.signThinking(this.thinking));
    if (this.saying !== undefined) content.push({ type: "text", text: this.saying });
    this.thinking = undefined;
    this.saying = undefined;
    return content;
  }

  private signThinking(thinking: string): { type: string; [field: string]: unknown } {
    const thinkingSignature = `${this.random.text(BASE62, 160 + (thinking.length % 90) * 2)}==`;
    if (thinking === "redacted") return { type: "thinking", thinking: "", thinkingSignature, redacted: true };
    return { type: "thinking", thinking, thinkingSignature };
  }

  private writeAssistant(content: readonly object[], stopReason: string, errorMessage?: string): void {
    this.passTime(2_000, 21_000);
    const output = estimateTokens(content.map((part) => JSON.stringify(part)).join(""));
    const usage = this.chargeUsage(output);
    this.writeMessage({
      role: "assistant",
      content,
      api: "anthropic-messages",
      provider: "leafgate",
      model: this.model,
      usage,
      stopReason,
      errorMessage,
      timestamp: this.clockMs,
    });
  }

  /** The context so far is read from the provider's cache, what came since is written to it. */
  private chargeUsage(output: number): object {
    const cacheRead = this.contextTokens;
    const cacheWrite = this.freshTokens;
    const input = 4;
    this.contextTokens += cacheWrite;
    this.freshTokens = output;
    const cost = {
      input: price(input, PRICES.input),
      output: price(output, PRICES.output),
      cacheRead: price(cacheRead, PRICES.cacheRead),
      cacheWrite: price(cacheWrite, PRICES.cacheWrite),
    };
    const total = round(cost.input + cost.output + cost.cacheRead + cost.cacheWrite);
    const totalTokens = input + output + cacheRead + cacheWrite;
    return { input, output, cacheRead, cacheWrite, totalTokens, cost: { ...cost, total } };
  }

  private writeMessage(message: object): void {
    this.writeEntry("message", { message });
  }

  private writeEntry(type: string, fields: object): void {
    const id = digest(`${this.sceneKey}#${this.count++}`).slice(0, 8);
    if (this.entries.has(id)) throw new Error(`cannot write entry ${id}: the id is taken`);
    const timestamp = new Date(this.clockMs).toISOString();
    const entry: Entry = { type, id, parentId: this.leafId, timestamp, ...fields };
    this.entries.set(id, entry);
    this.lines.push(JSON.stringify(entry));
    this.leafId = id;
  }

  private passTime(lowMs: number, highMs: number): void {
    this.clockMs += this.random.int(lowMs, highMs);
  }

  private requireQuiet(place: string): void {
    const busy =
      this.calls.length + this.unanswered.length > 0 ||
      this.thinking !== undefined ||
      this.saying !== undefined;
    if (busy) throw new Error(`cannot go on at ${place}: an assistant turn is open`);
  }
}

function orderCall(call: PendingCall): object {
  return { id: call.id, name: call.name, arguments: call.arguments };
}

function parseDuration(text: string): number {
  const match = /^(\d+)(s|m|h)$/.exec(text);
  if (!match) throw new Error(`cannot read duration "${text}": expected 40s, 20m or 2h`);
  return Number(match[1]) * { s: 1_000, m: 60_000, h: 3_600_000 }[match[2] as "s" | "m" | "h"];
}

function price(tokens: number, dollarsPerMillion: number): number {
  return round((tokens * dollarsPerMillion) / 1_000_000);
}

function round(dollars: number): number {
  return Math.round(dollars * 1_000_000) / 1_000_000;
}

const WORDS =
  /[\u3040-\u30ff\u4e00-\u9fff]|[A-Za-z]+|\d{1,3}|[^\sA-Za-z\d\u3040-\u30ff\u4e00-\u9fff]{1,2}|\n+/g;

/**
 * Near enough for the usage of a story: short words, up to three digits, pairs of signs and each Chinese or Japanese
 * character are one token, a long word one for seven letters.
 */
function estimateTokens(text: string): number {
  return (text.match(WORDS) ?? []).reduce((sum, word) => sum + Math.ceil(word.length / 7), 0);
}

/** Every string in a message that people or tools wrote: texts, thinking, arguments and outputs. */
export function readWords(message: unknown): string {
  const { content } = message as { content: string | { [field: string]: unknown }[] };
  if (typeof content === "string") return content;
  return content
    .map((part) => [part.text, part.thinking, ...readStrings(part.arguments)].join("\n"))
    .join("\n");
}

function readStrings(value: unknown): string[] {
  if (typeof value === "string") return [value];
  if (typeof value !== "object" || value === null) return [];
  return Object.values(value).flatMap(readStrings);
}

function findPassages(passages: readonly Passage[], strings: readonly string[]): string[] {
  return passages.filter(({ text }) => strings.every((part) => text.includes(part))).map(({ id }) => id);
}

function answerFact(fact: Fact, passages: readonly Passage[]): object {
  const entryIds = findPassages(passages, fact.must);
  if (entryIds.length === 0)
    throw new Error(`cannot place fact ${fact.id}: no message holds ${fact.must.join(" + ")}`);
  return { ...fact, entryIds };
}

function answerSearch(search: Search, passages: readonly Passage[]): object {
  const entryIds = [...new Set(search.holds.flatMap((strings) => findPassages(passages, strings)))];
  if (entryIds.length === 0) throw new Error(`cannot place search "${search.query}": no message fits`);
  return { query: search.query, why: search.why, entryIds };
}

/** Laid out as the formatter would, so that the built files pass its check: a list on one line where it fits. */
function renderJson(records: readonly object[]): string {
  return `[\n${records.map(renderRecord).join(",\n")}\n]\n`;
}

function renderRecord(record: object): string {
  const fields = Object.entries(record).map(([key, value]) => `    "${key}": ${renderValue(key, value)}`);
  return `  {\n${fields.join(",\n")}\n  }`;
}

function renderValue(key: string, value: unknown): string {
  if (!Array.isArray(value)) return JSON.stringify(value);
  const items = value.map((item) => JSON.stringify(item));
  const line = `[${items.join(", ")}]`;
  const fits = `    "${key}": ${line}`.length <= FORMAT_WIDTH;
  return fits ? line : `[\n${items.map((item) => `      ${item}`).join(",\n")}\n    ]`;
}

if (import.meta.main) {
  const sample = buildSample();
  writeFileSync(join(FOLDER, "sample-session.jsonl"), sample.session);
  writeFileSync(join(FOLDER, "facts.json"), sample.facts);
  writeFileSync(join(FOLDER, "searches.json"), sample.searches);
}
