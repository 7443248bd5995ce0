/**
 * Finds the address and key of a provider, for use outside a host. Order: the environment, then a custom provider of OpenClaw. Our own settings
 * name models and never hold keys. Host files are read and never written; an unreadable file is skipped.
 */
import type { ModelRef } from "@lossless/core";
import { isObject } from "@lossless/core/doors";
import type { Environment } from "@lossless/core/settings";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Endpoint } from "./dialect.ts";
import { makeFailure, type Failure } from "./failures.ts";

export interface EndpointLocations {
  readonly env: Environment;
  readonly stateDir: string;
}

export async function findEndpoint(ref: ModelRef, locations: EndpointLocations): Promise<Endpoint | Failure> {
  const provider = ref.provider === "" ? guessProvider(ref.model, locations.env) : ref.provider;
  const fromEnvironment = findInEnvironment(provider, locations.env);
  const found = fromEnvironment ?? (await findInHostFiles(provider, locations));
  if (found === null)
    return makeFailure("auth", `no key for the provider ${provider}: ${describeWays(provider)}`);
  if ("kind" in found || URL.canParse(found.baseUrl)) return found;
  return makeFailure("denied", `the address of the provider ${provider} is not a URL`);
}

/** Guesses the provider of a model from its name, or uses the configured endpoint. */
function guessProvider(model: string, env: Environment): string {
  if (model.startsWith("claude")) return "anthropic";
  const hasOpenAi = read(env, "OPENAI_API_KEY") !== null || read(env, "OPENAI_BASE_URL") !== null;
  return !hasOpenAi && read(env, "OLLAMA_HOST") !== null ? "ollama" : "openai";
}

function describeWays(provider: string): string {
  const prefix = variablePrefix(provider);
  const address = provider in ADDRESSES ? "" : ` and ${prefix}_BASE_URL`;
  return `set ${prefix}_API_KEY${address}, or name it in the host's models.providers`;
}

// ---- environment

const ADDRESSES: Readonly<Record<string, string>> = {
  anthropic: "https://api.anthropic.com",
  openai: "https://api.openai.com/v1",
};

/** `ANTHROPIC_API_KEY`, `OPENAI_BASE_URL`, and the same for any other name. Only Ollama needs neither. */
function findInEnvironment(provider: string, env: Environment): Endpoint | null {
  if (provider === "ollama") return findOllama(env);
  const prefix = variablePrefix(provider);
  const apiKey = read(env, `${prefix}_API_KEY`);
  const baseUrl = read(env, `${prefix}_BASE_URL`) ?? (apiKey === null ? undefined : ADDRESSES[provider]);
  if (baseUrl === undefined) return null;
  const api = provider === "anthropic" ? "anthropic" : "openai";
  return { provider, api, baseUrl: trimSlash(baseUrl), apiKey, headers: {} };
}

const OLLAMA_PORT = "11434";

/** Ollama's variable also configures where its server listens, so it may be a bare address or a wildcard. */
function findOllama(env: Environment): Endpoint | null {
  const host = read(env, "OLLAMA_HOST");
  if (host === null) return null;
  return { ...ollamaAt(host), apiKey: read(env, "OLLAMA_API_KEY") };
}

function ollamaAt(host: string): Endpoint {
  const hasScheme = /^[a-z]+:\/\//i.test(host);
  const address = (hasScheme ? host : `http://${host.startsWith(":") ? "127.0.0.1" : ""}${host}`)
    .replace("//0.0.0.0", "//127.0.0.1")
    .replace(/\/+$/, "");
  const hasPort = hasScheme || /:\d+$/.test(address);
  const baseUrl = withVersion(hasPort ? address : `${address}:${OLLAMA_PORT}`);
  return { provider: "ollama", api: "openai", baseUrl, apiKey: null, headers: {} };
}

const variablePrefix = (provider: string): string => provider.toUpperCase().replace(/[^A-Z0-9]+/g, "_");

function read(env: Environment, name: string): string | null {
  const value = env[name]?.trim() ?? "";
  return value === "" ? null : value;
}

const trimSlash = (url: string): string => url.replace(/\/+$/, "");
const withVersion = (url: string): string => (url.endsWith("/v1") ? url : `${url}/v1`);

// ---- the host's files

/** Maps the host's API names to ours. */
const APIS: Readonly<Record<string, Endpoint["api"]>> = {
  "openai-completions": "openai",
  "openai-chat": "openai",
  "anthropic-messages": "anthropic",
  ollama: "openai",
};

async function findInHostFiles(
  provider: string,
  { env, stateDir }: EndpointLocations,
): Promise<Endpoint | Failure | null> {
  const files = ["openclaw.json", "models.json", join("agents", "main", "agent", "models.json")];
  for (const file of files) {
    const entry = findProvider(await readJson(join(stateDir, file)), provider);
    if (entry !== null) return toEndpoint(provider, entry, env);
  }
  // Ollama's default address, unless configured otherwise.
  return provider === "ollama" ? ollamaAt("127.0.0.1") : null;
}

async function readJson(file: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(file, "utf8")) as unknown;
  } catch {
    // Missing, not readable, or in the host's wider syntax: treat it as naming no provider.
    return null;
  }
}

/** `models.providers.<id>` in the host's config, `providers.<id>` in a file with only models. */
function findProvider(root: unknown, provider: string): Record<string, unknown> | null {
  if (!isObject(root)) return null;
  const models = isObject(root["models"]) ? root["models"] : root;
  const providers = isObject(models["providers"]) ? models["providers"] : {};
  const entry = Object.hasOwn(providers, provider) ? providers[provider] : null;
  return isObject(entry) && typeof entry["baseUrl"] === "string" && entry["baseUrl"] !== "" ? entry : null;
}

function toEndpoint(provider: string, entry: Record<string, unknown>, env: Environment): Endpoint | Failure {
  const spoken = typeof entry["api"] === "string" ? entry["api"] : "openai-completions";
  const api = APIS[spoken];
  if (api === undefined) {
    return makeFailure(
      "denied",
      `the provider ${provider} speaks ${spoken}, which only the host understands`,
    );
  }
  const address = trimSlash(entry["baseUrl"] as string);
  return {
    provider,
    api,
    baseUrl: spoken === "ollama" ? withVersion(address) : address,
    apiKey: resolveSecret(entry["apiKey"], env),
    headers: readHeaders(entry["headers"], env),
  };
}

/** A key in the host's notation: the key itself, the name of a variable, `${NAME}`, or a reference to the environment. */
function resolveSecret(value: unknown, env: Environment): string | null {
  if (isObject(value)) {
    return value["source"] === "env" && typeof value["id"] === "string" ? read(env, value["id"]) : null;
  }
  if (typeof value !== "string" || value.trim() === "") return null;
  const named = /^\$\{([A-Za-z_]\w*)\}$/.exec(value.trim())?.[1];
  if (named !== undefined) return read(env, named);
  return (/^[A-Z][A-Z0-9_]+$/.test(value) ? read(env, value) : null) ?? value.trim();
}

function readHeaders(value: unknown, env: Environment): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const [name, given] of isObject(value) ? Object.entries(value) : []) {
    const resolved = resolveSecret(given, env);
    if (resolved !== null) headers[name.toLowerCase()] = resolved;
  }
  return headers;
}
