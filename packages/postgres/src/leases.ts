/**
 * Leases by the server's clock. Machines that share an archive may have different clocks; without correction, a lease with minutes left could
 * look expired, and its work would be done, and paid for, twice. So every time used for a lease or a debt is corrected by the offset of this
 * machine from the server. A clock may be set while the program runs, or be wrong after a suspend, so the offset is measured again now and then,
 * and at once when the clock has jumped.
 */
import type { Store } from "@lossless/core/ports";
import type { Sql } from "./connection.ts";

type LeaseVerbs = Pick<
  Store,
  "addDebt" | "claimDebt" | "renewDebt" | "claimUpkeep" | "settleDebt" | "claimVectorSpace" | "storeVectors"
>;

const NOW = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now";
/** Closer than this counts as equal: the round trip to the server takes time, too. */
const SAME_MS = 2_000;
/** How long a measurement is valid, by the measured clock: one that has jumped further, or back, is measured at once. */
const BELIEVED_MS = 60_000;

interface Measured {
  readonly at: number;
  readonly ahead: Promise<number>;
}

/** By how much the server is ahead. */
async function measure(sql: Sql, clock: () => number): Promise<number> {
  const sent = clock();
  const row = await sql.get<{ now: number }>(NOW);
  const ahead = Math.round((row?.now ?? sent) - (sent + clock()) / 2);
  return Math.abs(ahead) < SAME_MS ? 0 : ahead;
}

export function onServerTime(store: LeaseVerbs, sql: Sql, clock: () => number): LeaseVerbs {
  let measured: Measured | null = null;
  const ahead = async (): Promise<number> => {
    const age = measured === null ? null : clock() - measured.at;
    if (measured === null || age === null || age < 0 || age > BELIEVED_MS)
      measured = { at: clock(), ahead: measure(sql, clock) };
    try {
      return await measured.ahead;
    } catch (error) {
      measured = null;
      throw error;
    }
  };
  const move = async <R extends { readonly now: number }>(request: R): Promise<R> => ({
    ...request,
    now: request.now + (await ahead()),
  });
  return {
    addDebt: async (request) => store.addDebt(await move(request)),
    claimDebt: async (request) => store.claimDebt(await move(request)),
    renewDebt: async (request) => store.renewDebt({ ...request, until: request.until + (await ahead()) }),
    claimUpkeep: async (request) => store.claimUpkeep(await move(request)),
    settleDebt: async (request) => {
      const retryAt = request.retryAt === null ? null : request.retryAt + (await ahead());
      await store.settleDebt({ ...(await move(request)), retryAt });
    },
    claimVectorSpace: async (request) => store.claimVectorSpace(await move(request)),
    storeVectors: async (request) => store.storeVectors(await move(request)),
  };
}
