/** Distinguishes JSON objects from other JSON values. */

export type JsonObject = { readonly [key: string]: unknown };

/** Neither null nor a list. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Parses a text as a JSON object; null for other JSON and for invalid JSON. */
export function parseObject(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : null;
  } catch {
    // Null is enough: the callers know what was expected.
    return null;
  }
}

/** The members that have a value: hosts, headers, statements and schemas distinguish absent from undefined. */
export function given<Members extends object>(
  members: Members,
): { [Name in keyof Members]?: Exclude<Members[Name], undefined> } {
  const present = Object.entries(members).filter(([, value]) => value !== undefined);
  return Object.fromEntries(present) as { [Name in keyof Members]?: Exclude<Members[Name], undefined> };
}
