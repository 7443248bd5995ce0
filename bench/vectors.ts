/**
 * The cost of a vector search at 100,000 messages of 768 numbers: the exact scan, the first search of an open archive (which reads everything
 * and makes the codes) and a search by codes, in the same run; and for how many questions the first 20 are the same. Vectors are random, the
 * hardest case for codes, or clustered like those of texts. `--messages N` sets another number.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import type { Arrival } from "@lossless/core";
import { openEngine } from "lossless-claw";
import { SqliteStore } from "@lossless/sqlite";
import type { BenchResult } from "./report.ts";

const DIMENSIONS = 768;
const BATCH = 1_000;
const QUESTIONS = 100;
const TOP = 20;
const LIMIT = 100;
const CLUSTERS = 300;
const KINDS = ["random", "clustered"] as const;
type Kind = (typeof KINDS)[number];

/** Seeded numbers, approximately normally distributed. */
function makeVector(seed: number): Float32Array {
  let state = (seed * 2_654_435_761) % 2_147_483_647 || 1;
  const chance = (): number => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647 - 0.5;
  for (let warm = 0; warm < 8; warm++) chance();
  return Float32Array.from({ length: DIMENSIONS }, () => chance() + chance() + chance());
}

/** The vector of the message or question with this number. */
function vectorOf(kind: Kind, number: number): Float32Array {
  const own = makeVector(number + 1_000_000);
  if (kind === "random") return own;
  const centre = makeVector(number % CLUSTERS);
  return own.map((value, at) => 0.6 * value + (centre[at] as number));
}

export async function run(args: readonly string[]): Promise<BenchResult> {
  const at = args.indexOf("--messages");
  const messages = at < 0 ? 100_000 : Number(args[at + 1]);
  const rows: Record<string, string | number>[] = [];
  for (const kind of KINDS) rows.push(await measure(kind, messages));
  return {
    name: `search by vectors, ${messages} messages of ${DIMENSIONS} numbers, ms of processor time`,
    rows,
    notes: [
      "exact: every vector compared; first: that and making the codes; codes: median of the questions after it",
      `same: questions whose first ${TOP} are those of the exact scan`,
      "goals: share at most 0.2, same at least 0.99",
    ],
  };
}

interface Searched {
  readonly ids: readonly number[];
  readonly ms: number;
}

async function measure(kind: Kind, messages: number): Promise<Record<string, string | number>> {
  const folder = mkdtempSync(path.join(tmpdir(), "lossless-vectors-"));
  const database = path.join(folder, "lcm.db");
  try {
    const filesDir = path.join(folder, "files");
    await fill(database, filesDir, kind, messages);
    const store = new SqliteStore({ path: database, filesDir });
    const spaceId = (await store.listVectorSpaces())[0]?.spaceId ?? 0;
    const search = async (question: number, isExact: boolean): Promise<Searched> => {
      const vector = normalize(vectorOf(kind, messages + question));
      const before = process.cpuUsage();
      const found: { id: number; score: number }[] = [];
      for (let after: string | null = null; ;) {
        const scan: Awaited<ReturnType<SqliteStore["scanVectors"]>> = await store.scanVectors({
          spaceId,
          vector,
          scope: {},
          limit: LIMIT,
          after,
          isExact,
        });
        found.push(...scan.nearest);
        if (scan.next === null) break;
        after = scan.next;
      }
      const { user, system } = process.cpuUsage(before);
      const best = found.toSorted((a, b) => b.score - a.score || a.id - b.id).slice(0, TOP);
      return { ids: best.map(({ id }) => id), ms: (user + system) / 1_000 };
    };
    await search(0, true);
    const exact: Searched[] = [];
    for (let question = 0; question < QUESTIONS; question++) exact.push(await search(question, true));
    const first = await search(0, false);
    const coded: Searched[] = [];
    for (let question = 0; question < QUESTIONS; question++) coded.push(await search(question, false));
    await store.close();
    const same = coded.filter(({ ids }, question) => String(ids) === String(exact[question]?.ids)).length;
    const [exactMs, codesMs] = [median(exact.map(({ ms }) => ms)), median(coded.map(({ ms }) => ms))];
    return {
      vectors: kind,
      exact: exactMs.toFixed(0),
      first: first.ms.toFixed(0),
      codes: codesMs.toFixed(1),
      share: (codesMs / exactMs).toFixed(3),
      same: (same / QUESTIONS).toFixed(2),
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function normalize(vector: Float32Array): Float32Array {
  const length = Math.sqrt(vector.reduce((sum, value) => sum + value * value, 0));
  return vector.map((value) => value / length);
}

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;

/** An archive with a vector for each of its messages, stored without a model. */
async function fill(database: string, filesDir: string, kind: Kind, messages: number): Promise<void> {
  const engine = await openEngine({ database, thread: false });
  for (let from = 0; from < messages; from += BATCH) {
    const batch = Array.from({ length: Math.min(BATCH, messages - from) }, (_, i): Arrival => ({
      eventId: `e${from + i}`,
      message: { role: "user", content: String(from + i) },
    }));
    await engine.ingest({ session: { key: "bench", id: "bench", owner: "bench" }, messages: batch });
  }
  await engine.close();
  const store = new SqliteStore({ path: database, filesDir });
  const claim = { holder: "bench", now: Date.now(), leaseMs: 3_600_000 };
  const { spaceId = 0 } = (await store.claimVectorSpace({ model: "bench", ...claim })) ?? {};
  for (let after = 0; ;) {
    const ids = await store.listUnembedded({ spaceId, after, limit: BATCH });
    const last = ids.at(-1);
    if (last === undefined) break;
    const vectors = ids.map((messageId) => ({ messageId, vector: normalize(vectorOf(kind, messageId)) }));
    await store.storeVectors({ spaceId, ...claim, vectors });
    after = last;
  }
  await store.close();
}
