/** Detects the agents on this machine: by the folder that each creates at its first start, or by its command. */
import { accessSync, constants, existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { findAgentFolder, listPrograms, SETUP_AGENTS, type SetupAgent, type SetupRequest } from "./hosts.ts";

export interface DetectedAgent {
  readonly agent: SetupAgent;
  readonly folder: string;
  readonly isPresent: boolean;
}

export const detectAgents = (request: Omit<SetupRequest, "agent">): DetectedAgent[] =>
  SETUP_AGENTS.map((agent) => {
    const folder = findAgentFolder({ ...request, agent });
    const path = (request.env["PATH"] ?? "").split(delimiter).filter((part) => part !== "");
    const isPresent = existsSync(folder) || listPrograms(agent).some((name) => isCommand(name, path));
    return { agent, folder, isPresent };
  });

const isCommand = (name: string, folders: readonly string[]): boolean =>
  folders.some((folder) => isExecutable(join(folder, name)));

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    // Missing, or not accessible.
    return false;
  }
}
