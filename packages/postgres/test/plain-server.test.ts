/** What the store asks of a server: a role that may create tables in its database, and nothing that a pooler or another engine lacks. */
import { describePostgres } from "@lossless/testkit/postgres-server.ts";
import { openEngine } from "lossless-claw";
import pg from "pg";
import { expect, onTestFinished, test, vi } from "vitest";
import { divide, session, speak } from "./speak.ts";

/** Commands that hold something beyond a transaction, or stop everybody else. */
const REFUSED =
  /^\s*(LOCK|LISTEN|NOTIFY|UNLISTEN|PREPARE|DECLARE \w+ CURSOR|SET (?!LOCAL)|CREATE EXTENSION)|pg_advisory_lock|pg_notify/im;

describePostgres("a server without anything special", (server) => {
  test.each([0, 4])(
    "an engine works as a role without rights, with unnamed statements and ordinary indexes (partitions: %i)",
    async (partitions) => {
      const database = await server.createDatabase();
      const name = /\w+(?=\?)/.exec(database)?.[0] ?? "";
      const role = `plain_${partitions}`;
      await server.query(
        database,
        `CREATE ROLE ${role} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS NOREPLICATION;
         ALTER DATABASE ${name} OWNER TO ${role}; ALTER SCHEMA public OWNER TO ${role}`,
      );
      const sent: { readonly text: string; readonly name?: string }[] = [];
      const query = Reflect.get(pg.Client.prototype, "query") as (...args: unknown[]) => unknown;
      const spy = vi.spyOn(pg.Client.prototype, "query").mockImplementation(function (
        this: pg.Client,
        ...args: unknown[]
      ) {
        sent.push(args[0] as { text: string });
        return query.apply(this, args);
      });
      onTestFinished(() => spy.mockRestore());
      const own = divide(database.replace(/\/\/\w+@/, `//${role}@`), partitions);
      const engine = await openEngine({ database: own, thread: false });
      const messages = Array.from({ length: 60 }, (_, n) => ({ eventId: `e${n}`, message: speak(n) }));
      await engine.ingest({ session, messages });
      await engine.compact({ conversationId: 1, budgetTokens: 1_000, force: true });
      await engine.ingest({ session, messages: [{ eventId: "e3", message: speak(99) }] });
      await engine.maintain({ conversationId: 1, budgetTokens: 1_000 });
      const { hits } = await engine.grep({ pattern: "sextants OR harbours", allConversations: true });
      expect(hits.length).toBeGreaterThan(5);
      expect((await engine.assemble({ conversationId: 1, budgetTokens: 1_000 }))?.messages).not.toEqual([]);
      await engine.reindex();
      expect(await engine.verify()).toMatchObject({ ok: true, messages: 61 });
      await engine.close();
      spy.mockRestore();

      expect(sent.length).toBeGreaterThan(50);
      expect(sent.filter(({ name: given }) => given !== undefined)).toEqual([]);
      expect(sent.flatMap(({ text }) => REFUSED.exec(text)?.[0] ?? [])).toEqual([]);
      expect(await server.query(database, "SELECT extname FROM pg_extension")).toEqual([
        { extname: "plpgsql" },
      ]);
      const indexes = `SELECT DISTINCT a.amname FROM pg_class i JOIN pg_am a ON a.oid = i.relam
        WHERE i.relkind IN ('i', 'I') AND i.relnamespace = 'public'::regnamespace`;
      expect(await server.query(database, indexes)).toEqual([{ amname: "btree" }]);
    },
  );
});
