/**
 * Patterns over session keys, such as `agent:*:cron:**`. A key is a list of segments separated by colons: `*` matches any text inside one
 * segment (even none), `**` any text across segments. A pattern always matches the whole key.
 */

export interface SessionPatterns {
  readonly patterns: readonly string[];
  /** True when at least one pattern matches the key. */
  matches(sessionKey: string): boolean;
}

export function matchesSessionPattern(pattern: string, sessionKey: string): boolean {
  return toRegExp(pattern).test(sessionKey);
}

/** Compiles patterns that are checked at every turn. */
export function compileSessionPatterns(patterns: readonly string[]): SessionPatterns {
  const compiled = patterns.map(toRegExp);
  return {
    patterns: [...patterns],
    matches: (sessionKey) => compiled.some((expression) => expression.test(sessionKey)),
  };
}

function toRegExp(pattern: string): RegExp {
  const body = pattern.replaceAll(/\*+|[^*]+/g, (piece) => {
    if (piece === "*") return "[^:]*";
    if (piece.startsWith("*")) return ".*";
    return escapeForRegExp(piece);
  });
  return new RegExp(`^${body}$`, "s");
}

function escapeForRegExp(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`);
}

/** A host names the session of a sub-agent `agent:<id>:subagent:<uuid>`. Such a session has no tool that opens its own history. */
export const isSubagentKey = (key: string): boolean => /(?:^|:)subagent:/.test(key);
