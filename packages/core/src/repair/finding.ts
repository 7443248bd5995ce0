/** What a doctor check reports: what is wrong, how bad it is, and the step that fixes it. */
import type { NextStep } from "../model/next-step.ts";
import type { Engine } from "../engine/engine.ts";
import type { ReplacedSetting } from "../settings/settings-resolve.ts";
import type { Settings } from "../settings/settings.ts";
import type { VerifyResult } from "../store/store.ts";

export type Severity = "info" | "warning" | "error";

/** What `doctor --fix` can do by itself: nothing here changes a message, or a summary that verifies. */
export type Fix =
  | {
      readonly kind: "drop_summaries";
      readonly conversationId: number;
      readonly summaryIds: readonly string[];
    }
  | { readonly kind: "reindex" }
  | { readonly kind: "make_private"; readonly path: string; readonly mode: number }
  | { readonly kind: "close_debt"; readonly conversationId: number }
  | { readonly kind: "remove_file"; readonly blob: string }
  | { readonly kind: "remove_copy"; readonly path: string }
  | { readonly kind: "finish_forgetting" };

export interface Finding {
  /** Stable, for programs. */
  readonly code: string;
  readonly severity: Severity;
  /** What it is about: a summary, a file, a conversation, a setting. */
  readonly id: string;
  readonly message: string;
  /** The step that fixes it; null when only a person can. */
  readonly step: NextStep | null;
  readonly fix?: Fix;
  /** Tokens a model would read and write, if the repair needs one. */
  readonly cost?: { readonly inputTokens: number; readonly outputTokens: number };
}

export interface CheckInput {
  readonly engine: Engine;
  readonly settings: Settings;
  readonly databasePath: string;
  readonly filesDir: string;
  readonly now: number;
  /** Why the configured model cannot be used, as far as the caller knows; null when it can, or none is configured. */
  readonly modelProblem: string | null;
  /** Settings that could not be used, each replaced by its default. */
  readonly replacedSettings: readonly ReplacedSetting[];
  /** The proof of the archive, made once for all checks. */
  readonly verify: () => Promise<VerifyResult>;
}

export type Check = (input: CheckInput) => Promise<Finding[]>;
