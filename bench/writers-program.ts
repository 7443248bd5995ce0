/**
 * One writer of `writers.ts`, as a process of its own: `engine` stores turns like every program, `bare` sends the precomputed rows of such turns
 * as fast as a client can: lock the head, insert in one batch, commit. It reports when it is ready, starts on command, and reports how many
 * turns it has stored.
 */
import { once } from "node:events";
import type { Arrival } from "@lossless/core";
import type { Row, TableName, Values } from "@lossless/core/ports";
import { BareClient, renderPart, statement } from "@lossless/postgres/testing";
import { openEngine } from "lossless-claw";

const [way = "", address = "", name = "", warmUpMs = "0", measuredMs = "0"] = process.argv.slice(2);
const session = { key: `bench:${name}`, id: `session ${name}`, owner: "bench" };
const POSITION_STEP = 2 ** 20;
const WORDS = "archive budget cache deploy error folder graph handler index journal kernel ledger".split(" ");

/** Texts of some words, composed once, because composing them is not the work of the engine. */
const texts = new Map<string, string>();

function say(count: number, from: number): string {
  const key = `${count} ${from % WORDS.length}`;
  let text = texts.get(key);
  if (text === undefined) {
    text = Array.from({ length: count }, (_, i) => WORDS[(from * 7 + i * 5) % WORDS.length]).join(" ");
    texts.set(key, text);
  }
  return text;
}

/** Four messages, about as long as those of an agent. */
function makeTurn(turn: number): Arrival[] {
  const id = `call ${turn}`;
  const messages = [
    { role: "user", content: say(30, turn) },
    {
      role: "assistant",
      content: [
        { type: "text", text: say(20, turn + 1) },
        { type: "toolCall", id, name: "read_file", arguments: { path: "a.ts" } },
      ],
    },
    { role: "toolResult", toolCallId: id, content: [{ type: "text", text: say(120, turn + 2) }] },
    { role: "assistant", content: say(60, turn + 3) },
  ];
  return messages.map((message, i) => ({
    eventId: `${name} ${turn} ${i}`,
    position: (turn * messages.length + i + 1) * POSITION_STEP,
    createdAt: 1_700_000_000_000 + turn * 60_000 + i,
    message,
  }));
}

/** Stores turns until the time is over, and reports those after the warm-up, with the processor time that this process used for them. */
async function repeat(store: (turn: number) => Promise<unknown>, from: number): Promise<void> {
  process.send?.("ready");
  await once(process, "message");
  let turn = from;
  const storeFor = async (milliseconds: number): Promise<number> => {
    const first = turn;
    for (const end = performance.now() + milliseconds; performance.now() < end; turn++) await store(turn);
    return turn - first;
  };
  await storeFor(Number(warmUpMs));
  const before = process.cpuUsage();
  const turns = await storeFor(Number(measuredMs));
  const { user, system } = process.cpuUsage(before);
  process.send?.({ turns, cpuMs: (user + system) / 1_000 });
}

async function writeByEngine(): Promise<void> {
  const engine = await openEngine({ database: address, thread: false });
  const store = (turn: number): Promise<unknown> => engine.ingest({ session, messages: makeTurn(turn) });
  await store(0);
  await store(1);
  await repeat(store, 2);
  await engine.close();
}

/** A direct connection to the server. */
async function connectBare(): Promise<BareClient> {
  const client = new BareClient(address);
  await client.connect();
  return client;
}

/** The rows of a turn that the engine has stored, under other numbers. */
class Template {
  readonly #rows = new Map<TableName, Values[]>();
  readonly #head: Values;

  constructor(head: Values, rows: ReadonlyMap<TableName, Values[]>) {
    this.#head = head;
    this.#rows = new Map(rows);
  }

  /** How many messages a turn has. */
  get size(): number {
    return this.#rows.get("messages")?.length ?? 0;
  }

  render(turn: number, ids: readonly number[]): ReturnType<typeof renderPart> {
    const old = (this.#rows.get("messages") ?? []).map((row) => Number(row["message_id"]));
    const step = turn * this.size;
    const move = (row: Values): Values => ({
      ...row,
      ...("message_id" in row ? { message_id: ids[old.indexOf(Number(row["message_id"]))] ?? 0 } : {}),
      ...("seq" in row ? { seq: Number(row["seq"]) + step } : {}),
      ...("event_id" in row ? { event_id: `bare ${String(row["event_id"])} ${turn}` } : {}),
      ...Object.fromEntries(
        ["position", "start_pos", "end_pos"].flatMap((column) =>
          column in row ? [[column, Number(row[column]) + step * POSITION_STEP]] : [],
        ),
      ),
    });
    const inserts = new Map([...this.#rows].map(([table, rows]) => [table, rows.map(move)]));
    const key = { conversation_id: this.#head["conversation_id"] ?? 0 };
    const set = {
      head_seq: Number(this.#head["head_seq"]) + step,
      message_count: Number(this.#head["message_count"]) + step,
      head_chain: this.#head["head_chain"] ?? null,
      stored_at: turn,
    };
    const updates = new Map([["conversations" as const, new Map([["", { key, set }]])]]);
    return renderPart({ deletes: new Map(), inserts, updates });
  }
}

async function readTemplate(client: BareClient): Promise<Template> {
  const [head = {}] = (await client.send("SELECT * FROM conversations WHERE session_key = $1", [session.key]))
    .rows;
  const id = head["conversation_id"];
  const { rows: messages } = await client.send(
    "SELECT * FROM messages WHERE conversation_id = $1 ORDER BY seq DESC LIMIT 4",
    [id],
  );
  const ids = messages.map((row) => row["message_id"]);
  const read = async (
    table: TableName,
    column: keyof Row<"message_parts">,
  ): Promise<[TableName, Values[]]> => [
    table,
    (await client.send(`SELECT * FROM ${table} WHERE ${column} = ANY($1)`, [ids])).rows,
  ];
  return new Template(
    head,
    new Map([
      ["messages", messages.toReversed()],
      await read("event_ids", "message_id"),
      await read("message_parts", "message_id"),
      await read("context_items", "message_id"),
    ]),
  );
}

async function writeBare(): Promise<void> {
  const engine = await openEngine({ database: address, thread: false });
  for (const turn of [0, 1]) await engine.ingest({ session, messages: makeTurn(turn) });
  await engine.close();
  const client = await connectBare();
  const template = await readTemplate(client);
  const lock = statement("SELECT head_seq FROM conversations WHERE session_key = $1 FOR UPDATE", session.key);
  const number = `SELECT nextval('messages_ids') AS id FROM generate_series(1, ${template.size})`;
  await repeat(async (turn) => {
    const [, , { rows }] = await Promise.all([
      client.send("BEGIN"),
      client.send(lock.text, lock.values),
      client.send(number),
    ]);
    const ids = rows.map((row) => Number(row["id"]));
    const statements = template.render(turn - 1, ids);
    await Promise.all([
      ...statements.map(({ text, values }) => client.send(text, values)),
      client.send("COMMIT"),
    ]);
  }, 2);
  await client.end();
}

await (way === "engine" ? writeByEngine() : writeBare());
process.disconnect();
