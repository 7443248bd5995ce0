/** JSON objects, told from everything else that JSON can hold. */

export type JsonObject = { readonly [key: string]: unknown };

/** Neither null nor a list. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The object a text is as JSON; null for other JSON and for what is none. */
export function parseObject(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : null;
  } catch {
    // Null says it: the callers know what was expected.
    return null;
  }
}

/** The members that have a value: hosts, headers, statements and schemas tell one that is absent from one that is undefined. */
export function given<Members extends object>(
  members: Members,
): { [Name in keyof Members]?: Exclude<Members[Name], undefined> } {
  const present = Object.entries(members).filter(([, value]) => value !== undefined);
  return Object.fromEntries(present) as { [Name in keyof Members]?: Exclude<Members[Name], undefined> };
}
