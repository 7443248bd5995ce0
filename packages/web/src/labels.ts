/**
 * Labels set from the page: names, tags, pins and hiding from lists. Each can be undone and changes no message, so there is no preview; access
 * is checked as for every other change. Only the given members change, so that two pages do not undo each other.
 */
import { EngineError } from "@lossless/core";
import type { Engine, HeadedConversation, LabelUpdate, Scope } from "@lossless/core";
import { isObject } from "@lossless/core/doors";

const MAX_TEXT = 500;

export async function changeLabels(
  engine: Engine,
  scope: Scope,
  conversationId: number,
  body: unknown,
): Promise<HeadedConversation> {
  const row = await engine.labelConversation({ ...scope, conversationId, ...parseUpdate(body) });
  if (row === null) throw new EngineError("not_found", `cannot find conversation ${conversationId}`);
  return row;
}

function parseUpdate(body: unknown): LabelUpdate {
  if (!isObject(body)) throw refuse("the request", "it is not an object");
  const { name } = body;
  if (name !== undefined && name !== null && !isText(name))
    throw refuse("name", `it must be a text of at most ${MAX_TEXT} characters, or null`);
  return {
    name,
    addTags: readTags(body, "addTags"),
    removeTags: readTags(body, "removeTags"),
    pinned: readSwitch(body, "pinned"),
    unlisted: readSwitch(body, "unlisted"),
  };
}

function readTags(body: Readonly<Record<string, unknown>>, name: string): readonly string[] | undefined {
  const value = body[name];
  if (value === undefined) return undefined;
  if (Array.isArray(value) && value.every(isText)) return value;
  throw refuse(name, `it must be a list of texts of at most ${MAX_TEXT} characters`);
}

function readSwitch(body: Readonly<Record<string, unknown>>, name: string): boolean | undefined {
  const value = body[name];
  if (value === undefined || typeof value === "boolean") return value;
  throw refuse(name, "it must be true or false");
}

const isText = (value: unknown): value is string => typeof value === "string" && value.length <= MAX_TEXT;

const refuse = (what: string, cause: string): EngineError =>
  new EngineError("usage", `cannot use ${what}: ${cause}`);
