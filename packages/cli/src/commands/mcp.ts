/** `lcm mcp`: the archive for agents that speak the Model Context Protocol, on stdin and stdout or on an address of this machine. */
import type { Command } from "commander";
import { randomBytes } from "node:crypto";
import type { Engine } from "@lossless/core";
import type { McpServerFactory } from "@lossless/mcp";
import { toAction } from "../invocation.ts";
import type { Invocation } from "../invocation.ts";
import { usageError, waitForInterrupt } from "@lossless/core/doors";
import { printNote } from "../output.ts";
import { style } from "../style.ts";
import { readVersion } from "../own-files.ts";
import { addExamples, parsePort } from "./shared.ts";

/** The token of the server, so that a host's configuration stays valid when the server is restarted. */
const TOKEN_VARIABLE = "LCM_MCP_TOKEN";
/** Shorter ones can be guessed. */
const MIN_TOKEN_CHARS = 16;

interface Options {
  readonly http?: number;
}

export function defineMcp(program: Command): void {
  const command = program
    .command("mcp")
    .description("Serve the archive to agents over the Model Context Protocol")
    .option(
      "--http <port>",
      "listen on this port of this machine instead of stdin (0: any free port)",
      parsePort,
    )
    .action(toAction(runMcp));
  addExamples(command, [
    ["claude mcp add lossless -- lcm mcp", "give it to Claude Code"],
    ["codex mcp add lossless -- lcm mcp", "give it to Codex"],
    ["lcm mcp --http 8124", "answer on an address of this machine"],
  ]);
  command.addHelpText(
    "after",
    `
Agents start this command themselves and talk to it on stdin and stdout. It changes nothing. Register it under the name
lossless (lcm setup does): hosts put that name before those of the tools.

  tools      lcm_grep, lcm_describe, lcm_expand, lcm_expand_query, lcm_recent, lcm_status
  resources  lcm://conversation/3, lcm://summary/…, lcm://message/…, lcm://file/…

Only lcm_expand_query calls a model, when one is set; otherwise it answers with passages. With --owner it reads only what
belongs to that owner.

With --http it answers on /mcp, to this machine only and only with the token that it prints. LCM_MCP_TOKEN sets the token
(at least 16 characters); otherwise each start makes a new one.`,
  );
}

async function runMcp(invocation: Invocation, { http }: Options): Promise<void> {
  const { settings } = await invocation.settings();
  const { makeFactory, openOnDemand } = await import("@lossless/mcp");
  const archive = openOnDemand(() => openArchive(invocation));
  const { findProject } = await import("@lossless/interchange");
  const reader = {
    engine: archive.engine,
    owner: invocation.owner,
    // An agent starts its server in the project it works in; over HTTP there may be many.
    project: http === undefined ? findProject(process.cwd()) : undefined,
    timeZone: settings.timezone,
  };
  const factory = makeFactory(reader, readVersion());
  try {
    await (http === undefined ? serveStdio(factory) : serveHttp(invocation, factory, http));
  } finally {
    await archive.close();
  }
}

async function openArchive(invocation: Invocation): Promise<Engine> {
  const { findModel } = await import("./recall/ask.ts");
  const { findEmbed } = await import("./recall/embed.ts");
  const model = await findModel(invocation);
  const embed = await findEmbed(invocation);
  // Model usage is recorded, which writes.
  const access = model === null && embed === null ? "read" : "change";
  return invocation.openArchive(access, { thread: true, model, embed });
}

async function serveStdio(factory: McpServerFactory): Promise<void> {
  const { runStdio } = await import("@lossless/mcp");
  await Promise.race([
    runStdio(factory, { input: process.stdin, output: process.stdout, onProblem: noteProblem }),
    waitForInterrupt(),
  ]);
}

async function serveHttp(invocation: Invocation, factory: McpServerFactory, port: number): Promise<void> {
  const { startHttp } = await import("@lossless/mcp");
  const token = chooseToken();
  const ended = waitForInterrupt();
  const server = await startHttp(factory, { port, token, onProblem: noteProblem });
  try {
    const { url } = server;
    await invocation.print({
      data: { url, port: server.port, token },
      text: () =>
        `${style.name(url)}\nAuthorization: Bearer ${token}\n\n${style.faint("Whoever has the token can read the archive. Ctrl-C ends it.")}`,
    });
    await ended;
  } finally {
    await server.close();
  }
}

function chooseToken(): string {
  const given = process.env[TOKEN_VARIABLE];
  if (given === undefined || given === "") return randomBytes(24).toString("base64url");
  if (/^[\x21-\x7e]+$/.test(given) && given.length >= MIN_TOKEN_CHARS) return given;
  throw usageError(
    `cannot use ${TOKEN_VARIABLE}: it needs at least ${MIN_TOKEN_CHARS} letters, digits or signs, without spaces`,
  );
}

/** stdout belongs to the protocol. */
function noteProblem(message: string): void {
  printNote(`lcm mcp: ${message}`);
}
