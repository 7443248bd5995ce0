/** The plugin's engine on an archive in this thread, with everything that only the real host has replaced by something plain. */

import assert from "node:assert/strict";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { Engine, Settings } from "@lossless/core";
import { createContextEngine, type ContextEngineParts } from "../src/context-engine.ts";
import type { ContextEngine } from "../src/host.ts";
import type { MediaSource } from "../src/media.ts";
import { ModelAccess } from "../src/model-access.ts";
import { Notes } from "../src/notes.ts";
import { Spool } from "../src/spool.ts";
import { SubagentGrants } from "../src/subagents.ts";
import type { TranscriptReader } from "../src/transcript.ts";

export interface TestParts {
  readonly settings: Settings;
  readonly folder: string;
  readonly open: () => Promise<Engine>;
  readonly transcript: { readonly reader: TranscriptReader };
  readonly media?: MediaSource;
  readonly notes?: Notes;
  readonly models?: ModelAccess;
  readonly warn?: (text: string) => void;
  readonly tell?: (text: string) => void;
  readonly delegate?: ContextEngineParts["delegateCompaction"];
  readonly describeMemory?: ContextEngineParts["describeMemory"];
}

export function makeEngine(parts: TestParts): ContextEngine {
  const { settings, open, transcript, warn = () => undefined } = parts;
  return createContextEngine({
    settings,
    lease: {
      open,
      inOrder: async (_sessionId, task) => await task(),
      discard: () => undefined,
      notes: parts.notes ?? new Notes(),
      models: parts.models ?? new ModelAccess(),
    },
    reader: transcript.reader,
    media: parts.media,
    spool: new Spool(join(parts.folder, "lcm.db")),
    grants: new SubagentGrants({ open, onFailure: (error) => warn(String(error)) }),
    delegateCompaction:
      parts.delegate ?? (async () => ({ ok: true, compacted: true, reason: "the host did it" })),
    describeMemory: parts.describeMemory ?? (() => undefined),
    tell: (_session, text) => parts.tell?.(text),
    logger: { info: () => undefined, warn, error: () => undefined },
    version: "0.0.0",
  });
}

/** After a test: whatever was done to the archive can be proven, and nothing of it stays. */
export async function closeProven(archive: Engine, folder: string): Promise<void> {
  const { problems } = await archive.verify();
  await archive.close();
  await rm(folder, { recursive: true, force: true });
  assert.deepEqual(problems, []);
}
