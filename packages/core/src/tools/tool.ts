/**
 * What a tool is, for any host: a name, a description, a JSON Schema, and a function that returns compact text for the model and the same
 * as structured details. The caller comes from the host's context, never from the arguments: a session of that host, or an owner if the
 * door has no sessions.
 */
import type { Engine } from "../engine/engine.ts";
import { EngineError } from "../model/errors.ts";
import type { Caller } from "../recall/reach.ts";

/** A session of a host, or an owner, who sees all of its conversations. One is always required: nobody becomes the operator by omission. */
export type ToolCaller =
  | { readonly session: NonNullable<Caller["session"]> }
  | { readonly owner: string | undefined };

export type ToolContext = ToolCaller & {
  readonly engine: Pick<Engine, "grep" | "describe" | "expand" | "ask">;
  readonly signal?: AbortSignal;
  /** The time zone of times; UTC if absent. */
  readonly timeZone?: string;
};

export interface ToolResult {
  readonly text: string;
  readonly details: unknown;
}

interface PropertySchema {
  readonly type: "string" | "integer" | "boolean" | "array";
  readonly description?: string;
  readonly enum?: readonly string[];
  readonly items?: { readonly type: "string" };
  readonly minimum?: number;
  readonly maximum?: number;
}

export interface ToolSchema {
  readonly type: "object";
  readonly properties: Readonly<Record<string, PropertySchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties: false;
}

interface NamedSchema {
  readonly name: string;
  readonly parameters: ToolSchema;
}

export interface ToolDefinition extends NamedSchema {
  readonly name: "lcm_grep" | "lcm_describe" | "lcm_expand_query" | "lcm_expand";
  readonly description: string;
  run(context: ToolContext, params: unknown): Promise<ToolResult>;
}

/** Where a search looks; the same words in every tool. */
export const SCOPE_PROPERTIES = {
  conversationId: { type: "integer", description: "only this conversation" },
  allConversations: { type: "boolean", description: "all your conversations, not only this session's" },
} as const satisfies ToolSchema["properties"];

/** Filters by the origin of conversations, among all of the caller's. */
export const ORIGIN_PROPERTIES = {
  project: { type: "string", description: "absolute path" },
  agent: { type: "string", description: "such as codex" },
  exceptSession: { type: "string" },
} as const satisfies ToolSchema["properties"];

/** The caller, in the engine's terms. */
export function callerOf(context: ToolContext): Caller {
  return "session" in context ? { session: context.session } : { owner: context.owner };
}

/** Checks arguments against the schema; models send wrong ones, and the error should teach. Null counts as absent. */
export function readParams<T>(tool: NamedSchema, params: unknown): T {
  const given = (params ?? {}) as Record<string, unknown>;
  if (typeof given !== "object" || Array.isArray(given))
    throw refuse(tool.name, "its arguments are not an object", tool.parameters);
  const checked: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(given)) {
    const schema = tool.parameters.properties[name];
    if (!schema) throw refuse(tool.name, `there is no parameter ${name}`, tool.parameters);
    if (value === null || value === undefined) continue;
    checked[name] = checkValue(tool, name, schema, value);
  }
  for (const name of tool.parameters.required ?? []) {
    if (checked[name] === undefined) throw refuse(tool.name, `${name} is missing`, tool.parameters);
  }
  return checked as T;
}

function checkValue(tool: NamedSchema, name: string, schema: PropertySchema, value: unknown): unknown {
  if (schema.type === "integer") {
    const number = typeof value === "string" && value.trim() !== "" ? Number(value) : value;
    const { minimum = -Infinity, maximum = Infinity } = schema;
    if (Number.isInteger(number) && (number as number) >= minimum && (number as number) <= maximum)
      return number;
  } else if (schema.type === "array") {
    const list = typeof value === "string" ? [value] : value;
    if (Array.isArray(list) && list.every((item) => typeof item === "string")) return list;
  } else if (typeof value === schema.type && (!schema.enum || schema.enum.includes(value as string)))
    return value;
  const wanted = schema.enum ? `one of ${schema.enum.join(", ")}` : describeType(schema);
  throw refuse(tool.name, `${name} must be ${wanted}`, tool.parameters);
}

function describeType({ type, minimum, maximum }: PropertySchema): string {
  if (type === "array") return "a list of texts";
  if (type !== "integer") return `a ${type}`;
  return maximum === undefined
    ? `a whole number of at least ${minimum ?? 1}`
    : `a whole number from ${minimum ?? 0} to ${maximum}`;
}

function refuse(name: string, why: string, schema: ToolSchema): EngineError {
  return new EngineError("usage", `cannot run ${name}: ${why}`, {
    hint: `parameters: ${Object.keys(schema.properties).join(", ")}`,
  });
}

/** `2026-03-01 09:30`, in the user's zone. */
export function formatTime(time: number, timeZone = "UTC"): string {
  return new Date(time).toLocaleString("sv-SE", { timeZone }).slice(0, 16);
}
