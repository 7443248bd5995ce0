/**
 * Labels that help a person find a conversation again: a name, tags, a pin, and whether lists omit it. Nothing else depends on them: an
 * unlisted conversation is searched, folded and exported like any other.
 */
import { EngineError } from "./errors.ts";

export interface Labels {
  /** Shown instead of the agent's own title. */
  readonly name: string | null;
  readonly tags: readonly string[];
  /** When it was pinned; lists show it first. */
  readonly pinnedAt: number | null;
  /** Since when lists omit it. */
  readonly unlistedAt: number | null;
}

/** The labels that a request changes; the rest stays as it is. */
export interface LabelUpdate {
  /** Null removes the name. */
  readonly name?: string | null | undefined;
  readonly addTags?: readonly string[] | undefined;
  readonly removeTags?: readonly string[] | undefined;
  readonly pinned?: boolean | undefined;
  readonly unlisted?: boolean | undefined;
}

export const NO_LABELS: Labels = { name: null, tags: [], pinnedAt: null, unlistedAt: null };

/** Longer names are cut: a list has no room for them. */
const MAX_NAME_LENGTH = 200;
const MAX_TAG_LENGTH = 50;
const MAX_TAGS = 50;

/** On one line, trimmed, and without control characters that could steer a terminal. */
const tidy = (text: string, length: number): string =>
  text
    .replaceAll(/[\s\p{Cc}]+/gu, " ")
    .trim()
    .slice(0, length)
    .toWellFormed();

/** The labels after a request. Tags are sorted, in lower case, and unique. */
export function updateLabels(known: Labels, update: LabelUpdate, now: number): Labels {
  const { name = known.name, addTags = [], removeTags = [], pinned, unlisted } = update;
  const toTag = (text: string): string => tidy(text, MAX_TAG_LENGTH).toLowerCase();
  const removed = new Set(removeTags.map(toTag));
  const tags = new Set([...known.tags.filter((tag) => !removed.has(tag)), ...addTags.map(toTag)]);
  tags.delete("");
  // An archive of others may have more.
  if (tags.size > Math.max(MAX_TAGS, known.tags.length))
    throw new EngineError("usage", `cannot add tags: a conversation has at most ${MAX_TAGS}`, {
      hint: "remove some first",
    });
  return {
    name: name === null ? null : tidy(name, MAX_NAME_LENGTH) || null,
    tags: [...tags].toSorted(),
    pinnedAt: switchAt(known.pinnedAt, pinned, now),
    unlistedAt: switchAt(known.unlistedAt, unlisted, now),
  };
}

function switchAt(known: number | null, wanted: boolean | undefined, now: number): number | null {
  if (wanted === undefined) return known;
  return wanted ? (known ?? now) : null;
}
