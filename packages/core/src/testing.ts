/** Inner parts that test tools, benchmarks and the demo's proofs look at. No program uses them; they change without notice. */
export { createLocalEngine } from "./engine/local-engine.ts";
export { deriveMessage, prepareMessage } from "./ingest/prepare.ts";
export { viewMessage } from "./message/normalize.ts";
export { filesDirBeside } from "./model/files-dir.ts";
export { decodeBody, encodeBody } from "./store/body.ts";
export { Connection } from "./store/sqlite/connection.ts";
export { toMatch } from "./store/sqlite/match.ts";
export { keepSeals } from "./store/sqlite/seals.ts";
export { SqliteStore } from "./store/sqlite/sqlite-store.ts";
export { UNPROVEN } from "./store/sqlite/unproven.ts";
export { summarizeExtractively } from "./summarize/extractive.ts";
export { speakerOf } from "./summarize/source.ts";
export type { SourceLine } from "./summarize/source.ts";
export type { Summarize } from "./summarize/summarize.ts";
export { createSummarizer } from "./summarize/summarizer.ts";
export { analyzeQuery, buildClues } from "./text/index.ts";
export { STOP_WORDS_BY_LANGUAGE } from "./text/vocabulary.ts";
