/** The conversation that ships with the project, as a transcript. */
import { fileURLToPath } from "node:url";

export const SAMPLE = fileURLToPath(new URL("../../cli/sample/sample-session.jsonl", import.meta.url));
