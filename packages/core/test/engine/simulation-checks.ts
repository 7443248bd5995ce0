/**
 * What must hold after every step of a simulation: another process reads every message in each of its versions, none is stored twice, the
 * archive proves whole, and every context fits, stands for everything once and is one that no provider refuses.
 */
import { listRefusals } from "@lossless/testkit/provider-rules.ts";

import { arrivalBytes } from "../../src/engine/ingest.ts";
import { PROVIDERS } from "../../src/index.ts";
import type { AssembledContext, AssembleRequest, Engine } from "../../src/index.ts";
import type { ArchiveTables } from "./archive-tables.ts";
import { ArchiveView, findFaults, findFormFaults } from "./context-checks.ts";
import type { Ground } from "./grounds.ts";
import type { SimulatedEvent, Talk } from "./simulation.ts";

interface History {
  /** Of another process. */
  readonly engine: Engine;
  readonly tables: ArchiveTables;
  readonly events: readonly SimulatedEvent[];
  readonly talks: readonly Talk[];
}

export async function findHistoryFaults({ engine, tables, events, talks }: History): Promise<string[]> {
  const faults = countRows(tables, events);
  for (const { session, copied } of talks) {
    const own = events.filter((event) => event.session.id === session.id);
    const eventIds = [...own, ...copied.keys()].map(({ eventId }) => eventId);
    const names = { owner: session.owner, sessionId: session.id };
    const known = new Set(await engine.knownEvents({ ...names, eventIds }));
    for (const eventId of eventIds)
      if (!known.has(eventId)) faults.push(`${eventId} of ${session.id} is not known`);
    const versions = own
      .filter(({ isForgotten }) => !isForgotten)
      .flatMap((event) =>
        event.versions.map((arrival) => ({ eventId: event.eventId, bytes: arrivalBytes(arrival) })),
      );
    for (const eventId of await engine.findUnproven({ ...names, events: versions }))
      faults.push(`a version of ${eventId} of ${session.id} cannot be read`);
  }
  return faults;
}

function countRows({ messages }: ArchiveTables, events: readonly SimulatedEvent[]): string[] {
  const faults: string[] = [];
  const first = messages.filter(({ revises }) => revises === null).length;
  if (first !== events.length) faults.push(`${events.length} events came in, ${first} are stored`);
  const revisions = events.reduce((sum, { versions }) => sum + versions.length - 1, 0);
  if (messages.length - first !== revisions)
    faults.push(`${revisions} revisions came in, ${messages.length - first} are stored`);
  return faults;
}

export async function findArchiveFaults(engine: Engine): Promise<string[]> {
  const { problems } = await engine.verify();
  return problems.map(({ message }) => message);
}

type Ask = AssembleRequest & { readonly conversationId: number };

export async function findContextFaults(
  engine: Engine,
  ground: Ground,
  asks: readonly Ask[],
): Promise<string[]> {
  const faults: string[] = [];
  for (const ask of asks) {
    const { context, tables } = await assembleAtRest(engine, ground, ask);
    const found = context === null ? ["no context"] : check(context, tables, ask.conversationId);
    faults.push(
      ...found.map((fault) => `conversation ${ask.conversationId} for ${ask.budgetTokens}: ${fault}`),
    );
  }
  return faults;
}

/** A fork shows rows of its parent, too, which the check of the cover does not know. */
function check(context: AssembledContext, tables: ArchiveTables, conversationId: number): string[] {
  const refusals =
    context.messages.length === 0
      ? []
      : PROVIDERS.flatMap((provider) =>
          listRefusals(provider, context.messages).map((refusal) => `${provider} refuses ${refusal}`),
        );
  const rest = tables.forks.has(conversationId)
    ? findFormFaults(context)
    : findFaults(context, new ArchiveView(tables, conversationId));
  return [...refusals, ...rest];
}

/** The context of a state of the archive that work in the background did not change meanwhile. */
async function assembleAtRest(
  engine: Engine,
  ground: Ground,
  ask: Ask,
): Promise<{ context: AssembledContext | null; tables: ArchiveTables }> {
  for (let before = await ground.readTables(); ;) {
    const context = await engine.assemble({ ...ask, checkGrammars: true });
    const tables = await ground.readTables();
    if (JSON.stringify(tables.items) === JSON.stringify(before.items)) return { context, tables };
    before = tables;
  }
}
