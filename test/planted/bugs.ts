/**
 * Bugs that the tests must catch. Each is one edit of the source that breaks a promise, and the test that must then fail.
 *
 * Invariant: `find` occurs exactly once in its file. When the code changes, update the edit; do not drop it.
 */
export interface PlantedBug {
  /** The effect on a user. */
  readonly name: string;
  readonly file: string;
  readonly find: string;
  readonly replace: string;
  /** The file and the title of the test that catches it. */
  readonly test: readonly [file: string, title: string];
}

const CONTRACT = "packages/sqlite/test/sqlite-store.test.ts";

export const BUGS: readonly PlantedBug[] = [
  {
    name: "an event that comes again is stored again",
    file: "packages/core/src/archive/identity.ts",
    find: `return equal ? { kind: "known", version: equal, outcome: "known" } : { kind: "changed", first, versions };`,
    replace: `return equal ? { kind: "new" } : { kind: "changed", first, versions };`,
    test: [CONTRACT, "stores an event once, however often it arrives"],
  },
  {
    name: "an event that comes twice in one batch is stored twice",
    file: "packages/core/src/archive/identity.ts",
    find: `    if (versions) versions.push(version);
    else this.#versions.set(name, [version]);`,
    replace: `    if (versions) versions.push(version);`,
    test: [
      "packages/sqlite/test/known-events.test.ts",
      "a batch ends as its events would end one by one, repetitions and revisions included",
    ],
  },
  {
    name: "a message is known by its text instead of its id",
    file: "packages/core/src/archive/identity.ts",
    find: `    const versions = this.#versions.get(nameEvent(event.eventId));
    const first = versions?.[0];`,
    replace: `    const versions = this.#versions.get(nameEvent(event.eventId)) ?? [...this.#versions.values()].find((list) => list.some((version) => isSameArrival(version, event)));
    const first = versions?.[0];`,
    test: [CONTRACT, "keeps five hundred equal texts with different ids, and no more when they come again"],
  },
  {
    name: "a forgotten message comes back when its transcript is read again",
    file: "packages/core/src/archive/identity.ts",
    find: `if (first.forgotten_at !== null) return { kind: "known", version: first, outcome: "forgotten" };`,
    replace: `if (first.forgotten_at !== null) return { kind: "changed", first, versions };`,
    test: [CONTRACT, "forgets a message for good, and knows its event for ever"],
  },
  {
    name: "two messages get the same number",
    file: "packages/core/src/archive/head.ts",
    find: `    const chain = chainMessage(this.#row.head_chain, { ...facts, seq }, commitment);
    this.#advance(seq, chain);`,
    replace: `    const chain = chainMessage(this.#row.head_chain, { ...facts, seq }, commitment);`,
    test: [CONTRACT, "gives back the bytes that were handed in"],
  },
  {
    name: "two messages get the same position",
    file: "packages/core/src/archive/head.ts",
    find: `return this.#row.last_position + POSITION_STEP;`,
    replace: `return this.#row.last_position;`,
    test: [CONTRACT, "pages through messages without losing or repeating one"],
  },
  {
    name: "a link of the chain does not depend on the one before",
    file: "packages/core/src/model/chain.ts",
    find: "return sha256(Buffer.concat([previous, commitment, Buffer.from(text)]));",
    replace: "return sha256(Buffer.concat([previous.subarray(0, 0), commitment, Buffer.from(text)]));",
    test: [
      "packages/sqlite/test/verify-columns.test.ts",
      "notices an edit of every column, an emptied column and a removed row, or says why not",
    ],
  },
  {
    name: "a late row goes behind a summary that spans its place",
    file: "packages/core/src/archive/append.ts",
    find: `else if (isLate) this.#late.set(message.messageId, message);`,
    replace: ``,
    test: [
      "packages/core/test/engine/folding-simulation.test.ts",
      "whatever happens to a conversation, the archive proves whole and every context stands for it exactly once",
    ],
  },
  {
    name: "a summary is published over a run that changed meanwhile",
    file: "packages/core/src/archive/publish.ts",
    find: `const sources = isSameRun(rows, run) ? replaceByStandIns(rows, sourceIds, standIns) : null;`,
    replace: `const sources = replaceByStandIns(rows, sourceIds, standIns);`,
    test: [
      CONTRACT,
      "puts a summary in the place of its run, keeps its sources, and refuses a run that changed",
    ],
  },
  {
    name: "a large file is not on the disk when its message is committed",
    file: "packages/core/src/store/blob-folder.ts",
    find: `        fsyncSync(handle);
      } finally {`,
    replace: `      } finally {`,
    test: [
      "packages/sqlite/test/blobs.test.ts",
      "a large file and its name are on the disk before the message that needs them is committed",
    ],
  },
  {
    name: "the folder of large files is lost with the power",
    file: "packages/core/src/store/blob-folder.ts",
    find: "  for (let made = path; made.length >= first.length; made = dirname(made)) flushPathSync(dirname(made));\n",
    replace: "",
    test: [
      "packages/sqlite/test/blobs.test.ts",
      "a large file and its name are on the disk before the message that needs them is committed",
    ],
  },
  {
    name: "a backup takes its name before it is on the disk",
    file: "packages/core/src/store/flush-path.ts",
    find: "else if (entry.isFile()) flushPathSync(path);",
    replace: "",
    test: [
      "packages/core/test/repair/backup.test.ts",
      "is flushed before older backups are removed, and before a restore puts a backup in place",
    ],
  },
  {
    name: "an agent finds what is another owner's by asking for everything",
    file: "packages/core/src/recall/reach.ts",
    find: `return makeReach(owner, undefined, "all conversations");`,
    replace: `return makeReach(undefined, undefined, "all conversations");`,
    test: [
      "packages/openclaw/test/tools.test.ts",
      "finds what this agent may see, whatever the arguments ask for",
    ],
  },
  {
    name: "an owner that an argument names takes the place of the session's own",
    file: "packages/core/src/recall/reach.ts",
    find: `request.session === undefined ? request.owner : shareAcrossOwners ? undefined : request.session.owner;`,
    replace: `request.owner ?? (shareAcrossOwners ? undefined : request.session?.owner);`,
    test: [
      "packages/core/test/recall/reach.test.ts",
      "an owner named in a request does not change whose session asks",
    ],
  },
  {
    name: "a sub-agent reads without a grant",
    file: "packages/core/src/recall/reach.ts",
    find: "if (request.delegated) return resolveGranted(context, request);",
    replace: "",
    test: [
      "packages/openclaw/test/tools.test.ts",
      "a sub-agent reads under its grant, and not before or after",
    ],
  },
  {
    name: "a turn is deleted from the spool before the database has it",
    file: "packages/openclaw/src/capture/spool.ts",
    find: `        await store(turn);
        await rm(join(this.folder, name), { force: true });`,
    replace: `        await rm(join(this.folder, name), { force: true });
        await store(turn);`,
    test: ["packages/openclaw/test/spool.test.ts", "stops at the first turn that fails and keeps the rest"],
  },
  {
    name: "a turn in the spool is lost with the power",
    file: "packages/openclaw/src/capture/spool.ts",
    find: "    await file.writeFile(text);\n    await file.sync();",
    replace: "    await file.writeFile(text);",
    test: ["packages/openclaw/test/spool.test.ts", "has it on the disk before it counts as kept"],
  },
  {
    name: "a turn that the database cannot take now is put aside for good",
    file: "packages/openclaw/src/capture/capture.ts",
    find: "if (isDatabaseFailure(error)) throw error;",
    replace: "",
    test: [
      "packages/openclaw/test/spool.test.ts",
      "keeps a turn that can never be stored under another name, and one that only the database refuses now",
    ],
  },
  {
    name: "turns leave the spool in another order than they came",
    file: "packages/openclaw/src/capture/spool.ts",
    find: `a.turn.admission.activeMessagePosition - b.turn.admission.activeMessagePosition ||`,
    replace: ``,
    test: [
      "packages/openclaw/test/spool.test.ts",
      "keeps the order of the turns when the clock was set back meanwhile",
    ],
  },
  {
    name: "a page of another site reads the archive",
    file: "packages/web/src/access.ts",
    find: "if (origin !== undefined && origin !== `http://${host}`) {",
    replace: "if (origin === null) {",
    test: ["packages/web/test/server.test.ts", "a foreign Origin is refused, also with the token"],
  },
  {
    name: "a name that points at this machine reads the archive",
    file: "packages/web/src/access.ts",
    find: "if (host === undefined || !this.#hosts.has(host)) {",
    replace: "if (host === undefined) {",
    test: ["packages/web/test/server.test.ts", "a foreign Host is refused, also with the token"],
  },
  {
    name: "the MCP server answers without its token",
    file: "packages/mcp/src/http.ts",
    find: `if (isSameSecret(given, token)) return true;`,
    replace: `if (given !== token + "x") return true;`,
    test: [
      "packages/mcp/test/doors.test.ts",
      "over HTTP, only this machine's own clients with the token are answered",
    ],
  },
  {
    name: "a model's summary without its source's facts is published",
    file: "packages/core/src/summarize/gate.ts",
    find: `if (dropsFacts(splitClosingLine(body).body, input.sourcesText)) return reject("drops_identifiers");`,
    replace: ``,
    test: ["packages/core/test/summarize/gate.test.ts", "drops_identifiers"],
  },
  {
    name: "a summary that is longer than its sources is published",
    file: "packages/core/src/summarize/gate.ts",
    find: `if (tokens >= input.sourceTokens) return reject("not_shorter");`,
    replace: ``,
    test: ["packages/core/test/summarize/gate.test.ts", "not_shorter: a summary as long as its sources"],
  },
  {
    name: "a forgotten message is still found by its vector",
    file: "packages/core/src/archive/hide.ts",
    find: `if (after !== 0) changes.delete("message_vectors", { message_id: newest ?? message_id });`,
    replace: ``,
    test: [
      "packages/core/test/recall/vectors.test.ts",
      "not what is hidden; its newest version where a message was revised; nothing of what was forgotten",
    ],
  },
  {
    name: "a forgotten message leaves its terms in the index",
    file: "packages/core/src/archive/forget.ts",
    find: `    changes.index.push({ kind: "remove-message", messageId: message_id });`,
    replace: ``,
    test: [CONTRACT, "forgets a message for good, and knows its event for ever"],
  },
  {
    name: "a summary that is not shown keeps the words of a forgotten message",
    file: "packages/core/src/archive/forget.ts",
    find: "    eraseSummary(changes, summary, renderNote(now, replacement?.summary.summaryId ?? null));",
    replace:
      "    if (replacement) eraseSummary(changes, summary, renderNote(now, replacement?.summary.summaryId ?? null));",
    test: [
      CONTRACT,
      "leaves nothing of a forgotten message in summaries that are not shown: prepared, stand-ins, replaced ones",
    ],
  },
  {
    name: "a summary is shown although everything under it was taken back",
    file: "packages/core/src/archive/cover.ts",
    find: "    draft.hidden = hideSummary(draft.messages);\n",
    replace: "",
    test: [CONTRACT, "hides a summary while everything under it is hidden, and shows it again"],
  },
  {
    name: "a sub-agent reads a conversation that its grant does not name",
    file: "packages/core/src/recall/reach.ts",
    find: "if (wanted !== undefined && !grant.conversationIds.includes(wanted)) throw notFound(wanted);",
    replace: "",
    test: [
      "packages/core/test/recall/grants.test.ts",
      "open no other conversation of the same owner, whatever an argument names",
    ],
  },
  {
    name: "a copied chat opens what the original was told later",
    file: "packages/core/src/recall/reach.ts",
    find: "part.conversationId === conversationId && position <= part.position);",
    replace: "part.conversationId === conversationId);",
    test: [
      "packages/core/test/recall/reach.test.ts",
      "a copied chat opens what was said before the copy, and nothing that the original was told later",
    ],
  },
  {
    name: "what another program has edited is sealed as if it were true",
    file: "packages/sqlite/src/seals.ts",
    find: "      for (const ids of changed.values()) ids.clear();\n",
    replace: "",
    test: [
      "packages/sqlite/test/verify.test.ts",
      "notices an edit that another program made while this one goes on storing",
    ],
  },
  {
    name: "a title keeps words of a forgotten message",
    file: "packages/core/src/archive/forget.ts",
    find: `const words = { title: null, name: null, tags: null, branch: null };`,
    replace: `const words = {};`,
    test: [
      CONTRACT,
      "keeps no word about a conversation of which all was forgotten, also when the message comes again",
    ],
  },
  {
    name: "text of the archive ends the frame it stands in",
    file: "packages/core/src/text/escape-xml.ts",
    find: "escapeMarks(text, /[&<]|(?<=\\]\\])>/g)",
    replace: "escapeMarks(text, /&/g)",
    test: [
      "packages/core/test/engine/assembly-settings.test.ts",
      "stored text cannot end a recall cue or a summary",
    ],
  },
  {
    name: "a provider gets half of a character",
    file: "packages/core/src/assemble/model-view.ts",
    find: `if (typeof value === "string") return value.toWellFormed();`,
    replace: `if (typeof value === "string") return value;`,
    test: [
      "packages/core/test/assemble/providers.test.ts",
      "are ones that no provider refuses, whatever the archive holds",
    ],
  },
  {
    name: "an archive whose lines were changed is taken",
    file: "packages/interchange/src/archive/import-archive.ts",
    find: 'record.records === lineNumber - 1 && record.sha256 === hash.digest("hex")',
    replace: "record.records === lineNumber - 1",
    test: [
      "packages/interchange/test/archive-format.test.ts",
      "that was changed, or comes from somewhere else, is refused or left out by name",
    ],
  },
  {
    name: "an archive that is cut off is taken",
    file: "packages/interchange/src/archive/import-archive.ts",
    find: 'if (!hasEnd) throw refuse(path, "it is cut off: its last record is missing");',
    replace: "",
    test: [
      "packages/interchange/test/archive-format.test.ts",
      "goes on behind the last row when it was cut, and is whole at every cut",
    ],
  },
  {
    name: "an archive is imported without being proven",
    file: "packages/interchange/src/archive/import-archive.ts",
    find: "      await run.prove();\n",
    replace: "",
    test: [
      "packages/interchange/test/archive-forged.test.ts",
      "is refused whole, or what it leaves verifies, whichever field was changed",
    ],
  },
  {
    name: "a transcript that was replaced is read from where the old one ended",
    file: "packages/interchange/src/transcript/cursor.ts",
    find: 'return hash.copy().digest("hex") === cursor.sha256 ? hash : null;',
    replace: "return hash;",
    test: [
      "packages/interchange/test/import.test.ts",
      "is read from its start when the bytes before the cursor are others",
    ],
  },
  {
    name: "what is written after a cut takes the places of old lines",
    file: "packages/interchange/src/transcript/moved-lines.ts",
    find: "return Math.max(0, used - lastKnown);",
    replace: "return 0;",
    test: [
      "packages/interchange/test/import.test.ts",
      "puts what is new after all that was stored, also where lines before it are gone",
    ],
  },
  {
    name: "two processes fold one conversation, and both pay",
    file: "packages/core/src/archive/debts.ts",
    find: "  lease_until <= now ||\n",
    replace: "  now > 0 ||\n",
    test: [CONTRACT, "lends a debt to one process at a time, and is paid once"],
  },
  {
    name: "a process whose lease was taken over settles the debt of another",
    file: "packages/core/src/archive/debts.ts",
    find: "if ((yield* lockDebtOf(conversationId))?.lease_holder !== holder) return changes.done(null);",
    replace: "yield* lockDebtOf(conversationId);",
    test: [CONTRACT, "lends a debt to one process at a time, and is paid once"],
  },
  {
    name: "a full day does not stop model calls",
    file: "packages/core/src/summarize/guards.ts",
    find: "    if (used < cap) {\n      await this.#close(DAY_GUARD);",
    replace: "    if (used < Infinity) {\n      await this.#close(DAY_GUARD);",
    test: [
      "packages/core/test/summarize/summarizer.test.ts",
      "at the cap no model is called until the next day in the configured zone",
    ],
  },
  {
    name: "what a folder excludes is stored",
    file: "packages/agents/src/exclusions.ts",
    find: "return file === null ? null : `excluded by ${file}`;",
    replace: 'return file === "" ? `excluded by ${file}` : null;',
    test: ["packages/agents/test/watcher.test.ts", "stores nothing of what is excluded, and says so"],
  },
  {
    name: "a message that waits for the index is not found",
    file: "packages/sqlite/src/find-clues.ts",
    find: "pendingIds: parseIds(facts.pending),",
    replace: "pendingIds: [],",
    test: [
      "packages/sqlite/test/index-queue.test.ts",
      "wait in the database when the process dies, are counted for readers and indexed by the next writer",
    ],
  },
  {
    name: "what was acknowledged is lost with the power",
    file: "packages/sqlite/src/connection.ts",
    find: "PRAGMA synchronous = FULL;",
    replace: "PRAGMA synchronous = OFF;",
    test: ["packages/sqlite/test/connection.test.ts", "a commit waits for the disk"],
  },
  {
    name: "the tokens of a context are above its budget",
    file: "packages/core/src/assemble/choose.ts",
    find: "if (choice.tokens > room) return chooseAtLeast(scene, { withRoot: true });",
    replace: "",
    test: [
      "packages/core/test/assemble/choose.test.ts",
      "the context fits, stands for every message once, in order, and is the same for the same input",
    ],
  },
  {
    name: "what was left out is shown without room for it",
    file: "packages/core/src/assemble/rest.ts",
    find: "if (this.#price(spent, missing) > this.#front.capacityTokens) return false;",
    replace: "",
    test: [
      "packages/core/test/assemble/choose.test.ts",
      "opens what it shows, newest first, where room is left; what was opened in part stands for the rest",
    ],
  },
  {
    name: "a result answers a call of another message",
    file: "packages/core/src/assemble/repair.ts",
    find: 'else openCalls.set(id ?? "", { index, calls: [entry] });',
    replace: 'else openCalls.set(id ?? "", { index, calls: [...(open?.calls ?? []), entry] });',
    test: [
      "packages/core/test/assemble/repair.test.ts",
      "a result never answers a call that an intermediate call of the same id has replaced",
    ],
  },
  {
    name: "a session file that the disk cut short takes the place of the whole one",
    file: "packages/interchange/src/transcript/rotate.ts",
    find: "writeFileSync(handle, content);",
    replace: "writeFileSync(handle, content.subarray(0, 96 * 512));",
    test: [
      "packages/interchange/test/rotate.test.ts",
      "a write that the disk cuts short leaves the session file as it was",
    ],
  },
  {
    name: "a damaged database of another program ends in an error without a code",
    file: "packages/interchange/src/documented/foreign-database.ts",
    find: `if (code !== "ERR_SQLITE_ERROR" && code !== "ERR_OUT_OF_RANGE") return error;`,
    replace: `if (code !== "ERR_OUT_OF_RANGE") return error;`,
    test: [
      "packages/interchange/test/documented/contradictions.test.ts",
      "a database whose pages are damaged is an error that names the file, and nothing of it is stored",
    ],
  },
  {
    name: "a line with an odd type ends the import of its file",
    file: "packages/interchange/src/formats/copilot.ts",
    find: `isMessage: (entry) => MESSAGES.has(entry["type"]),`,
    replace: `isMessage: (entry) => MESSAGES.has(String(entry["type"])),`,
    test: ["packages/interchange/test/import.test.ts", "stores a line whose type is no text like any other"],
  },
  {
    name: "an import that fails takes a large file with it that was there before",
    file: "packages/sqlite/src/unnamed-blobs.ts",
    find: "!connection.get(HAS_BLOB, name) && blobs.remove(name)",
    replace: "blobs.remove(name)",
    test: [
      CONTRACT,
      "keeps a large payload that was stored before an intake which brings it again, and fails",
    ],
  },
  {
    name: "forgetting leaves the copies that a transplant made",
    file: "packages/core/src/archive/forget.ts",
    find: "copies.length === 0 ? named",
    replace: "copies.length >= 0 ? named",
    test: [CONTRACT, "forgets the copies of a message with it, and not the message with a copy"],
  },
  {
    name: "a reset counts from the start of the conversation, not of the session",
    file: "packages/core/src/archive/records.ts",
    find: "position - placement.readBase()",
    replace: "position",
    test: [
      CONTRACT,
      "goes on in the next conversation after a reset without a position, whatever came before in the key",
    ],
  },
  {
    name: "a row that is stored before the cursor passes it is shown twice",
    file: "packages/openclaw/src/assemble/attempt.ts",
    find: " && !stored.has(row.entryId)",
    replace: "",
    test: [
      "packages/openclaw/test/assemble.test.ts",
      "shows each row once that is stored while the cursor is still before it",
    ],
  },
  {
    name: "a summary of another owner is listed",
    file: "packages/sqlite/src/graph.ts",
    find: "WHERE s.conversation_id = ?1 AND (?2 IS NULL OR c.owner = ?2) AND (?3 IS NULL OR s.state = ?3)",
    replace: "WHERE s.conversation_id = ?1 AND (?2 IS NULL OR 1) AND (?3 IS NULL OR s.state = ?3)",
    test: [CONTRACT, "shows an owner nothing of another owner's"],
  },
  {
    name: "older messages are shown where newer ones match as well",
    file: "packages/sqlite/src/documents.ts",
    find: "if (last !== undefined && (blocks[at]?.latestAt ?? -Infinity) < last[1]) break;",
    replace: "if (last !== undefined) break;",
    test: [
      "packages/sqlite/test/newest-tied.test.ts",
      "the newest are those that a comparison of all would find",
    ],
  },
  {
    name: "a file that was written again is read on from where it ended before",
    file: "packages/interchange/src/transcript/cursor.ts",
    find: `return hash.copy().digest("hex") === cursor.sha256 ? hash : null;`,
    replace: "return hash;",
    test: [
      "packages/interchange/test/import.test.ts",
      "is read from its start when the bytes before the cursor are others",
    ],
  },
  {
    name: "a tool that did not fail is said to have failed",
    file: "packages/core/src/assemble/write.ts",
    find: "isError: results.some((part) => part.isError === true),",
    replace: "isError: results.some((part) => part.isError !== false),",
    test: [
      "packages/core/test/assemble/providers.test.ts",
      "are ones that no provider refuses, whatever the archive holds",
    ],
  },
  {
    name: "a message without content is sent",
    file: "packages/core/src/assemble/repair.ts",
    find: "fillEmpty(joinEmpty(placeResults(paired).map(dropBlanks)))",
    replace: "joinEmpty(placeResults(paired).map(dropBlanks))",
    test: [
      "packages/core/test/assemble/providers.test.ts",
      "are ones that no provider refuses, whatever the archive holds",
    ],
  },
  {
    name: "another process is told that the database is busy",
    file: "packages/sqlite/src/connection.ts",
    find: "if (!isBusy(error) || waitedMs >= this.#busyLimitMs) throw this.explain(error, verb);",
    replace: "if (waitedMs >= 0) throw this.explain(error, verb);",
    test: [
      "packages/sqlite/test/concurrency.test.ts",
      "a lock that another process holds for three seconds delays a call, and this thread runs on meanwhile",
    ],
  },
  {
    name: "the thoughts of a model become a summary",
    file: "packages/core/src/summarize/gate.ts",
    find: `    if (before === "") return null;
    out = before;`,
    replace: `    out = before === "" ? out : before;`,
    test: ["packages/core/test/summarize/gate.test.ts", "reasoning_only"],
  },
];
