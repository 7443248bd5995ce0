/**
 * Pictures and other files that a message only names. The host keeps them in its own folder and deletes them at some point; they are read while
 * they exist, so that the archive holds them as events beside the message that names them.
 *
 * Invariant: only regular files directly in the host's inbound folder are read; links are refused, wherever they lead.
 */

import { constants } from "node:fs";
import { lstat, open } from "node:fs/promises";
import { join } from "node:path";
import { ATTACHMENT_PREFIX } from "@lossless/core";
import type { AgentMessage } from "../host/host.ts";
import type { MessageRow } from "./transcript-rows.ts";

/** Where the bytes of a reference come from; null when they are not available. */
export interface MediaSource {
  read(name: string): Promise<Uint8Array | null>;
}

interface MediaReference {
  readonly url: string;
  readonly name: string;
  readonly mimeType: string;
}

/** The host's own limit is far below this. */
const MAX_BYTES = 64 * 1024 * 1024;
const INBOUND = /^media:\/\/inbound\/([^/?#]+)$/i;
const MAX_REFERENCES = 64;

/** The folder where the host keeps incoming files. */
export function openMediaFolder(stateDir: string, onRefusal: (error: unknown) => void): MediaSource {
  return {
    async read(name) {
      try {
        return await readPlainFile([stateDir, "media", "inbound"], name);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "ENOENT") onRefusal(error);
        return null;
      }
    },
  };
}

async function readPlainFile([root, ...folders]: string[], name: string): Promise<Uint8Array> {
  let folder = root!;
  for (const part of folders) {
    folder = join(folder, part);
    if (!(await lstat(folder)).isDirectory()) throw new Error(`${folder} is not a folder`);
  }
  const path = join(folder, name);
  // Windows has no such flag; there this check of the name refuses links.
  if ((await lstat(path)).isSymbolicLink()) throw new Error(`${path} is a link`);
  const file = await open(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0));
  try {
    const about = await file.stat();
    if (!about.isFile()) throw new Error(`${path} is not a file`);
    if (about.nlink > 1) throw new Error(`${path} is a link`);
    if (about.size > MAX_BYTES) throw new Error(`${path} has ${about.size} bytes, more than ${MAX_BYTES}`);
    return await file.readFile();
  } finally {
    await file.close();
  }
}

/** The references of a message, in its order. */
export function listMediaReferences(message: AgentMessage): MediaReference[] {
  const { media } = (message.__openclaw ?? {}) as { media?: unknown };
  if (!Array.isArray(media)) return [];
  return media.slice(0, MAX_REFERENCES).flatMap((fact: { url?: unknown; contentType?: unknown } | null) => {
    const url = typeof fact?.url === "string" ? fact.url : "";
    const name = readName(url);
    const mimeType = typeof fact?.contentType === "string" ? fact.contentType : "application/octet-stream";
    return name === null ? [] : [{ url, name, mimeType }];
  });
}

/** The name of a file in the folder; null for anything that could lead out of it. */
function readName(url: string): string | null {
  const encoded = INBOUND.exec(url)?.[1];
  if (encoded === undefined) return null;
  try {
    const name = decodeURIComponent(encoded);
    return /[/\\\0]/.test(name) || name === "." || name === ".." ? null : name;
  } catch {
    return null;
  }
}

/** The rows to store beside a row: one for each existing file that it names. */
export async function readAttachments(row: MessageRow, source: MediaSource): Promise<MessageRow[]> {
  const rows: MessageRow[] = [];
  for (const [index, { url, name, mimeType }] of listMediaReferences(row.message).entries()) {
    const bytes = await source.read(name);
    if (bytes === null) continue;
    const data = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
    rows.push({
      kind: "message",
      entryId: nameAttachment(row.entryId, index),
      message: {
        role: "custom",
        customType: ATTACHMENT_TYPE,
        url,
        content: [writeBlock(mimeType, name, data)],
      },
      position: row.position + 1 + index,
      createdAt: row.createdAt,
      hidden: ["meta"],
    });
  }
  return rows;
}

const ATTACHMENT_TYPE = "lossless-claw.media";

export function nameAttachment(entryId: string, index: number): string {
  return `${ATTACHMENT_PREFIX}${entryId}:${index}`;
}

/** The event id of the message that an attachment belongs to; null for other rows. */
export function readAttachedTo(eventId: string): string | null {
  if (!eventId.startsWith(ATTACHMENT_PREFIX)) return null;
  return eventId.slice(ATTACHMENT_PREFIX.length, eventId.lastIndexOf(":"));
}

function writeBlock(mimeType: string, name: string, data: string): Record<string, unknown> {
  return mimeType.startsWith("image/")
    ? { type: "image", mimeType, data }
    : { type: "file", mimeType, name, data };
}
