/**
 * Shared code for formats whose lines need little explanation: each format's file says how to recognise a line, which member has the session id,
 * which lines are messages, and how they are linked. Every line is kept; a line that is not a message is hidden.
 */
import { isObject, type JsonObject } from "@lossless/core/formats";

import { readId, readParentId, readText, readTime } from "./format.ts";
import type { EntryFacts, Recognition, ToldOrigin, TranscriptFormat } from "./format.ts";
import type { FormatName } from "./names.ts";

interface AgentLines {
  readonly name: FormatName;
  readonly title: string;
  readonly recognise: (entry: JsonObject) => Recognition;
  /** The session a line names; most lines name none. */
  readonly session?: (entry: JsonObject) => unknown;
  readonly isMessage: (entry: JsonObject) => boolean;
  readonly id?: (entry: JsonObject) => unknown;
  /** Given for formats where going back in the session starts a branch at an older entry. */
  readonly parentId?: (entry: JsonObject) => unknown;
  readonly isHeader?: (entry: JsonObject) => boolean;
  readonly time?: (entry: JsonObject) => unknown;
}

export const yes = (condition: boolean, how: Recognition = "certain"): Recognition =>
  condition ? how : "no";
export const isText = (value: unknown): value is string => typeof value === "string";
export const holdsRole = (value: unknown): boolean => isObject(value) && isText(value["role"]);
/** Builds a format from the description of its lines. */
export function defineAgentLines(agent: AgentLines): TranscriptFormat {
  const { name, title, recognise } = agent;
  const readFacts = (entry: JsonObject): EntryFacts => {
    const isHeader = agent.isHeader?.(entry) ?? false;
    return {
      id: readId(agent.id?.(entry)),
      parentId: agent.parentId === undefined ? undefined : readParentId(agent.parentId(entry)),
      createdAt: readTime(agent.time?.(entry) ?? entry["timestamp"]),
      hidden: agent.isMessage(entry) ? [] : ["meta"],
      treeRole: isHeader ? "header" : agent.parentId === undefined ? "none" : "entry",
      isPrompt: false,
    };
  };
  return {
    name,
    title,
    branchRule: "path",
    namesSession: agent.session !== undefined,
    recognise,
    readSession: (entry) => {
      const id = readId(agent.session?.(entry));
      return id === undefined ? null : { id, isSubAgent: false };
    },
    readFacts,
    readOrigin,
  };
}

/** Most formats use the same names, on the line or below `data`; Copilot has its own `context`. */
function readOrigin(entry: JsonObject): ToldOrigin {
  const data = isObject(entry["data"]) ? entry["data"] : {};
  const context = isObject(data["context"]) ? data["context"] : {};
  return {
    folder: readText(entry["cwd"]) ?? readText(context["cwd"]),
    branch: readText(entry["gitBranch"]) ?? readText(context["branch"]),
    title: readText(entry["sessionTitle"]),
    model: readText(entry["model"]) ?? readText(data["chosenModel"]) ?? readText(data["newModel"]),
  };
}
