/** The names of the formats that can be read and written. A separate file: the command line names its formats before it loads any of them. */

export const FORMAT_NAMES = [
  "claude-code",
  "pi",
  "codex",
  "gemini-cli",
  "qwen",
  "kimi",
  "droid",
  "copilot",
  "cursor",
  "grok",
  "antigravity",
  "hermes",
  "swe-agent",
  "opencode",
  "openai",
] as const;

export type FormatName = (typeof FORMAT_NAMES)[number];

/** The formats an export can write. */
export const EXPORT_FORMATS = ["archive", "markdown", "html", "openai", "lossless-claw", "remnic"] as const;

export type ExportFormat = (typeof EXPORT_FORMATS)[number];
