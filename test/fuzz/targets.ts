/** Everything that reads foreign data. A parser that is not listed here is not fuzzed. */
import { archiveTarget } from "./targets/archive.ts";
import { cliTarget } from "./targets/cli.ts";
import { documentedTarget, openCodeTarget } from "./targets/databases.ts";
import { inspectorTarget } from "./targets/inspector.ts";
import { mcpTarget } from "./targets/mcp.ts";
import { messageTarget } from "./targets/message.ts";
import { modelTarget } from "./targets/model.ts";
import { searchTarget } from "./targets/search.ts";
import { settingsTarget, setupTarget } from "./targets/settings.ts";
import { documentTarget, storageTarget, transcriptTarget } from "./targets/transcripts.ts";
import type { Target } from "./target.ts";

export const TARGETS: readonly Target[] = [
  transcriptTarget,
  documentTarget,
  storageTarget,
  openCodeTarget,
  documentedTarget,
  archiveTarget,
  messageTarget,
  searchTarget,
  settingsTarget,
  setupTarget,
  modelTarget,
  inspectorTarget,
  cliTarget,
  mcpTarget,
];
