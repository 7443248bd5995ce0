/**
 * What the closing line names: content below a summary that is not in it. First tool output and file contents, the largest first, because
 * no summary shows those; then sentences that were left out, by how they begin; then topics of older summaries.
 */
import { cutAtWord } from "./sentences.ts";
import type { Unit, UnitSet } from "./summary-units.ts";

/** Smaller output is represented by its outcome. */
const MIN_BULK = 400;
const TOPIC_CHARS = 56;

export function* listTopics({ units, topics }: UnitSet, dropped: readonly Unit[]): Generator<string> {
  const bulky = units
    .filter(({ bulk, label }) => bulk >= MIN_BULK && label !== "")
    .sort((a, b) => b.bulk - a.bulk || a.order - b.order)
    .map(({ label }) => label);
  const said = dropped.map(topicOf).filter((topic) => topic !== null);
  const older = topics.toReversed();
  const seen = new Set<string>();
  // In turn, so that none of the three crowds out the others.
  for (let i = 0; i < Math.max(bulky.length, said.length, older.length); i++) {
    for (const topic of [bulky[i], said[i], older[i]]) {
      if (topic === undefined || seen.has(topic)) continue;
      seen.add(topic);
      yield topic;
    }
  }
}

/** A unit that was left out, in a few words: the target of an action, or the beginning of its sentence. */
function topicOf(unit: Unit): string | null {
  if (unit.worth < 1) return null;
  if (unit.label !== "") return unit.label;
  if (unit.kind === "action") return null;
  const clause = (/^.{24,}?[,;:.!?，。；：！？](?=\s|$)/.exec(unit.head)?.[0] ?? unit.head).replace(
    /[\s,;:.!?，。；：！？]+$/,
    "",
  );
  return clause.length < 12 && !/[\u3040-\u9fff]/.test(clause)
    ? null
    : cutAtWord(clause.replaceAll(";", ","), TOPIC_CHARS);
}
