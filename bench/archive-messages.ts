/**
 * Messages for the archive benchmark, from a seed: turns of an agent at work, each a question, a reply with tool calls, a tool's result and an
 * answer. Word frequencies are as in real texts (few are common, most are rare), a turn repeats its own words, and about one word in three
 * hundred is new to the archive, so that a full-text index grows realistically.
 */
import { makeRandom } from "@lossless/testkit/random.ts";
import type { Random } from "@lossless/testkit/random.ts";

export interface GeneratedMessage {
  readonly eventId: string;
  readonly message: Record<string, unknown>;
  /** The message as JSON text and bytes: the raw size. */
  readonly json: string;
  readonly bytes: Uint8Array;
  /** Its readable text, which the floor indexes. */
  readonly text: string;
}

export const TURN_MESSAGES = 4;

const COMMON =
  `the of and to a in is it that for on with as this be at by not or from are if we can will file error test so an but has when
   which all run code was line set use new value one then out do no up only after call type read name its data path check there
   return first into build change more need fix should function list same state time before now see result must back where
   message server default each key let input write still test two user config there because size index table order last`
    .trim()
    .split(/\s+/);
const SYLLABLES =
  "an ber con de er fa gen hol in jo ka lor men no or per qui ra sta ter un vi wo xe ya zu pre tion ing ment ler dis sub cor lin mar tes".split(
    " ",
  );
const TOOLS = ["bash", "read", "edit", "grep", "write", "web_search"] as const;
const FOLDERS = ["src", "packages/core", "lib", "test", "scripts", "app/models", "internal/queue", "docs"];
const EXTENSIONS = ["ts", "py", "go", "rs", "json", "md", "yaml"];
const LEVELS = ["INFO", "INFO", "INFO", "DEBUG", "WARN", "ERROR"];
const VOCABULARY_WORDS = 12_000;
const NEW_WORD_RATE = 1 / 300;
/** Words a turn is about, and how often it uses one of them. */
const TOPIC_WORDS = 30;
const TOPIC_RATE = 0.5;
const START_MS = Date.UTC(2026, 0, 5, 8);

/** Words by rank: the common ones first, then made-up ones. The same for every seed, like a language. */
export const VOCABULARY: readonly string[] = makeVocabulary();

function makeVocabulary(): string[] {
  const random = makeRandom(7);
  const words = new Set(COMMON);
  while (words.size < VOCABULARY_WORDS) {
    words.add(Array.from({ length: 2 + random.below(3) }, () => random.pick(SYLLABLES)).join(""));
  }
  return [...words];
}

export const IDENTIFIERS: readonly string[] = makeIdentifiers();

function makeIdentifiers(): string[] {
  const random = makeRandom(11);
  return Array.from({ length: 4_000 }, () => joinWords(random.pick(VOCABULARY), random.pick(VOCABULARY)));
}

function joinWords(first: string, second: string): string {
  return `${first}${second.charAt(0).toUpperCase()}${second.slice(1)}`;
}

/** Messages one after the other; event ids are random, as in hosts. */
export class MessageSource {
  readonly #random: Random;
  #topic: string[] = [];
  #count = 0;

  constructor(seed: number) {
    this.#random = makeRandom(seed);
  }

  /** The next messages, in whole turns. */
  take(count: number): GeneratedMessage[] {
    const messages: GeneratedMessage[] = [];
    while (messages.length < count) messages.push(...this.#makeTurn());
    return messages;
  }

  #makeTurn(): GeneratedMessage[] {
    const random = this.#random;
    this.#topic = [];
    this.#topic = Array.from({ length: TOPIC_WORDS }, () => this.#word());
    const callId = `call_${this.#hex(12)}`;
    const tool = random.pick(TOOLS);
    const question = this.#prose(4 + random.below(50));
    const plan = this.#prose(5 + random.below(40));
    const call = this.#makeArguments(tool);
    const output = this.#makeOutput(200 + Math.floor(8000 * random.next() ** 3));
    const answer = this.#prose(15 + random.below(150));
    return [
      this.#seal({ role: "user", content: [{ type: "text", text: question }] }, question),
      this.#seal(
        this.#reply([
          { type: "text", text: plan },
          { type: "toolCall", id: callId, name: tool, arguments: call },
        ]),
        [plan, tool, ...Object.values(call)].join("\n"),
      ),
      this.#seal(
        {
          role: "toolResult",
          toolCallId: callId,
          toolName: tool,
          content: [{ type: "text", text: output }],
          isError: false,
        },
        output,
      ),
      this.#seal(this.#reply([{ type: "text", text: answer }]), answer),
    ];
  }

  #seal(content: Record<string, unknown>, text: string): GeneratedMessage {
    this.#count += 1;
    const message = { ...content, timestamp: START_MS + this.#count * 4_321 };
    const json = JSON.stringify(message);
    const eventId = `${this.#hex(8)}-${this.#count.toString(16)}`;
    return { eventId, message, json, bytes: Buffer.from(json), text };
  }

  #reply(content: unknown[]): Record<string, unknown> {
    const random = this.#random;
    const usage = {
      input: random.below(900),
      output: 40 + random.below(900),
      cacheRead: random.below(90_000),
      cacheWrite: random.below(4_000),
    };
    return {
      role: "assistant",
      content,
      api: "anthropic-messages",
      provider: "anthropic",
      model: "claude-example",
      usage,
      stopReason: "stop",
    };
  }

  #makeArguments(tool: string): Record<string, string> {
    if (tool === "bash")
      return { command: `cd ${this.#path()} && npm run ${this.#word()} -- --filter ${this.#identifier()}` };
    if (tool === "grep" || tool === "web_search") return { pattern: this.#identifier(), path: this.#path() };
    if (tool === "read") return { path: this.#path() };
    return {
      path: this.#path(),
      oldText: this.#codeLine(),
      newText: `${this.#codeLine()}\n${this.#codeLine()}`,
    };
  }

  #makeOutput(size: number): string {
    const line = this.#random.next() < 0.6 ? () => this.#codeLine() : () => this.#logLine();
    let output = "";
    while (output.length < size) output += `${line()}\n`;
    return output;
  }

  #prose(words: number): string {
    let text = "";
    for (let i = 0; i < words; i++) {
      text += this.#random.next() < 0.03 ? this.#identifier() : this.#word();
      text += i % 13 === 12 ? ". " : " ";
    }
    return text.trimEnd();
  }

  #codeLine(): string {
    const indent = "  ".repeat(this.#random.below(4));
    switch (this.#random.below(5)) {
      case 0:
        return `${indent}const ${this.#identifier()} = ${this.#word()}.${this.#identifier()}(${this.#word()}, ${this.#random.below(500)});`;
      case 1:
        return `${indent}if (${this.#word()} === "${this.#word()}") return ${this.#identifier()};`;
      case 2:
        return `${indent}// ${this.#prose(6)}`;
      case 3:
        return `${indent}import { ${this.#identifier()}, ${this.#word()} } from "./${this.#word()}-${this.#word()}.ts";`;
      default:
        return `${indent}}`;
    }
  }

  #logLine(): string {
    const at = new Date(START_MS + this.#count * 4_321).toISOString().slice(0, 19);
    return `${at} ${this.#random.pick(LEVELS)} ${this.#word()}.${this.#word()}: ${this.#prose(7)} took ${this.#random.below(900)} ms`;
  }

  #path(): string {
    return `${this.#random.pick(FOLDERS)}/${this.#word()}/${this.#word()}-${this.#word()}.${this.#random.pick(EXTENSIONS)}`;
  }

  /** Code mentions few names again and again; now and then a new one. */
  #identifier(): string {
    if (this.#random.next() < NEW_WORD_RATE * 4) return joinWords(this.#word(), this.#word());
    return IDENTIFIERS[this.#rank(IDENTIFIERS.length)] ?? "index";
  }

  /** By rank as in real texts, with a share of new words: hashes, numbers, names. */
  #word(): string {
    const random = this.#random;
    if (random.next() < NEW_WORD_RATE)
      return random.next() < 0.5 ? this.#hex(7) : `${random.pick(VOCABULARY)}${random.below(10_000)}`;
    if (this.#topic.length > 0 && random.next() < TOPIC_RATE) return random.pick(this.#topic);
    return VOCABULARY[this.#rank(VOCABULARY.length)] ?? "the";
  }

  #rank(count: number): number {
    return Math.floor(count ** this.#random.next()) - 1;
  }

  #hex(digits: number): string {
    let text = "";
    while (text.length < digits) text += this.#random.below(16).toString(16);
    return text;
  }
}

/** The messages as lines of an OpenClaw session file, header included. */
export function* renderSessionFile(seed: number, bytes: number): Generator<string> {
  const source = new MessageSource(seed);
  yield `${JSON.stringify({ type: "session", version: 3, id: `bench-${seed}`, timestamp: new Date(START_MS).toISOString(), cwd: "/home/user" })}\n`;
  let parentId: string | null = null;
  for (let written = 0; written < bytes;) {
    for (const { eventId, message } of source.take(TURN_MESSAGES)) {
      const timestamp = new Date(message.timestamp as number).toISOString();
      const line = `${JSON.stringify({ type: "message", id: eventId, parentId, timestamp, message })}\n`;
      parentId = eventId;
      written += line.length;
      yield line;
    }
  }
}
