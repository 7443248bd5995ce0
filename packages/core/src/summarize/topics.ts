/**
 * What the closing line names: what is really below a summary and not in it. First what tools put out and files contained, the largest first,
 * because no summary shows that; then what was said and left out, by how it begins; then what older summaries offered.
 */
import { cutAtWord } from "./sentences.ts";
import type { Unit, UnitSet } from "./summary-units.ts";

/** Output smaller than this is told by its outcome. */
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
  // In turn, so that none of the three crowds the others out.
  for (let i = 0; i < Math.max(bulky.length, said.length, older.length); i++) {
    for (const topic of [bulky[i], said[i], older[i]]) {
      if (topic === undefined || seen.has(topic)) continue;
      seen.add(topic);
      yield topic;
    }
  }
}

/** A unit that was left out, in a few words: the target of an action, or how its sentence begins. */
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
