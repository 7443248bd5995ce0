/**
 * Leases by the server's clock. Machines that share an archive may have clocks that differ; compared with each other, a lease that has minutes left
 * would look as if it had run out, and its work would be done, and paid for, twice. So every time that a lease or a debt is compared by is moved by how
 * far this machine is from the server, measured once.
 */
import type { Store } from "@lossless/core/ports";
import type { Sql } from "./connection.ts";

type LeaseVerbs = Pick<
  Store,
  "addDebt" | "claimDebt" | "renewDebt" | "claimUpkeep" | "settleDebt" | "claimVectorSpace" | "storeVectors"
>;

const NOW = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now";
/** Closer than this is the same time: the way to the server takes a while, too. */
const SAME_MS = 2_000;

/** By how much the server is ahead. */
async function measure(sql: Sql, clock: () => number): Promise<number> {
  const sent = clock();
  const row = await sql.get<{ now: number }>(NOW);
  const ahead = Math.round((row?.now ?? sent) - (sent + clock()) / 2);
  return Math.abs(ahead) < SAME_MS ? 0 : ahead;
}

export function onServerTime(store: LeaseVerbs, sql: Sql, clock: () => number): LeaseVerbs {
  let measured: Promise<number> | null = null;
  const ahead = async (): Promise<number> => {
    measured ??= measure(sql, clock);
    try {
      return await measured;
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
