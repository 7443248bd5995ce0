// The sample conversation: that it is what its builder makes, is sound as a session file, and holds what it promises.

import { readFileSync } from "node:fs";
import { inflateSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { buildSample, readWords } from "../sample/build-sample.ts";

interface Part {
  type: string;
  id?: string;
  text?: string;
  data?: string;
  thinking?: string;
  thinkingSignature?: string;
}

interface Message {
  role: string;
  content: string | Part[];
  timestamp: number;
  toolCallId?: string;
  stopReason?: string;
  isError?: boolean;
  usage?: { input: number; output: number; cacheRead: number; cacheWrite: number; totalTokens: number };
}

interface Entry {
  type: string;
  id: string;
  parentId: string | null;
  timestamp: string;
  message?: Message;
}

interface Question {
  id: string;
  class: string;
  must: string[];
  entryIds: string[];
}

const read = (name: string) => readFileSync(new URL(`../sample/${name}`, import.meta.url), "utf8");
const session = read("sample-session.jsonl");
const [header, ...entries] = session
  .trimEnd()
  .split("\n")
  .map((line) => JSON.parse(line) as Entry);
const byId = new Map(entries.map((entry) => [entry.id, entry]));
const messages = entries.flatMap((entry) => (entry.message ? [entry.message] : []));
const parts = messages.flatMap((message) => (typeof message.content === "string" ? [] : message.content));

function readBranch(leaf: Entry | undefined): Entry[] {
  const branch: Entry[] = [];
  for (let entry = leaf; entry; entry = entry.parentId === null ? undefined : byId.get(entry.parentId))
    branch.unshift(entry);
  return branch;
}

const branch = readBranch(entries.at(-1));
const onBranch = new Set(branch.map(({ id }) => id));

describe("the sample conversation as files", () => {
  test("is exactly what the builder makes, twice", () => {
    const built = buildSample();
    expect(built).toEqual(buildSample());
    expect(built.session === session).toBe(true);
    expect(built.facts).toBe(read("facts.json"));
    expect(built.searches).toBe(read("searches.json"));
  });

  test("keeps to its size", () => {
    const users = messages.filter(({ role }) => role === "user");
    expect(users.length).toBeGreaterThanOrEqual(300);
    expect(users.length).toBeLessThanOrEqual(400);
    expect(entries.length).toBeGreaterThanOrEqual(1_200);
    expect(entries.length).toBeLessThanOrEqual(1_600);
    expect(Buffer.byteLength(session)).toBeGreaterThan(1_200_000);
    expect(Buffer.byteLength(session)).toBeLessThan(2_000_000);
  });
});

describe("the sample conversation as a session", () => {
  test("opens with a header of version 3", () => {
    expect(header).toMatchObject({ type: "session", version: 3 });
  });

  test("gives every entry an id of its own and a parent that came before", () => {
    expect(byId.size).toBe(entries.length);
    const seen = new Set<string | null>([null]);
    for (const entry of entries) {
      expect(seen.has(entry.parentId), `parent of ${entry.id}`).toBe(true);
      seen.add(entry.id);
    }
  });

  test("goes forward in time from 2 February to 15 March 2026", () => {
    const times = entries.map(({ timestamp }) => timestamp);
    expect(times).toEqual(times.toSorted());
    expect(times[0]?.slice(0, 10)).toBe("2026-02-02");
    expect(times.at(-1)?.slice(0, 10)).toBe("2026-03-15");
  });

  test("answers every tool call once, before anybody speaks again", () => {
    const open = new Set<string>();
    for (const { message } of branch) {
      if (message === undefined) continue;
      if (message.role === "toolResult") {
        expect(open.delete(message.toolCallId ?? ""), `call ${message.toolCallId}`).toBe(true);
        continue;
      }
      expect(open.size).toBe(0);
      if (typeof message.content === "string") continue;
      for (const part of message.content) if (part.type === "toolCall") open.add(part.id ?? "");
    }
    expect(open.size).toBe(0);
  });

  test("leaves the branches that the user abandoned behind, beside children that go on", () => {
    const children = Map.groupBy(entries, ({ parentId }) => parentId);
    const forks = [...children.values()].filter((siblings) => siblings.length > 1);
    expect(forks.length).toBeGreaterThanOrEqual(1);
    for (const siblings of forks) expect(siblings.map(({ id }) => onBranch.has(id))).toEqual([false, true]);
  });

  test("adds up the usage of each assistant message", () => {
    for (const { role, usage } of messages) {
      if (role !== "assistant") continue;
      expect(usage).toBeDefined();
      if (usage)
        expect(usage.input + usage.output + usage.cacheRead + usage.cacheWrite).toBe(usage.totalTokens);
    }
  });
});

describe("the sample conversation as a story", () => {
  test("has every kind of line and turn that an importer meets", () => {
    const types = new Set(entries.map(({ type }) => type));
    expect(types).toEqual(new Set(["message", "model_change", "thinking_level_change", "custom"]));
    const stops = new Set(messages.map(({ stopReason }) => stopReason));
    expect(stops).toEqual(new Set([undefined, "stop", "toolUse", "aborted", "error"]));
    expect(messages.some(({ isError }) => isError)).toBe(true);
    expect(parts.some(({ thinkingSignature }) => thinkingSignature)).toBe(true);
    expect(messages.filter(({ content }) => content === "ok").length).toBeGreaterThan(3);
    expect(parts.filter(({ text }) => text === "HEARTBEAT_OK").length).toBeGreaterThan(1);
  });

  test("carries a picture that is a whole PNG", () => {
    const image = parts.find(({ type }) => type === "image");
    const bytes = Buffer.from(image?.data ?? "", "base64");
    expect(bytes.subarray(0, 8)).toEqual(Buffer.from("\x89PNG\r\n\x1a\n", "latin1"));
    const start = bytes.indexOf("IDAT") + 4;
    const pixels = inflateSync(bytes.subarray(start, start + bytes.readUInt32BE(start - 8)));
    // Sixteen rows of one filter byte and sixteen pixels of two bits.
    expect(pixels.length).toBe(16 * 5);
  });

  test("carries one large paste and one very large tool result", () => {
    const sizes = (role: string) =>
      messages
        .filter((message) => message.role === role)
        .map((message) => Buffer.byteLength(readWords(message)));
    const pastes = sizes("user").filter((size) => size > 50_000);
    const results = sizes("toolResult").filter((size) => size > 50_000);
    expect(pastes.length).toBe(1);
    expect(pastes[0]).toBeGreaterThan(120_000);
    expect(pastes[0]).toBeLessThan(160_000);
    expect(results.length).toBe(1);
    expect(results[0]).toBeGreaterThan(100_000);
    expect(results[0]).toBeLessThan(125_000);
    expect(session).toContain('<file name=\\"inventory-2026-02.csv\\" mime=\\"text/csv\\">');
  });
});

describe("the questions about the sample", () => {
  const facts = JSON.parse(read("facts.json")) as Question[];
  const searches = JSON.parse(read("searches.json")) as { query: string; entryIds: string[] }[];

  test("are thirty facts, six of each class, and twelve searches", () => {
    const classes = Object.groupBy(facts, (fact) => fact.class);
    expect(Object.values(classes).map((group) => group?.length)).toEqual([6, 6, 6, 6, 6]);
    expect(new Set(facts.map(({ id }) => id)).size).toBe(30);
    expect(searches.length).toBe(12);
  });

  test("name only messages on the active branch that hold what they must", () => {
    for (const fact of facts) {
      expect(fact.entryIds.length, fact.id).toBeGreaterThan(0);
      expect(fact.entryIds.length, fact.id).toBeLessThanOrEqual(12);
      for (const entryId of fact.entryIds) {
        expect(onBranch.has(entryId)).toBe(true);
        const words = readWords(byId.get(entryId)?.message);
        for (const part of fact.must) expect(words, `${fact.id} in ${entryId}`).toContain(part);
      }
    }
  });

  test("give each search messages to find", () => {
    for (const { query, entryIds } of searches) {
      expect(entryIds.length, query).toBeGreaterThan(0);
      for (const entryId of entryIds) expect(onBranch.has(entryId), query).toBe(true);
    }
  });
});
