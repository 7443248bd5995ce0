/** The plugin's engine on an archive in this thread, with everything that only the real host has replaced by something plain. */

import assert from "node:assert/strict";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { Engine, Settings } from "@lossless/core";
import { createContextEngine, type ContextEngineParts } from "../src/context-engine.ts";
import type { ContextEngine } from "../src/host/host.ts";
import type { MediaSource } from "../src/capture/media.ts";
import { ModelAccess } from "../src/host/model-access.ts";
import { ProcessMemory } from "../src/host/process-memory.ts";
import { Spool } from "../src/capture/spool.ts";
import { SubagentGrants } from "../src/host/subagents.ts";
import type { TranscriptReader } from "../src/capture/transcript.ts";

export interface TestParts {
  readonly settings: Settings;
  readonly folder: string;
  readonly open: () => Promise<Engine>;
  readonly transcript: { readonly reader: TranscriptReader };
  readonly media?: MediaSource;
  readonly memory?: ProcessMemory;
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
      memory: parts.memory ?? new ProcessMemory(),
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
