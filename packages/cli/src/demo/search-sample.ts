/** The demo's searches: a decision, an identifier, Chinese, and a Spanish question. */
import { toOneLine } from "@lossless/core/doors";
import { renderSnippet } from "../commands/recall/search.ts";
import { style } from "../style.ts";
import { COLUMNS } from "./tour.ts";
import type { Tour } from "./tour.ts";

const SEARCHES: readonly { readonly query: string; readonly says: string }[] = [
  { query: "back-off cap carrier ban", says: "a decision, in plain words" },
  { query: "reorderPoint", says: "an identifier, in code, logs and talk" },
  { query: "鸟巢蕨 报价", says: "Chinese" },
  { query: "¿puedo reiniciar la impresora?", says: "a question in Spanish" },
];

const SHOWN = 2;

export async function searchSample(tour: Tour): Promise<void> {
  await tour.withArchive(async (engine) => {
    // Loads what every search needs, which would otherwise count in the first one's time.
    await engine.search({ query: "warm", limit: 1 });
    for (const [index, { query, says }] of SEARCHES.entries()) {
      const startedAt = performance.now();
      const { hits, total } = await engine.search({ query, limit: SHOWN });
      const tookMs = performance.now() - startedAt;
      if (index > 0) tour.say("");
      tour.tell(`${style.title(query)}  ${style.faint(`${says}: ${total} found, ${tookMs.toFixed(0)} ms`)}`);
      for (const hit of hits) {
        tour.tell(`  ${style.name(hit.id)}  ${style.faint(toOneLine(hit.role))}`);
        for (const line of renderSnippet(hit, COLUMNS - 7)) tour.tell(`    ${line}`);
      }
    }
  });
}
