/** Shared arithmetic and rendering for the tables of the retention benchmark. */

export type Row = Record<string, string | number>;

export const sum = (values: readonly number[]): number => values.reduce((all, value) => all + value, 0);
export const mean = (values: readonly number[]): number =>
  values.length === 0 ? 0 : sum(values) / values.length;
export const percent = (value: number): string => `${(value * 100).toFixed(1)} %`;

/** Share of the words that occur verbatim in the context. */
export const shareIn = (context: string, words: readonly string[]): number =>
  words.length === 0 ? 1 : words.filter((word) => context.includes(word)).length / words.length;
