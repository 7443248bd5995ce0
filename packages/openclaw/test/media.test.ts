import { link, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { resolveSettings } from "@lossless/core";
import { openEngine } from "lossless-claw";
import type { Engine } from "@lossless/core";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { AgentMessage, ContextEngine } from "../src/host/host.ts";
import { listMediaReferences, openMediaFolder, type MediaSource } from "../src/capture/media.ts";
import { closeProven, makeEngine } from "./engine-parts.ts";
import { FakeTranscript, SESSION_ID, SESSION_KEY } from "./fake-transcript.ts";

const session = { sessionId: SESSION_ID, sessionKey: SESSION_KEY };
const PICTURE = Buffer.from("89504e470d0a1a0a0102030405", "hex");

let folder: string;
let inbound: string;
let archive: Engine;
let transcript: FakeTranscript;
let media: MediaSource;
let refused: string[];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "lossless-media-"));
  inbound = join(folder, "media", "inbound");
  await mkdir(inbound, { recursive: true });
  archive = await openEngine({ database: join(folder, "lcm.db"), thread: false });
  transcript = new FakeTranscript();
  refused = [];
  media = openMediaFolder(folder, (error) => refused.push(String(error)));
});

afterEach(() => closeProven(archive, folder));

function newEngine(): ContextEngine {
  const { settings } = resolveSettings({ config: {}, configSource: "test", stateDir: folder });
  return makeEngine({ settings, folder, open: async () => archive, transcript, media });
}

/** What the host writes for a message with pictures. */
function naming(...names: string[]): Record<string, unknown> {
  const media = names.map((name) => ({
    url: `media://inbound/${name}`,
    contentType: "image/png",
    kind: "image",
  }));
  return { __openclaw: { media } };
}

async function playTurn(text: string, fields: Record<string, unknown> = {}): Promise<void> {
  const first = transcript.say("user", text, fields);
  const last = transcript.say("assistant", `answer to ${text}`);
  await newEngine().commitTurn(transcript.turn(first, last));
}

async function assemble(): Promise<AgentMessage[]> {
  const engine = newEngine();
  await engine.bootstrap(session);
  return (await engine.assemble({ ...session, messages: [], tokenBudget: 50_000, prompt: "and?" })).messages;
}

function picturesOf(message: AgentMessage | undefined): unknown[] {
  return Array.isArray(message?.content)
    ? message.content.filter((block: { type?: string }) => block.type === "image")
    : [];
}

describe("the bytes behind a reference", () => {
  test("are archived with the turn, and come back when the host has thrown its file away", async () => {
    await writeFile(join(inbound, "a.png"), PICTURE);
    await writeFile(join(inbound, "b c.png"), Buffer.concat([PICTURE, PICTURE]));
    await playTurn("what is this?", naming("a.png", "b%20c.png"));
    await playTurn("and what now?");
    await rm(inbound, { recursive: true });
    const messages = await assemble();
    expect(messages.length).toBe(4);
    expect(picturesOf(messages[0])).toEqual([
      { type: "image", mimeType: "image/png", data: PICTURE.toString("base64") },
      { type: "image", mimeType: "image/png", data: Buffer.concat([PICTURE, PICTURE]).toString("base64") },
    ]);
    expect(picturesOf(messages[2])).toEqual([]);
  });

  test("are stored once, however often the transcript is read", async () => {
    await writeFile(join(inbound, "a.png"), PICTURE);
    await playTurn("what is this?", naming("a.png"));
    transcript.rewrite();
    await assemble();
    await assemble();
    expect((await archive.status()).messages).toBe(3);
  });

  test("are stored also for a turn whose rows get their names later", async () => {
    await writeFile(join(inbound, "a.png"), PICTURE);
    transcript.broken = true;
    await playTurn("what is this?", naming("a.png"));
    transcript.broken = false;
    expect(picturesOf((await assemble())[0]).length).toBe(1);
  });

  test("go to a large file when they are large", async () => {
    await writeFile(join(inbound, "large.png"), Buffer.alloc(300_000, PICTURE));
    await playTurn("what is this?", naming("large.png"));
    expect((await archive.status()).filesBytes).toBeGreaterThanOrEqual(300_000);
    expect(picturesOf((await assemble())[0]).length).toBe(1);
  });

  test("leave with the message that names them when it is forgotten", async () => {
    await writeFile(join(inbound, "large.png"), Buffer.alloc(300_000, PICTURE));
    await playTurn("what is this?", naming("large.png"));
    await playTurn("something else", naming());
    const { items } = await archive.listConversations({ limit: 1 });
    const rows = await archive.listMessages({ conversationId: items[0]!.conversationId, limit: 10 });
    const asked = rows.items.find((row) => row.role === "user")!;
    const { plan } = await archive.forget({ messageIds: [asked.messageId], reason: "test" });
    expect(plan.messageIds.length).toBe(2);
    expect((await archive.status()).filesBytes).toBe(0);
    expect((await assemble()).flatMap(picturesOf)).toEqual([]);
  });

  test("leave out what does not fit the room", async () => {
    await writeFile(join(inbound, "a.png"), PICTURE);
    await playTurn("what is this?", naming("a.png"));
    const engine = newEngine();
    await engine.bootstrap(session);
    const { messages, estimatedTokens } = await engine.assemble({
      ...session,
      messages: [],
      tokenBudget: 800,
    });
    expect(messages.flatMap(picturesOf)).toEqual([]);
    expect(estimatedTokens).toBeLessThanOrEqual(800);
  });
});

describe("the host's folder", () => {
  test("gives a plain file, and nothing for one that is gone", async () => {
    await writeFile(join(inbound, "a.png"), PICTURE);
    expect(Buffer.from((await media.read("a.png"))!)).toEqual(PICTURE);
    expect(await media.read("gone.png")).toBeNull();
    expect(refused).toEqual([]);
  });

  test("refuses links of both kinds, folders, and a folder that is a link", async () => {
    const secret = join(folder, "secret.txt");
    await writeFile(secret, "private");
    await symlink(secret, join(inbound, "soft.png"));
    await link(secret, join(inbound, "hard.png"));
    await mkdir(join(inbound, "folder.png"));
    for (const name of ["soft.png", "hard.png", "folder.png"]) expect(await media.read(name)).toBeNull();
    expect(refused.length).toBe(3);
    await rm(inbound, { recursive: true });
    await mkdir(join(folder, "elsewhere"));
    await writeFile(join(folder, "elsewhere", "a.png"), PICTURE);
    await symlink(join(folder, "elsewhere"), inbound);
    expect(await media.read("a.png")).toBeNull();
    expect(refused.length).toBe(4);
  });

  test.each([
    "media://inbound/..%2Fsecret.txt",
    "media://inbound/..",
    "media://inbound/a/b.png",
    "media://outbound/a.png",
    "file:///etc/passwd",
    "media://inbound/%00.png",
    "media://inbound/%E0%A4%A.png",
  ])("is not asked for %s", (url) => {
    expect(listMediaReferences({ role: "user", __openclaw: { media: [{ url }] } })).toEqual([]);
  });
});
