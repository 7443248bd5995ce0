/** Stores the conversations of an evaluation set through the engine, asks their questions, and scores what is found. Part of `recall.ts`. */
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import type { Arrival, Engine } from "@lossless/core";

export const OWNER = "bench";
const SHOWN = 50;

/** A turn in the files of questions. */
export interface Turn {
  readonly id: string;
  readonly session?: string;
  readonly speaker?: string;
  readonly role?: string;
  readonly text: string;
  readonly caption?: string;
  readonly time?: string;
}

export interface Asked {
  /** The index of the conversation in its set, from 0. */
  readonly conversation?: number;
  readonly id: string;
  readonly category: string;
  readonly evidence: readonly string[];
  readonly ranked: readonly string[];
}

interface Conversation {
  readonly id: string;
  readonly sessions?: readonly { id: string; time?: string }[];
  readonly turns: readonly Turn[];
  readonly qa: readonly { id: string; question: string; category: string; evidence: readonly string[] }[];
}

export async function askSet(
  engine: Engine,
  data: string,
  set: string,
  options: { readonly isPlain: boolean; readonly hasVectors?: boolean },
): Promise<Timed[]> {
  const asked: Timed[] = [];
  let at = 0;
  for (const file of readdirSync(path.join(data, "qa", set)).toSorted()) {
    const content = JSON.parse(readFileSync(path.join(data, "qa", set, file), "utf8")) as Conversation & {
      conversations?: Conversation[];
    };
    for (const conversation of content.conversations ?? [content]) {
      const key = `bench:${set}:${conversation.id}`;
      await store(engine, key, options.isPlain ? makePlain(conversation) : conversation);
      if (options.hasVectors) await engine.embedMessages();
      for (const question of conversation.qa.filter(({ evidence }) => evidence.length > 0)) {
        asked.push({ ...question, conversation: at, ...(await ask(engine, key, question.question)) });
      }
      at += 1;
    }
  }
  return asked;
}

/** All turns in one session, one after the other, without times. */
function makePlain({ turns, ...conversation }: Conversation): Conversation {
  const plain = turns.map(({ session: _session, time: _time, ...turn }) => turn);
  return { ...conversation, sessions: [], turns: plain };
}

export interface Timed extends Asked {
  readonly ms: number;
  /** Whether vectors found any of it. */
  readonly hasNear: boolean;
}

export async function ask(
  engine: Engine,
  key: string,
  pattern: string,
): Promise<{ ranked: string[]; ms: number; hasNear: boolean }> {
  const started = performance.now();
  const { hits } = await engine.grep({
    session: { key, owner: OWNER },
    pattern,
    mode: "full_text",
    sort: "relevance",
    limit: SHOWN,
  });
  const ranked = hits.flatMap((hit) => (hit.type === "message" ? [hit.eventId] : []));
  const hasNear = hits.some(({ foundBy }) => foundBy.includes("vector"));
  return { ranked, ms: performance.now() - started, hasNear };
}

/** A conversation of a set: its sessions one after another, as a host would have stored them. */
async function store(engine: Engine, key: string, conversation: Conversation): Promise<void> {
  const times = new Map((conversation.sessions ?? []).map(({ id, time }) => [id, readTime(time)]));
  const bySession = Map.groupBy(conversation.turns, (turn) => turn.session ?? "1");
  let clock = 0;
  for (const [session, turns] of bySession) {
    const messages = turns.map((turn): Arrival => {
      clock += 1;
      const createdAt = readTime(turn.time) ?? times.get(session) ?? clock;
      const speaker = turn.speaker === undefined ? "" : `${turn.speaker}: `;
      const content = `${speaker}${turn.text}${turn.caption === undefined ? "" : ` ${turn.caption}`}`;
      return { eventId: turn.id, createdAt, message: { role: turn.role ?? "user", content } };
    });
    await engine.ingest({ session: { key, id: `${key}:${session}`, owner: OWNER }, messages });
  }
}

function readTime(time: string | undefined): number | undefined {
  if (time === undefined) return undefined;
  const chinese = /^(\d{4})年(\d{2})月(\d{2})日 \S+ (\d{2}:\d{2})/.exec(time);
  const parsed = Date.parse(chinese ? `${chinese[1]}-${chinese[2]}-${chinese[3]}T${chinese[4]}Z` : time);
  return Number.isNaN(parsed) ? undefined : parsed;
}

export const HALVES = ["choosing half", "confirming half"];

/** The questions of every other conversation. */
export const takeHalf = <T extends Asked>(asked: readonly T[], half: number): T[] =>
  asked.filter(({ conversation }) => (conversation ?? NaN) % 2 === half);

export function score(asked: readonly Timed[]): Record<"R@10" | "MRR", number> & Record<string, number> {
  const mean = (value: (one: Timed) => number): number =>
    Number((asked.reduce((sum, one) => sum + value(one), 0) / asked.length).toFixed(3));
  const recall = (at: number) => (one: Timed) =>
    one.evidence.filter((id) => one.ranked.slice(0, at).includes(id)).length / one.evidence.length;
  const firstRank = (one: Timed): number => one.ranked.findIndex((id) => one.evidence.includes(id)) + 1;
  return {
    questions: asked.length,
    "R@5": mean(recall(5)),
    "R@10": mean(recall(10)),
    "R@20": mean(recall(20)),
    "R@50": mean(recall(50)),
    "hit@10": mean((one) => (firstRank(one) > 0 && firstRank(one) <= 10 ? 1 : 0)),
    MRR: mean((one) => (firstRank(one) > 0 ? 1 / firstRank(one) : 0)),
    empty: mean((one) => (one.ranked.length === 0 ? 1 : 0)),
    ms: Number((asked.reduce((sum, { ms }) => sum + ms, 0) / asked.length).toFixed(2)),
  };
}
