/** Verbs over the archive as a whole: flush and rebuild the index, prove it, copy it, close it. */
import { deriveMessage } from "../ingest/prepare.ts";
import type { TransplantResult } from "../store/repair.ts";
import type { VerifyResult } from "../store/store.ts";
import { noteReindexed } from "./ingest.ts";
import type { SessionRequest } from "./sessions.ts";
import type { EngineState } from "./state.ts";

export type ProgressFn = (done: number, total: number) => void;

export async function flushIndex({ store }: EngineState): Promise<void> {
  await store.flushIndex();
}

export interface BackupRequest {
  readonly path: string;
  readonly onProgress?: ProgressFn;
}

export async function backup(
  { store }: EngineState,
  { path, onProgress = () => undefined }: BackupRequest,
): Promise<void> {
  await store.backup(path, onProgress);
}

export interface VerifyRequest {
  readonly onProgress?: ProgressFn;
}

export async function verify(
  { store, redaction }: EngineState,
  { onProgress = () => undefined }: VerifyRequest = {},
): Promise<VerifyResult> {
  return store.verify(deriveMessage, onProgress, redaction.prover());
}

export interface ReindexRequest {
  readonly onProgress?: ProgressFn;
  readonly signal?: AbortSignal;
}

export interface ReindexResult {
  readonly messages: number;
}

export async function reindex(
  engine: EngineState,
  { onProgress = () => undefined, signal }: ReindexRequest = {},
): Promise<ReindexResult> {
  const messages = await engine.store.reindex(deriveMessage, onProgress, signal);
  noteReindexed(engine);
  return { messages };
}

export interface FindUnprovenRequest extends SessionRequest {
  readonly events: readonly { eventId: string; bytes: Uint8Array }[];
}

export async function findUnproven(
  { store }: EngineState,
  { owner, sessionId, events }: FindUnprovenRequest,
): Promise<string[]> {
  return store.findUnproven(owner ?? null, sessionId, events);
}

export interface TransplantRequest {
  readonly from: number;
  readonly to: number;
  readonly dryRun: boolean;
}

export async function transplant(
  { store, clock }: EngineState,
  request: TransplantRequest,
): Promise<TransplantResult> {
  return store.transplant({ ...request, now: clock.now() }, deriveMessage);
}

/** Waits for background work to stop at its next step. Anything already published stays. */
export async function close(engine: EngineState): Promise<void> {
  engine.closing.abort();
  await Promise.allSettled(engine.folding.background.values());
  await engine.vectors.background;
  await engine.recall.scanner.close();
  await engine.store.close();
}
