/**
 * The growing end of a conversation for verbs that write as they go: read once, advanced in memory, saved once. What it is to advance is
 * said in `archive/head.ts`.
 */
import { Head } from "../../archive/head.ts";
import type { HeadRow } from "../../archive/reads.ts";
import { chainGenesis } from "../../model/chain.ts";
import type { ForkOrigin } from "../../model/chain.ts";
import { must } from "../../model/errors.ts";
import type { SessionRef } from "../../model/message.ts";
import type { CacheReport } from "../rows.ts";
import type { Connection } from "./connection.ts";
import { nextId } from "./next-id.ts";
import { SELECT_HEAD } from "./plan-reads.ts";

const NEXT_CONVERSATION_ID = `SELECT ${nextId("conversations")} AS id`;
const INSERT_CONVERSATION = `
  INSERT INTO conversations (conversation_id, owner, session_key, session_id, created_at, head_chain, parent_id, fork_seq, fork_pos)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`;
const ADD_CACHE_USAGE = `
  INSERT INTO cache_usage (conversation_id, requests, prompt_tokens, cached_tokens, updated_at, last_answer) VALUES (?, ?, ?, ?, ?, ?)
  ON CONFLICT DO UPDATE SET requests = requests + excluded.requests, prompt_tokens = prompt_tokens + excluded.prompt_tokens,
    cached_tokens = cached_tokens + excluded.cached_tokens, updated_at = excluded.updated_at, last_answer = excluded.last_answer`;
const LAST_ANSWER = "SELECT last_answer FROM cache_usage WHERE conversation_id = ?";

export class ConversationHead extends Head {
  #cacheReports: CacheReport[] = [];

  static read(connection: Connection, conversationId: number): ConversationHead {
    return new ConversationHead(
      must(connection.get<HeadRow>(SELECT_HEAD, conversationId), `conversation ${conversationId}`),
    );
  }

  static create(
    connection: Connection,
    session: SessionRef,
    now: number,
    fork: (ForkOrigin & { readonly position: number }) | null = null,
  ): ConversationHead {
    const conversationId = must(
      connection.get<{ id: number }>(NEXT_CONVERSATION_ID),
      "next conversation id",
    ).id;
    const genesis = chainGenesis({
      conversationId,
      owner: session.owner,
      sessionKey: session.key,
      createdAt: now,
      fork,
    });
    connection.run(
      INSERT_CONVERSATION,
      conversationId,
      session.owner,
      session.key,
      session.id,
      now,
      genesis,
      fork?.conversationId ?? null,
      fork?.seq ?? null,
      fork?.position ?? null,
    );
    return ConversationHead.read(connection, conversationId);
  }

  noteCacheUsage(report: CacheReport): void {
    this.#cacheReports.push(report);
  }

  override save(connection: Connection, now: number): void {
    super.save(connection, now);
    this.#saveCacheUsage(connection, now);
  }

  #saveCacheUsage(connection: Connection, now: number): void {
    if (this.#cacheReports.length === 0) return;
    // The rows of an answer follow each other, but not always in one batch; each further one tells of the same request.
    let last = connection.get<{ last_answer: string | null }>(LAST_ANSWER, this.conversationId)?.last_answer;
    const reports = this.#cacheReports.filter(({ answer }) => {
      const isRepeated = answer === last;
      last = answer;
      return !isRepeated;
    });
    this.#cacheReports = [];
    if (reports.length === 0) return;
    const promptTokens = reports.reduce((sum, report) => sum + report.promptTokens, 0);
    const cachedTokens = reports.reduce((sum, report) => sum + report.cachedTokens, 0);
    connection.run(
      ADD_CACHE_USAGE,
      this.conversationId,
      reports.length,
      promptTokens,
      cachedTokens,
      now,
      last ?? null,
    );
  }
}
