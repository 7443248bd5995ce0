/**
 * The cost of partitioning the large tables of an archive on a server: the same archive unpartitioned and with 16 partitions, measured
 * alternately, because other programs run at the same time. A turn of four messages in a known session, the listing of a search, a search with
 * its hits, a context without a prompt.
 *
 * `npm run bench -- partitions [--size 50000] [--rounds 60]`
 */
import type { Engine } from "@lossless/core";
import { findPostgres, startPostgres } from "@lossless/testkit/postgres-server.ts";
import { makeRandom } from "@lossless/testkit/random.ts";
import { analyzeQuery, buildClues, deriveMessage } from "@lossless/core/testing";
import type { Store } from "@lossless/core/ports";
import { openEngine, openStore } from "lossless-claw";
import { at, fill, OWNER, takeTexts, wordsOf } from "./postgres-search.ts";
import type { BenchResult } from "./report.ts";

const PARTITIONS = 16;
const FEW = 4;

interface Archive {
  readonly engine: Engine;
  readonly store: Store;
  readonly bytes: number;
}

const readOption = (args: readonly string[], name: string, other: number): number =>
  Number(args[args.indexOf(name) + 1] ?? 0) || other;

export async function run(args: readonly string[]): Promise<BenchResult> {
  const size = readOption(args, "--size", 50_000);
  const rounds = readOption(args, "--rounds", 60);
  const programs = await findPostgres();
  if (programs === null) throw new Error("there is no PostgreSQL here, and none could be fetched");
  const server = await startPostgres(programs);
  try {
    const texts = takeTexts(size);
    const make = async (parameters: string): Promise<Archive> => {
      const address = await server.createDatabase();
      await fill(address + parameters, texts);
      await server.query(address, "VACUUM ANALYZE");
      const engine = await openEngine({ database: address, thread: false });
      const { databaseBytes: bytes } = await engine.status();
      return { engine, store: await openStore(address, { derive: deriveMessage }), bytes };
    };
    const archives = [await make(""), await make(`&partitions=${PARTITIONS}`)] as const;
    const rows = await measureAll(archives, texts, rounds);
    for (const { engine, store } of archives) {
      await engine.close();
      await store.close();
    }
    return {
      name: `an archive of ${size} messages on a server, whole and with ${PARTITIONS} partitions, ms`,
      rows,
      tables: [
        { title: "size, MB", rows: [{ whole: megabytes(archives[0]), partitions: megabytes(archives[1]) }] },
      ],
    };
  } finally {
    await server.stop();
  }
}

const megabytes = ({ bytes }: Archive): number => Math.round(bytes / 1e6);

async function measureAll(
  archives: readonly Archive[],
  texts: readonly string[],
  rounds: number,
): Promise<Record<string, string | number>[]> {
  const random = makeRandom(11);
  const works: Readonly<
    Record<string, (archive: Archive, round: number, question: string) => Promise<unknown>>
  > = {
    "a turn": ({ engine }, round) =>
      engine.ingest({
        session: { key: "bench:3", id: "s3", owner: OWNER },
        messages: texts.slice(round * FEW, round * FEW + FEW).map((content, i) => ({
          eventId: `turn ${round} ${i}`,
          message: { role: i % 2 === 0 ? "user" : "assistant", content },
        })),
      }),
    "listing for search": ({ store }, _round, question) =>
      store.findClues({
        kind: "message",
        clues: buildClues(analyzeQuery(question)).map(({ sought }) => sought),
        scope: { owner: OWNER },
        limit: 20_000,
      }),
    search: ({ engine }, _round, pattern) =>
      engine.grep({ pattern, mode: "full_text", owner: OWNER, allConversations: true }),
    "a context": ({ engine }) =>
      engine.assemble({ sessionKey: "bench:3", owner: OWNER, budgetTokens: 30_000 }),
  };
  const rows: Record<string, string | number>[] = [];
  for (const [what, work] of Object.entries(works)) {
    const times = archives.map((): number[] => []);
    for (let round = 0; round < rounds; round++) {
      const words = wordsOf(random.pick(texts));
      const question = Array.from({ length: 6 }, () => random.pick(words)).join(" ");
      for (const [i, archive] of archives.entries()) {
        const started = performance.now();
        await work(archive, round, question);
        times[i]?.push(performance.now() - started);
      }
    }
    const [whole = [], divided = []] = times.map((list) => list.toSorted((a, b) => a - b));
    rows.push({
      what,
      "whole p50": at(whole, 0.5),
      "whole p95": at(whole, 0.95),
      "partitions p50": at(divided, 0.5),
      "partitions p95": at(divided, 0.95),
      "p50 ratio": Number((at(divided, 0.5) / at(whole, 0.5)).toFixed(2)),
    });
  }
  return rows;
}
