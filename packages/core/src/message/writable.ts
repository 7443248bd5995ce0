/** An object that is still being filled in: members named one by one, so that what is absent stays absent without an object more for each. */
export type Writable<T> = { -readonly [K in keyof T]: T[K] };
