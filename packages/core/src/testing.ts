/** Internals for test tools, benchmarks and the demo's proofs. No program uses them; they change without notice. */
export { isUnproven, UNPROVEN } from "./archive/unproven.ts";
export { createLocalEngine } from "./engine/local-engine.ts";
export { deriveMessage, prepareMessage } from "./ingest/prepare.ts";
export { compileRedaction } from "./ingest/redact.ts";
export { createVault } from "./ingest/vault.ts";
export { viewMessage } from "./message/normalize.ts";
export { countRepeats } from "./text/tokens.ts";
export { filesDirBeside } from "./settings/files-dir.ts";
export { decodeBody, encodeBody } from "./store/body.ts";
export { summarizeExtractively } from "./summarize/extractive.ts";
export { speakerOf } from "./summarize/source.ts";
export type { SourceLine } from "./summarize/source.ts";
export type { Summarize } from "./summarize/summarize.ts";
export { createSummarizer } from "./summarize/summarizer.ts";
export { analyzeQuery, buildClues, readLiteralClue } from "./text/index.ts";
export { STOP_WORDS_BY_LANGUAGE } from "./text/vocabulary.ts";
