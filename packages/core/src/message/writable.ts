/**
 * An object that is still being filled in: members are set one by one, so that absent ones stay absent without an extra object for each.
 */
export type Writable<T> = { -readonly [K in keyof T]: T[K] };
