/**
 * A fuzz target: a parser with rules that must hold for every input. A probe throws when a rule does not hold; refusing an input with one of our
 * error codes is fine.
 */
import { EngineError } from "@lossless/core";

export interface Target {
  /** Also the name of its folder in `corpus/`. */
  readonly name: string;
  /** Building blocks of such inputs, for the mutations. */
  readonly words: readonly string[];
  /** `folder` is empty and belongs to the probe. */
  open(folder: string): Promise<Probe>;
}

export interface Probe {
  run(input: Buffer): Promise<void>;
  close(): Promise<void>;
}

/** The result, or null for a proper refusal. Errors without one of our codes, and `internal`, are bugs. */
export async function accept<T>(work: () => T | Promise<T>): Promise<T | null> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof EngineError && error.code !== "internal") return null;
    throw error;
  }
}

/** States a rule. `details` are shown when it does not hold. */
export function hold(condition: boolean, rule: string, ...details: unknown[]): void {
  if (condition) return;
  const shown = details.map((detail) => JSON.stringify(detail)?.slice(0, 600) ?? "undefined");
  throw new Error(`${rule}${shown.length > 0 ? `: ${shown.join(" ")}` : ""}`);
}

/** No input may change the prototypes that every object shares. */
export function checkPrototypes(): void {
  for (const prototype of [Object.prototype, Array.prototype, Function.prototype]) {
    const added = Object.keys(prototype);
    for (const name of added) Reflect.deleteProperty(prototype, name);
    hold(added.length === 0, "a prototype was changed", added);
  }
}
