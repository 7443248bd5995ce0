/** How every store lists conversations: by time, origin and title, with known times. */
import type { AppendEvent, LabelUpdate, ListConversations } from "@lossless/core/ports";
import { expect, test } from "vitest";
import { batchOf, clock, fold, makeEvent, say, session, textOf } from "./parts.ts";
import type { WithStore } from "./parts.ts";

const START = 1_700_000_000_000;

/** A message whose time is given by its caller, or unknown. */
function sayAt(text: string, { at, isDated }: { at: number; isDated: boolean }): AppendEvent {
  const event = makeEvent(text, say(text));
  return { ...event, prepare: () => ({ ...event.prepare(), createdAt: at, isDated }) };
}

export function testLists(withStore: WithStore): void {
  test("keeps what a person calls a conversation, and lists by time, project and label", () =>
    withStore(async (store) => {
      const now = clock.now();
      const ids: number[] = [];
      for (const [index, project] of ["/srv/b", "/srv/a", undefined].entries()) {
        const place = { ...session, key: `key-${index}`, id: `session-${index}` };
        const events = [sayAt(`words ${index}`, { at: START, isDated: true })];
        const { conversationId } = await store.append({ session: place, events, now, origin: { project } });
        ids.push(conversationId);
      }
      const [first = 0, second = 0, third = 0] = ids;
      const label = (conversationId: number, update: LabelUpdate, owner?: string) =>
        store.label({ conversationId, update, now, owner });
      const update = { name: " A\nname ", addTags: ["Work", "later"], pinned: true };
      expect(await label(first, update)).toEqual({
        name: "A name",
        tags: ["later", "work"],
        pinnedAt: now,
        unlistedAt: null,
      });
      expect(await label(first, { removeTags: ["later"] })).toMatchObject({ name: "A name", tags: ["work"] });
      expect(await label(second, { unlisted: true }, "nobody")).toBeNull();
      await label(second, { unlisted: true });
      const list = async (request: Partial<ListConversations>) =>
        (await store.listConversations({ after: null, limit: 9, ...request })).items.map(
          (row) => row.conversationId,
        );
      expect(await list({})).toEqual([third, second, first]);
      expect(await list({ order: "newest" })).toEqual([first, third, second]);
      expect(await list({ order: "newest", unlisted: false })).toEqual([first, third]);
      expect(await list({ order: "project" })).toEqual([first, second, third]);
      expect(await list({ tag: "work" })).toEqual([first]);
      expect(await list({ since: now + 1_000_000 })).toEqual([]);
      const page = await store.listConversations({ after: null, limit: 2, order: "oldest" });
      expect(page.items.map((row) => row.conversationId)).toEqual([first, second]);
      expect(await list({ after: page.next, order: "oldest" })).toEqual([third]);
      expect(await store.listOpenings([third, first], 2)).toMatchObject([
        { conversationId: third },
        { conversationId: first },
      ]);
      const [moved] = await store.listMoved({ conversationIds: [first] });
      expect(moved).toMatchObject({ name: "A name", tags: ["work"], pinnedAt: now });
      await label(first, { name: null, pinned: false });
      expect(await store.readConversation(first)).toMatchObject({ name: null, pinnedAt: null });
    }));

  test("shows a line without a time of its own at that of the next line, and counts only times that are known", () =>
    withStore(async (store) => {
      const now = clock.now();
      const events = [
        sayAt("title", { at: now, isDated: false }),
        sayAt("asked", { at: START, isDated: true }),
        sayAt("note", { at: START, isDated: false }),
        sayAt("answered", { at: START + 5_000, isDated: true }),
        sayAt("mode", { at: START + 5_000, isDated: false }),
      ];
      const { conversationId } = await store.append(batchOf(events));
      expect(await store.readConversation(conversationId)).toMatchObject({
        firstAt: START,
        lastAt: START + 5_000,
      });
      const request = {
        conversationId,
        after: null,
        limit: 9,
        order: "position",
        direction: "oldest",
      } as const;
      const { items } = await store.listMessages(request);
      const times = [START, START, START + 5_000, START + 5_000, START + 5_000];
      expect(items.map(({ createdAt }) => createdAt)).toEqual(times);
      expect(items.map(({ isDated }) => isDated)).toEqual([false, true, false, true, false]);
      const outline = await store.readOutline({ conversationId, after: null, limit: 9 });
      expect([...outline.createdAts]).toEqual(times);
      const ids = items.map(({ messageId }) => messageId);
      const texts = await store.readTexts(ids, {});
      expect(texts.map(({ createdAt }) => createdAt)).toEqual(times);
      await fold(store, conversationId, { count: 5, text: textOf(1) });
      expect(await store.readSummary(textOf(1).summaryId)).toMatchObject({
        earliestAt: START,
        latestAt: START + 5_000,
      });
    }));
}
