/**
 * The connections to one server: statements, transactions with retries, and the server's errors turned into ours. Statements that are sent
 * before awaiting an answer are pipelined in one round trip.
 *
 * Invariants: every write happens inside `write`, under a lock or serializable, and reads the version of the schema in the same transaction, so
 * that no program writes to a schema that it does not know. A read of several statements happens inside `read`, on one snapshot of the archive.
 * A transaction whose COMMIT was answered with anything other than COMMIT has failed.
 */
import type { Duplex } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { EngineError, must } from "@lossless/core/adapter";
import type { ErrorCode, NextStep } from "@lossless/core/adapter";
import pg from "pg";
import { parseServerAddress } from "./address.ts";
import type { ServerAddress } from "./address.ts";
import { Batch } from "./batch.ts";
import type { Answer, BatchedStatement } from "./batch.ts";
import { findPassword } from "./password-file.ts";
import type { Login } from "./password-file.ts";
import { SQL_TYPES, toParameter } from "./sql-values.ts";
import type { SqlValue } from "./sql-values.ts";

export interface Statement {
  readonly text: string;
  readonly values: readonly SqlValue[];
}

/** Where statements are sent: to any connection, or to that of a transaction. */
export interface Sql {
  all<T>(text: string, ...values: SqlValue[]): Promise<T[]>;
  get<T>(text: string, ...values: SqlValue[]): Promise<T | undefined>;
  /** Several statements in one round trip, in order; returns the rows of each. */
  ask<T>(statements: readonly Statement[]): Promise<T[][]>;
  /** Reads on one snapshot of the archive. Inside a transaction, uses that transaction. `work` may run again after a lost connection. */
  read<T>(work: (sql: Sql) => Promise<T>): Promise<T>;
  /** One transaction; all or nothing. Inside a writing one, uses that transaction. `work` runs again when the server requires it. */
  write<T>(work: (sql: WriteSql) => Promise<T>, options?: WriteOptions): Promise<T>;
}

/** A transaction that writes. */
export interface WriteSql extends Sql {
  /** Runs a statement and returns how many rows it changed. */
  change(text: string, ...values: SqlValue[]): Promise<number>;
  /**
   * Sends statements without awaiting them; one without values may be several commands. They are pipelined with the next statement, and if one
   * fails, so does the transaction.
   */
  post(...statements: readonly Statement[]): void;
  /** Runs last, before the COMMIT. */
  beforeCommit(work: () => Promise<void>): void;
  /** Runs after the transaction has been committed; never if it fails. */
  afterCommit(work: () => void): void;
}

export interface WriteOptions {
  /** `work` recognises its own effects when it runs again: it may, after an unanswered COMMIT or a key that was taken meanwhile. */
  readonly isRepeatable?: boolean;
  /** `work` reads without a lock: the server guarantees the same outcome as if it had run alone. */
  readonly isSerializable?: boolean;
  /** Between its statements `work` reads from elsewhere, which may exceed the usual limit of a transaction. */
  readonly isPatient?: boolean;
  /** Whether this failure of `work` is also a reason to run it again. */
  readonly isConflict?: (error: unknown) => boolean;
}

export interface ConnectionOptions {
  readonly address: string;
  readonly readOnly: boolean;
  /** How long a call retries after conflicts, or a lost server. */
  readonly busyLimitMs?: number | undefined;
  /** How long unused connections are kept; one is kept permanently. */
  readonly idleLimitMs?: number | undefined;
}

/** A statement as a value. */
export const statement = (text: string, ...values: SqlValue[]): Statement => ({ text, values });

const DEFAULT_BUSY_LIMIT_MS = 60_000;
/**
 * A restarting server is back sooner; a missing one must not block a chat. A caller with a shorter lock timeout also waits less for a server.
 */
const RECONNECT_LIMIT_MS = 10_000;
/** The minimum time that a caller in a hurry waits for a connection. */
const SHORTEST_CONNECT_MS = 2_000;
/** After this time without an answer another connection probes the server. */
const SILENCE_MS = { min: 1_000, max: 5_000 } as const;
const LONGEST_PAUSE_MS = 500;
const DEFAULT_IDLE_LIMIT_MS = 10_000;
/**
 * A chat pauses for minutes, and a login costs more round trips than a turn. With keepalives this frequent, a network drops no connection, and a
 * dead one is noticed.
 */
const KEPT_CONNECTIONS = 1;
const KEEP_ALIVE_MS = 30_000;
const READ_VERSION = "SELECT version FROM archive_schema";
/**
 * Since when the server has lost nothing: it was started, or recovered from a crash of one of its processes, which also resets its statistics.
 */
const SINCE =
  "concat_ws(' ', extract(epoch FROM pg_postmaster_start_time()), extract(epoch FROM pg_stat_get_bgwriter_stat_reset_time()))";
/** With the identity of the transaction, valid as long as the server loses nothing. */
const READ_IDENTITY = `SELECT version, pg_current_xact_id()::text AS xid, ${SINCE} AS since FROM archive_schema`;
/** A server that has lost transactions may not have reached this transaction's number yet, or have given it to another. */
const READ_FATE = `SELECT CASE WHEN ${SINCE} = $2 THEN pg_xact_status($1::xid8) END AS status, ${SINCE} AS since`;
/** Until the server notices that its client is gone, or commits. */
const FATE_PAUSE_MS = 50;
/**
 * A COMMIT lost in the network never arrives, and the server may wait for it for hours: between two batches, or for the rest of one, when it
 * is not idle by its own account and no time limit applies. Whichever comes first, the outcome is decided then.
 */
const END_WAITING =
  "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_xid = $1::xid8::xid AND wait_event = 'ClientRead'";
/** Before its COMMIT was sent, a transaction without its client can only hold locks, and the next attempt would wait for them. */
const END_ORPHAN = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_xid = $1::xid8::xid AND ${SINCE} = $2`;
/**
 * How long a transaction may be idle while holding locks. A suspended machine, or one without network, would hold them for hours; callers that
 * wait for a lock wait longer than this.
 */
const IDLE_LIMIT_MS = 30_000;
/** Statements here take milliseconds; the planner expects much work on a partitioned table and would first spend a second on JIT compilation. */
const NO_COMPILING = "SET LOCAL jit = off";

export class Connection implements Sql {
  readonly name: string;
  readonly readOnly: boolean;
  readonly #address: ServerAddress;
  readonly #busyLimitMs: number;
  readonly #pool: pg.Pool;
  readonly #turns: Turns;
  readonly #silence: Silence;
  /** The newest schema that this program knows; null until the database has proven to be an archive. */
  #newestSchema: number | null = null;
  #isOpen = true;
  /** Set after the first connection: from then on the program waits for a lost server. */
  #wasReached = false;
  readonly #names = new Map<string, string>();
  /** Awaited round trips, for tests. */
  trips = 0;
  statements = 0;
  /** Transactions that were restarted. */
  retries = 0;

  constructor({ address, readOnly, busyLimitMs, idleLimitMs }: ConnectionOptions) {
    this.#address = parseServerAddress(address);
    this.name = this.#address.name;
    this.readOnly = readOnly;
    this.#busyLimitMs = busyLimitMs ?? DEFAULT_BUSY_LIMIT_MS;
    this.#turns = new Turns(this.#address.maxConnections);
    const { min, max } = SILENCE_MS;
    this.#silence = new Silence(Math.max(min, Math.min(max, this.#busyLimitMs)), () => this.#probe());
    this.#pool = new pg.Pool({
      connectionString: this.#address.connectionString,
      max: this.#address.maxConnections,
      connectionTimeoutMillis: this.#connectTimeoutMs,
      min: KEPT_CONNECTIONS,
      idleTimeoutMillis: idleLimitMs ?? DEFAULT_IDLE_LIMIT_MS,
      keepAlive: true,
      keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
      // A kept connection must not keep a program alive that does not close it.
      allowExitOnIdle: true,
      types: SQL_TYPES,
      Client: ClosingClient,
      pipeline: true,
      fallback_application_name: "lossless-claw",
    });
    // A connection that dies while idle leaves the pool; a user of one gets the error with its answer.
    this.#pool.on("error", () => undefined);
  }

  async all<T>(text: string, ...values: SqlValue[]): Promise<T[]> {
    const [rows = []] = await this.ask<T>([{ text, values }]);
    return rows;
  }

  async get<T>(text: string, ...values: SqlValue[]): Promise<T | undefined> {
    const [row] = await this.all<T>(text, ...values);
    return row;
  }

  /** One statement has a consistent snapshot by itself; several need a transaction for that. A command may not be allowed in one. */
  ask<T>(statements: readonly Statement[]): Promise<T[][]> {
    const [only] = statements;
    if (statements.length === 1 && only && only.values.length > 0) return this.#askOne<T>(only);
    if (statements.length > 1) return this.read((sql) => sql.ask(statements));
    return this.#attempt("read", { isRepeatable: true }, () =>
      this.#withClient(async (client) => {
        const answers = await Promise.all(statements.map((one) => client.query(one)));
        return answers.map(({ rows }) => rows as T[]);
      }),
    );
  }

  /** A transaction, because that limits its time; begin and end are pipelined with it, so that it takes no more round trips. */
  #askOne<T>(one: Statement): Promise<T[][]> {
    return this.#attempt("read", { isRepeatable: true }, () =>
      this.#withClient(async (client) => {
        const [, { rows }] = await Promise.all([
          client.command(this.#beginRead),
          client.query(one),
          client.command("COMMIT"),
        ]);
        return [rows as T[]];
      }),
    );
  }

  read<T>(work: (sql: Sql) => Promise<T>): Promise<T> {
    return this.#attempt("read", { isRepeatable: true }, () => this.#readOnce(work));
  }

  /** Like {@link read} for work that must not run twice. */
  readThroughout<T>(work: (sql: Sql) => Promise<T>): Promise<T> {
    return this.#attempt("read", { isOnce: true }, () => this.#readOnce(work));
  }

  write<T>(work: (sql: WriteSql) => Promise<T>, options: WriteOptions = {}): Promise<T> {
    return this.#attempt("write", options, () => this.#writeOnce(work, options));
  }

  /** Like {@link write} for work that must not run twice. */
  writeThroughout<T>(work: (sql: WriteSql) => Promise<T>): Promise<T> {
    return this.#attempt("write", { isOnce: true }, () => this.#writeOnce(work, { isPatient: true }));
  }

  /** From now on, a newer schema is an error: another program may upgrade the database while this one has it open. */
  refuseNewerThan(version: number): void {
    this.#newestSchema = version;
  }

  checkSchemaVersion(version: number, known = this.#newestSchema): void {
    if (known === null || version <= known) return;
    throw new EngineError(
      "database_newer",
      `cannot use the database ${this.name}: it has schema version ${version}, this program knows up to ${known}`,
      {
        hint: "close this program and install the newer version of lossless-claw; the database was left as it is",
      },
    );
  }

  async close(): Promise<void> {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    await this.#pool.end();
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** See {@link ServerAddress.partitions}. */
  get partitions(): number {
    return this.#address.partitions;
  }

  get #beginRead(): string {
    return `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL statement_timeout = ${this.#address.statementTimeoutMs}; ${NO_COMPILING}`;
  }

  async #readOnce<T>(work: (sql: Sql) => Promise<T>): Promise<T> {
    return this.#withClient(async (client) => {
      const transaction = new Transaction(client, this.#beginRead, null);
      const result = await transaction.run(work);
      transaction.close();
      return result;
    });
  }

  async #writeOnce<T>(
    work: (sql: WriteSql) => Promise<T>,
    { isSerializable = false, isPatient = false }: WriteOptions,
  ): Promise<T> {
    if (this.readOnly)
      throw new EngineError(
        "database_unreadable",
        `cannot write the database ${this.name}: it was opened read-only`,
      );
    const { lockTimeoutMs, statementTimeoutMs } = this.#address;
    const isolation = isSerializable ? "SERIALIZABLE" : "READ COMMITTED";
    const limits = {
      lock_timeout: lockTimeoutMs,
      statement_timeout: statementTimeoutMs,
      idle_in_transaction_session_timeout: isPatient ? statementTimeoutMs : IDLE_LIMIT_MS,
    };
    const begin = [
      `BEGIN ISOLATION LEVEL ${isolation}`,
      ...Object.entries(limits).map(([name, ms]) => `SET LOCAL ${name} = ${ms}`),
      NO_COMPILING,
    ].join("; ");
    const isChecked = this.#newestSchema !== null;
    const check = (version: number): void => this.checkSchemaVersion(version);
    const outcome = await this.#withClient(async (client) => {
      const transaction = new Transaction(client, begin, isChecked ? check : null);
      try {
        const result = await transaction.run(work);
        const failure = await transaction.commit().catch((error: unknown) => error);
        return { kind: "ended", transaction, result, failure } as const;
      } catch (failure) {
        return { kind: "failed", transaction, failure } as const;
      }
    });
    const { transaction, failure } = outcome;
    if (outcome.kind === "failed") {
      if (isLost(failure)) await this.#endOrphan(transaction);
      throw failure;
    }
    if (failure !== undefined) await this.#checkFate(transaction, failure);
    for (const next of transaction.follow) next();
    return outcome.result;
  }

  async #endOrphan({ identity }: Transaction): Promise<void> {
    if (identity === null || !this.#isOpen) return;
    const end = statement(END_ORPHAN, identity.xid, identity.since);
    await this.#attempt("write", { isRepeatable: true }, () =>
      this.#withClient((client) => client.query(end)),
    );
  }

  /** Checks the outcome of a transaction whose COMMIT was not answered. Throws unless it was committed. */
  async #checkFate({ identity }: Transaction, failure: unknown): Promise<void> {
    if (!(failure instanceof UnansweredCommit) || identity === null) throw failure;
    const { status, since } = await this.#attempt("write", { isRepeatable: true }, () =>
      this.#readFate(identity),
    );
    if (since !== identity.since) throw failure;
    if (status !== "committed") throw failure.cause;
  }

  async #readFate({ xid, since }: Identity): Promise<Fate> {
    for (;;) {
      const { rows } = await this.#withClient((client) => client.query(statement(READ_FATE, xid, since)));
      const fate = rows[0] as Fate;
      if (fate.status !== "in progress") return fate;
      await this.#withClient((client) => client.query(statement(END_WAITING, xid)));
      await sleep(FATE_PAUSE_MS);
    }
  }

  async #withClient<T>(work: (client: Client) => Promise<T>): Promise<T> {
    if (!this.#isOpen)
      throw new EngineError("database_closed", `cannot use the database ${this.name}: it is closed`);
    const release = await this.#turns.take();
    let client: Client | null = null;
    try {
      client = new Client(await this.#connect(), {
        counter: this,
        names: this.#address.isNamed ? this.#names : null,
        silence: this.#silence,
      });
      this.#wasReached = true;
      return await work(client);
    } finally {
      // Nobody awaits what was sent last except the next user of the connection.
      if (client === null) release();
      else void client.release().finally(release);
    }
  }

  /** 0 means no limit, as in libpq. */
  get #connectTimeoutMs(): number {
    const asked = this.#address.connectTimeoutMs;
    const most = Math.max(SHORTEST_CONNECT_MS, this.#busyLimitMs);
    return asked === 0 ? asked : Math.min(asked, most);
  }

  /** Whether the server responds at all. */
  async #probe(): Promise<boolean> {
    const client = new ClosingClient({
      connectionString: this.#address.connectionString,
      connectionTimeoutMillis: Math.min(this.#connectTimeoutMs || Infinity, SILENCE_MS.max),
    });
    return new Promise((resolve) => {
      client.connect((error) => {
        // A server that refuses is running.
        resolve(error === null || error === undefined || !isLost(error));
        if (!error) void client.end();
      });
    });
  }

  async #connect(): Promise<pg.PoolClient> {
    try {
      return await this.#pool.connect();
    } catch (error) {
      // Neither the network nor the server: the driver itself gives up, because of a missing password or a certificate.
      if (isLost(error) || error instanceof pg.DatabaseError || !(error instanceof Error)) throw error;
      throw new EngineError(
        "database_unreadable",
        `cannot log in to the database ${this.name}: ${error.message}`,
        {
          hint: "check PGPASSWORD or ~/.pgpass if the server asks for a password, and sslmode if it is about TLS",
          cause: error,
        },
      );
    }
  }

  /** Retries `work` after conflicts or a lost server; any other failure is translated and thrown. */
  async #attempt<T>(
    verb: string,
    { isOnce = false, isRepeatable = false, isConflict }: WriteOptions & { isOnce?: boolean },
    work: () => Promise<T>,
  ): Promise<T> {
    const startedAt = Date.now();
    for (let attempt = 0; ; attempt++) {
      try {
        return await work();
      } catch (error) {
        const limitMs = isLost(error) && !this.#wasReached ? 0 : this.#limitFor(error);
        const isWorth =
          isDefeat(error) ||
          isConflict?.(error) === true ||
          (isRepeatable && isTaken(error)) ||
          (isLost(error) && (isRepeatable || !(error instanceof UnansweredCommit)));
        if (isOnce || !isWorth || !this.#isOpen || Date.now() - startedAt >= limitMs)
          throw await this.explain(error, verb);
        this.retries += 1;
        await sleep(Math.random() * Math.min(LONGEST_PAUSE_MS, 2 ** attempt));
      }
    }
  }

  #limitFor(error: unknown): number {
    const isGone = isLost(error) && !isStarting(error);
    return isGone ? Math.min(RECONNECT_LIMIT_MS, this.#busyLimitMs) : this.#busyLimitMs;
  }

  /** The error in our wording; a statement that fails because another program has upgraded the schema says that. */
  async explain(error: unknown, verb: string): Promise<unknown> {
    if (/^42[P7]/.test(codeOf(error)) && this.#isOpen && this.#newestSchema !== null) {
      try {
        const row = await this.#withClient((client) => client.query(statement(READ_VERSION)));
        this.checkSchemaVersion((row.rows[0] as { version: number }).version);
      } catch (newer) {
        if (newer instanceof EngineError) return newer;
      }
    }
    return translate(error, verb, this.name);
  }
}

/**
 * Closes a connection that could not be established: the driver leaves it open when it aborts a login itself, and the program would not end.
 * Also reads the password file itself: the driver warns that it will stop doing so.
 */
class ClosingClient extends pg.Client {
  constructor(config?: pg.ClientConfig) {
    super(config);
    const login = this as { password?: string | null | ((login: Login) => string | undefined) };
    if (!login.password) login.password = findPassword;
    // Between the pool, which hands out a connection, and its user, who attaches a listener a moment later, nobody would handle an error, and it
    // would end the process.
    this.on("error", () => undefined);
  }

  override connect(): Promise<pg.Client>;
  override connect(callback: (error: Error | null) => void): void;
  override connect(callback?: (error: Error | null) => void): Promise<pg.Client> | void {
    if (callback === undefined) return super.connect();
    super.connect((error: Error | null) => {
      if (error) void this.end();
      callback(error);
    });
  }
}

/** As many at a time as there are connections: waiting for a connection is not waiting for the server. */
class Turns {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(count: number) {
    this.#free = count;
  }

  async take(): Promise<() => void> {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    let isGiven = false;
    return () => {
      if (isGiven) return;
      isGiven = true;
      const next = this.#waiting.shift();
      if (next) next();
      else this.#free += 1;
    };
  }
}

/**
 * Detects a silent server: a network that loses every packet closes no connection, and callers would wait for a quarter of an hour. A slow
 * statement is left alone, because the server answers others meanwhile.
 */
class Silence {
  readonly #afterMs: number;
  readonly #ask: () => Promise<boolean>;
  #asking: Promise<boolean> | null = null;

  constructor(afterMs: number, ask: () => Promise<boolean>) {
    this.#afterMs = afterMs;
    this.#ask = ask;
  }

  /** Calls `end` when the server is gone. Returns a function that ends the watch. */
  watch(end: () => void): () => void {
    let timer: NodeJS.Timeout | null = null;
    const wait = (): void => {
      timer = setTimeout(() => void check(), this.#afterMs).unref();
    };
    const check = async (): Promise<void> => {
      // One probe for all waiting connections.
      this.#asking ??= this.#ask().finally(() => (this.#asking = null));
      const isThere = await this.#asking;
      if (timer === null) return;
      if (isThere) wait();
      else end();
    };
    wait();
    return () => {
      if (timer !== null) clearTimeout(timer);
      timer = null;
    };
  }
}

interface ClientParts {
  readonly counter: { trips: number; statements: number };
  readonly names: Map<string, string> | null;
  readonly silence: Silence;
}

/** One connection with one user. Counts round trips: statements sent while an answer is awaited belong to the same one. */
class Client {
  readonly #client: pg.PoolClient;
  readonly #counter: { trips: number; statements: number };
  readonly #names: Map<string, string> | null;
  #open = 0;
  #last: Promise<unknown> = Promise.resolve();
  #isBroken = false;
  #isGathering = false;
  #batch: BatchedStatement[] = [];
  readonly #silence: Silence;
  #endWatch: (() => void) | null = null;
  readonly #onError = (): void => {
    this.#isBroken = true;
  };

  constructor(client: pg.PoolClient, { counter, names, silence }: ClientParts) {
    this.#client = client;
    this.#counter = counter;
    this.#names = names;
    this.#silence = silence;
    // The pool does not listen while a connection is in use; an unhandled error would end the process.
    client.on("error", this.#onError);
  }

  query({ text, values }: Statement): Promise<Answer> {
    return values.length === 0 ? this.command(text) : this.#post(text, values);
  }

  /** A single command. It is answered with the statements before it, and skipped if one of them fails. */
  end(text: string): Promise<Answer> {
    return this.#names === null ? this.#post(text, []) : this.command(text);
  }

  /** Without parameters; may be several commands in one. */
  command(text: string): Promise<Answer> {
    this.#sendBatch();
    return this.#send({ text });
  }

  /** Several commands in one. Returns the rows of the last. */
  async commands(text: string): Promise<unknown[]> {
    const answers = (await this.command(text)) as unknown as readonly Answer[];
    return must(answers.at(-1), "the answer to a command").rows;
  }

  /** A command whose answer is not awaited. */
  tell(text: string): void {
    this.#counter.trips -= this.#open === 0 ? 1 : 0;
    this.command(text).catch(() => this.markBroken());
  }

  #post(text: string, values: readonly SqlValue[]): Promise<Answer> {
    const parameters = values.map(toParameter);
    if (this.#names !== null)
      return this.#send({ text, values: parameters, name: this.#nameOf(text, this.#names) });
    this.#noteSent();
    return new Promise((resolve, reject) => {
      this.#batch.push({ text, values: parameters, resolve, reject });
    });
  }

  #send(query: pg.QueryConfig): Promise<Answer> {
    this.#noteSent();
    const answer = this.#client.query(query).finally(() => this.#noteAnswer(1));
    this.#last = answer.catch(this.#noteFailure);
    return answer;
  }

  /** What was sent since the last command, or the last time. */
  #sendBatch(): void {
    const statements = this.#batch;
    if (statements.length === 0) return;
    this.#batch = [];
    this.#last = new Promise<void>((resolve) => {
      const onAnswer = (error: unknown): void => {
        this.#noteAnswer(statements.length);
        if (error) this.#noteFailure(error);
        resolve();
      };
      this.#client.query(new Batch(statements, onAnswer));
    });
  }

  readonly #noteFailure = (error: unknown): void => {
    if (isLost(error)) this.#isBroken = true;
  };

  #noteSent(): void {
    this.#gather();
    if (this.#open === 0) this.#counter.trips += 1;
    this.#open += 1;
    this.#counter.statements += 1;
    this.#endWatch ??= this.#silence.watch(() => cutLine(this.#client));
  }

  /** Statements that are sent without waiting travel as one piece: one by one, each would wake the server. */
  #gather(): void {
    if (this.#isGathering) return;
    this.#isGathering = true;
    const stream = streamOf(this.#client);
    stream.cork();
    process.nextTick(() => {
      this.#sendBatch();
      this.#isGathering = false;
      stream.uncork();
    });
  }

  #noteAnswer(statements: number): void {
    this.#open -= statements;
    this.#endWatch?.();
    this.#endWatch = this.#open === 0 ? null : this.#silence.watch(() => cutLine(this.#client));
  }

  #nameOf(text: string, names: Map<string, string>): string {
    let name = names.get(text);
    if (name === undefined) names.set(text, (name = `lcm_${names.size}`));
    return name;
  }

  /** Returns to the pool when everything is answered; a connection in doubt is closed. */
  async release(): Promise<void> {
    this.#sendBatch();
    await this.#last;
    this.#client.off("error", this.#onError);
    this.#client.release(this.#isBroken);
  }

  markBroken(): void {
    this.#isBroken = true;
  }
}

/** Closes a connection without notifying the server; everything that waits for an answer fails as lost. */
const cutLine = (client: pg.PoolClient): unknown => streamOf(client).destroy();

/** The network connection, which the driver does not show. */
const streamOf = (client: pg.PoolClient): Duplex =>
  (client as unknown as { readonly connection: { readonly stream: Duplex } }).connection.stream;

/** The server may or may not have committed. */
class UnansweredCommit extends Error {}

/** The identity of a transaction on the server. */
interface Identity {
  readonly xid: string;
  readonly since: string;
}

interface Fate {
  readonly status: string | null;
  readonly since: string;
}

class Transaction implements WriteSql {
  readonly #client: Client;
  readonly #begin: string;
  readonly #checkVersion: ((version: number) => void) | null;
  /** Answers not awaited yet. */
  #posted: Promise<unknown>[] = [];
  #version: Promise<void> = Promise.resolve();
  #isBegun = false;
  /** COMMIT or ROLLBACK was sent. A statement after it would run outside a transaction, or in that of the connection's next user. */
  #isOver = false;
  /** Why the transaction failed: the server answers everything after it with a mere refusal. */
  #failure: unknown = null;
  readonly #last: (() => Promise<void>)[] = [];
  readonly follow: (() => void)[] = [];
  /** Null until the server has reported it. */
  identity: Identity | null = null;

  constructor(client: Client, begin: string, checkVersion: ((version: number) => void) | null) {
    this.#client = client;
    this.#begin = begin;
    this.#checkVersion = checkVersion;
  }

  async run<T>(work: (sql: WriteSql) => Promise<T>): Promise<T> {
    try {
      return await work(this);
    } catch (error) {
      // Whatever `work` threw instead: a transaction that lost against another may be retried.
      const cause = isDefeat(this.#failure) ? this.#failure : this.#causeOf(error);
      this.#isOver = true;
      if (this.#isBegun) this.#client.tell("ROLLBACK");
      throw cause;
    }
  }

  async all<T>(text: string, ...values: SqlValue[]): Promise<T[]> {
    return (await this.#answer({ text, values })).rows as T[];
  }

  async get<T>(text: string, ...values: SqlValue[]): Promise<T | undefined> {
    const [row] = await this.all<T>(text, ...values);
    return row;
  }

  async ask<T>(statements: readonly Statement[]): Promise<T[][]> {
    const answers = await this.#settle(statements.map((one) => this.#send(one)));
    return answers.map(({ rows }) => rows as T[]);
  }

  async change(text: string, ...values: SqlValue[]): Promise<number> {
    return (await this.#answer({ text, values })).rowCount ?? 0;
  }

  post(...statements: readonly Statement[]): void {
    for (const one of statements) this.#keep(this.#send(one));
  }

  read<T>(work: (sql: Sql) => Promise<T>): Promise<T> {
    return work(this);
  }

  write<T>(work: (sql: WriteSql) => Promise<T>): Promise<T> {
    return work(this);
  }

  beforeCommit(work: () => Promise<void>): void {
    this.#last.push(work);
  }

  afterCommit(work: () => void): void {
    this.follow.push(work);
  }

  /** Everything posted and the COMMIT are pipelined. */
  async commit(): Promise<void> {
    await this.run(async () => {
      for (const work of this.#last) await work();
      await this.#version;
    });
    this.#isOver = true;
    if (!this.#isBegun) return;
    const ending = this.#client.end("COMMIT");
    try {
      await this.#settle([ending]);
      const { command } = await ending;
      if (command !== "COMMIT") throw new Error(`COMMIT was answered with ${command}`);
    } catch (error) {
      if (isLost(error)) throw new UnansweredCommit("the server did not answer a COMMIT", { cause: error });
      // The server skips the COMMIT after a statement that failed.
      this.#client.tell("ROLLBACK");
      throw error;
    }
  }

  /** Ends a read-only transaction. */
  close(): void {
    this.#isOver = true;
    if (this.#isBegun) this.#client.tell("COMMIT");
  }

  async #answer(one: Statement): Promise<Answer> {
    const [answer] = await this.#settle([this.#send(one)]);
    return answer as Answer;
  }

  /** BEGIN and the version of the schema are pipelined with the first statement. */
  #send(one: Statement): Promise<Answer> {
    if (this.#isOver) throw new Error(`a statement came after the end of its transaction: ${one.text}`);
    if (!this.#isBegun) {
      this.#isBegun = true;
      if (this.#checkVersion) this.#keep((this.#version = this.#beginChecked(this.#checkVersion)));
      else this.#keep(this.#client.command(this.#begin));
    }
    const answer = this.#client.query(one);
    answer.catch(this.#note);
    return answer;
  }

  async #beginChecked(check: (version: number) => void): Promise<void> {
    const [row] = await this.#client.commands(`${this.#begin}; ${READ_IDENTITY}`);
    const { version, ...identity } = row as Identity & { readonly version: number };
    check(version);
    this.identity = identity;
  }

  #keep(answer: Promise<unknown>): void {
    answer.catch(this.#note);
    this.#posted.push(answer);
  }

  readonly #note = (error: unknown): void => {
    if (this.#failure === null || isAborted(this.#failure)) this.#failure = error;
  };

  /** Statements posted before are answered before. Throws the first failure once all have been answered. */
  async #settle(answers: readonly Promise<Answer>[]): Promise<Answer[]> {
    const posted = this.#posted;
    this.#posted = [];
    const settled = await Promise.allSettled([...posted, ...answers]);
    const failed = settled.find((one) => one.status === "rejected");
    if (failed) throw this.#causeOf(failed.reason);
    return Promise.all(answers);
  }

  #causeOf(error: unknown): unknown {
    return isAborted(error) && this.#failure !== null ? this.#failure : error;
  }
}

const codeOf = (error: unknown): string => {
  const code = (error as { code?: unknown } | null)?.code;
  if (typeof code === "string") return code;
  return error instanceof UnansweredCommit ? codeOf(error.cause) : "";
};

/** The transaction had already failed. */
const isAborted = (error: unknown): boolean => codeOf(error) === "25P02";
/** Lost against another transaction: a serialisation failure, or a deadlock. */
const isDefeat = (error: unknown): boolean => ["40001", "40P01"].includes(codeOf(error));
/** Another transaction has just stored a row under the same key, or dropped the vector space that a new message was noted for. */
const isTaken = (error: unknown): boolean =>
  codeOf(error) === "23505" ||
  (error instanceof pg.DatabaseError && error.constraint === "vectors_pending_space_id_fkey");

/** The server answers that it is starting, recovering or shutting down. */
const isStarting = (error: unknown): boolean => codeOf(error) === "57P03";

const NETWORK = /^(ECONN|EPIPE|ETIMEDOUT|EHOST|ENET|ENOTFOUND|EAI_|ENOENT)/;
const LOST_MESSAGES =
  /Connection terminated|not queryable|timeout expired|timeout exceeded|Connection ended/i;

/** The server is gone, or not running yet. */
function isLost(error: unknown): boolean {
  if (error instanceof UnansweredCommit) return true;
  if (!(error instanceof Error) || error instanceof EngineError) return false;
  const code = codeOf(error);
  if (error instanceof pg.DatabaseError) return /^(08|25P03|57P0[1-35])/.test(code);
  return NETWORK.test(code) || LOST_MESSAGES.test(error.message);
}

interface Reason {
  readonly code: ErrorCode;
  readonly why: string;
  readonly hint?: string;
  readonly step?: NextStep;
}

/** By the prefix of the SQLSTATE, with "row-level security" if the message has it; the longer ones first. */
const REASONS: readonly (readonly [state: string, reason: Reason])[] = [
  [
    "55P03",
    {
      code: "database_busy",
      why: "another program holds a lock that it needs",
      hint: "retry when the other program has finished",
    },
  ],
  [
    "57014",
    {
      code: "database_busy",
      why: "a statement took longer than the time limit",
      hint: "raise statement_timeout in the address",
    },
  ],
  [
    "53100",
    {
      code: "database_full",
      why: "no space left on the server",
      hint: "free some space; nothing of the failed call was stored",
    },
  ],
  [
    "53",
    {
      code: "database_busy",
      why: "the server has no room for another connection",
      hint: "lower pool in the address, or raise max_connections of the server",
    },
  ],
  [
    "40",
    { code: "database_busy", why: "it lost against other programs again and again", hint: "retry later" },
  ],
  [
    "3D000",
    {
      code: "database_missing",
      why: "the server has no such database",
      hint: "create it with CREATE DATABASE",
    },
  ],
  [
    "28",
    {
      code: "database_unreadable",
      why: "the server refuses the login",
      hint: "check user and password of the address",
    },
  ],
  [
    "42501 row-level security",
    {
      code: "denied",
      why: "this role of the server may use the rows of its own owner only",
      step: { kind: "use_own_owner" },
    },
  ],
  [
    "42501",
    {
      code: "database_unreadable",
      why: "permission denied",
      hint: "the role must own the schema of the archive, or have been granted its tables",
    },
  ],
  ["25006", { code: "database_unreadable", why: "it is read-only" }],
  ["42P01", { code: "database_corrupt", why: "its schema is damaged" }],
  ["42703", { code: "database_corrupt", why: "its schema is damaged" }],
  ["XX00", { code: "database_corrupt", why: "the server reports damaged data" }],
];

/** Translates the server's errors. Anything else passes through unchanged. */
function translate(error: unknown, verb: string, name: string): unknown {
  if (error instanceof EngineError || !(error instanceof Error)) return error;
  if (isLost(error)) {
    const cause =
      error instanceof UnansweredCommit
        ? "the connection was lost before the answer"
        : "the server cannot be reached";
    const detail = error instanceof UnansweredCommit ? "" : ` (${error.message || codeOf(error)})`;
    return new EngineError("database_unreachable", `cannot ${verb} the database ${name}: ${cause}${detail}`, {
      hint: "check that the server runs and that the address is right, then repeat the call",
      cause: error,
    });
  }
  if (!(error instanceof pg.DatabaseError)) return error;
  const state = `${codeOf(error)}${error.message.includes("row-level security") ? " row-level security" : ""}`;
  const reason = REASONS.find(([beginning]) => state.startsWith(beginning))?.[1];
  const { code, why, hint, step }: Reason = reason ?? {
    code: "internal",
    why: "the server refused a statement",
  };
  return new EngineError(code, `cannot ${verb} the database ${name}: ${why} (${error.message})`, {
    hint,
    step,
    cause: error,
  });
}
