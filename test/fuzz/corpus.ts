/** The corpus of inputs: a folder for each target. Named inputs were written by hand; those found by a search are named by their hash. */
import { hash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const CORPUS = join(import.meta.dirname, "corpus");
const FOUND = /^[0-9a-f]{12}$/;

export interface Kept {
  readonly name: string;
  readonly input: Buffer;
}

export const nameInput = (input: Buffer): string => hash("sha256", input).slice(0, 12);

export function readCorpus(target: string): Kept[] {
  const folder = join(CORPUS, target);
  return readdirSync(folder)
    .sort()
    .map((name) => ({ name, input: readFileSync(join(folder, name)) }));
}

/** The smallest last, so that inputs written by hand come first and are kept. */
export const inOrderOfWorth = (kept: readonly Kept[]): Kept[] =>
  kept.toSorted(
    (a, b) => Number(FOUND.test(a.name)) - Number(FOUND.test(b.name)) || a.input.length - b.input.length,
  );

/** Keeps only the inputs written by hand, and `inputs`, in the folder. */
export function writeCorpus(target: string, inputs: readonly Buffer[]): void {
  const folder = join(CORPUS, target);
  mkdirSync(folder, { recursive: true });
  const names = new Map(inputs.map((input) => [nameInput(input), input]));
  for (const { name } of readCorpus(target))
    if (FOUND.test(name) && !names.has(name)) rmSync(join(folder, name));
  const known = new Set(readCorpus(target).map(({ input }) => nameInput(input)));
  for (const [name, input] of names) if (!known.has(name)) writeFileSync(join(folder, name), input);
}
