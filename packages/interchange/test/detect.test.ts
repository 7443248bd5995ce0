import { execFileSync } from "node:child_process";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";

import { describe, expect, onTestFinished, test } from "vitest";

import {
  detectFormat,
  identifySession,
  listTranscripts,
  openTranscript,
  type Detection,
  type OpenTranscript,
} from "../src/transcript/detect.ts";

import { makeTemporaryDirectory } from "@lossless/testkit";
import { listForeignTranscripts, listRealTranscripts } from "./support.ts";

async function openForTest(path: string): Promise<OpenTranscript> {
  const transcript = await openTranscript(path);
  onTestFinished(() => transcript.file.close());
  return transcript;
}

async function openContent(content: string, name = "file.jsonl"): Promise<OpenTranscript> {
  const path = join(makeTemporaryDirectory(), name);
  writeFileSync(path, content);
  return openForTest(path);
}

function nameOf(detection: Detection): string {
  return detection.kind === "found" ? detection.format.name : detection.kind;
}

const HEADER = '{"type":"session","version":3,"id":"s1","timestamp":"2026-01-01T00:00:00Z","cwd":"/tmp"}\n';
const ROW =
  '{"type":"user","uuid":"u1","parentUuid":null,"isSidechain":false,"sessionId":"c1","message":{"role":"user"}}\n';

const CASES: { name: string; content: string; format: string }[] = [
  { name: "a pi header", content: HEADER, format: "pi" },
  { name: "a pi header behind an unreadable line", content: `{broken\n${HEADER}`, format: "pi" },
  { name: "a Claude Code row", content: ROW, format: "claude-code" },
  {
    name: "a Claude Code row behind lines nobody knows",
    content: `{"type":"new-thing"}\n${ROW}`,
    format: "claude-code",
  },
  {
    name: "a Claude Code file that so far holds a summary",
    content: '{"type":"summary","summary":"x","leafUuid":"y"}\n',
    format: "claude-code",
  },
  {
    name: "a pi file that lost its header",
    content: '{"type":"message","message":{"role":"user"}}\n',
    format: "pi",
  },
  { name: "an empty file", content: "", format: "too_early" },
  { name: "a first line that is still being written", content: '{"type":"ses', format: "too_early" },
];

describe("detectFormat", () => {
  test.each(CASES)("knows $name", async ({ content, format }) => {
    expect(nameOf(await detectFormat(await openContent(content)))).toBe(format);
  });

  test("says what it found and what it can read when the format is unknown", async () => {
    const transcript = await openContent('{"type":"weather_report","degrees":3}\n');
    await expect(detectFormat(transcript)).rejects.toMatchObject({
      code: "invalid_input",
      message: expect.stringContaining('type "weather_report"'),
      hint: expect.stringMatching(/Claude Code JSONL.*pi session JSONL/u),
    });
  });

  test("refuses text that is no JSON", async () => {
    const refusal = detectFormat(await openContent("hello\nworld\n"));
    await expect(refusal).rejects.toMatchObject({ code: "invalid_input" });
  });

  const real = listRealTranscripts();
  test.skipIf(real.length === 0)(
    "knows every real transcript of the two formats (skipped without shared data)",
    async () => {
      for (const path of real) {
        const isClaude = path.includes("/claude-code") || basename(path).startsWith("claude__");
        const found = nameOf(await detectFormat(await openForTest(path)));
        expect([path, found]).toEqual([path, isClaude ? "claude-code" : "pi"]);
      }
    },
  );

  const others = listForeignTranscripts().filter(
    (path) => path.endsWith(".jsonl") && !path.includes("tau-bench"),
  );
  test.skipIf(others.length === 0)(
    "knows the real files of lines of other agents (skipped without shared data)",
    async () => {
      for (const path of others) {
        const agent = basename(path).split("__")[0] ?? "";
        const wanted = path.includes("/codex/") ? "codex" : agent === "gemini" ? "gemini-cli" : agent;
        // Two objects on one line, and nothing else in the file: no line of it is JSON.
        const isGlued = path.endsWith("000000000005.jsonl");
        const outcome = await detectFormat(await openForTest(path)).then(
          nameOf,
          (error: { code: string }) => error.code,
        );
        expect([path, outcome]).toEqual([path, isGlued ? "invalid_input" : wanted]);
      }
    },
  );
});

describe("identifySession", () => {
  test("takes the id of the header", async () => {
    const transcript = await openContent(HEADER);
    const { format } = (await detectFormat(transcript)) as Extract<Detection, { kind: "found" }>;
    expect(await identifySession(transcript, format)).toEqual({ id: "s1", isSubAgent: false, standIn: null });
  });

  test("takes the first session id of a Claude Code file and remembers what the file was called before it", async () => {
    const transcript = await openContent(`{"type":"summary","leafUuid":"y"}\n${ROW}`);
    const { format } = (await detectFormat(transcript)) as Extract<Detection, { kind: "found" }>;
    const session = await identifySession(transcript, format);
    expect(session).toMatchObject({
      id: "c1",
      standIn: { id: expect.stringMatching(/^file:file\.jsonl:[0-9a-f]{12}$/u) },
    });
  });

  test("keeps a sub-agent's file apart from its parent's", async () => {
    const row = ROW.replace('"isSidechain":false', '"isSidechain":true,"agentId":"a7"');
    const transcript = await openContent(row);
    const { format } = (await detectFormat(transcript)) as Extract<Detection, { kind: "found" }>;
    expect(await identifySession(transcript, format)).toMatchObject({ id: "agent-a7", isSubAgent: true });
  });

  test("lets the file stand for a session that no line names", async () => {
    const transcript = await openContent('{"type":"summary","leafUuid":"y"}\n', "x.jsonl");
    const { format } = (await detectFormat(transcript)) as Extract<Detection, { kind: "found" }>;
    expect((await identifySession(transcript, format)).id).toMatch(/^file:x\.jsonl:/u);
  });
});

describe("openTranscript and listTranscripts", () => {
  test("refuse what is no regular file", async () => {
    const directory = makeTemporaryDirectory();
    await expect(openTranscript(directory)).rejects.toMatchObject({ code: "invalid_input" });
    await expect(openTranscript("/dev/null")).rejects.toMatchObject({ code: "invalid_input" });
    await expect(openTranscript(join(directory, "absent"))).rejects.toMatchObject({ code: "not_found" });
    const pipe = join(directory, "pipe");
    execFileSync("mkfifo", [pipe]);
    await expect(openTranscript(pipe)).rejects.toMatchObject({ message: expect.stringContaining("a pipe") });
  });

  test("find the transcripts of a directory in order, and follow no links", async () => {
    const directory = makeTemporaryDirectory();
    mkdirSync(join(directory, "deep"));
    for (const name of ["b.jsonl", "a.jsonl", "note.txt", "deep/c.jsonl"])
      writeFileSync(join(directory, name), "");
    symlinkSync(join(directory, "a.jsonl"), join(directory, "link.jsonl"));
    const found = await listTranscripts(directory);
    expect(found.map((path) => path.slice(directory.length + 1))).toEqual([
      "a.jsonl",
      "b.jsonl",
      "deep/c.jsonl",
    ]);
    expect(await listTranscripts(join(directory, "note.txt"))).toEqual([join(directory, "note.txt")]);
  });
});
