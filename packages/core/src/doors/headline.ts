/**
 * What people read about a conversation besides its heading: project, agent, branch. Ids come last, and are dropped first if room is short.
 */
import { basename } from "node:path";
import type { Origin } from "../model/origin.ts";
import { toOneLine } from "./format.ts";

/** The folder's own name; the whole path is in the details. */
export const nameProject = (project: string | null): string =>
  project === null ? "" : toOneLine(basename(project) || project);

/** "app, claude-code, main", as far as it is known. */
export const describeOrigin = ({
  project,
  agent,
  branch,
}: Pick<Origin, "project" | "agent" | "branch">): string =>
  [nameProject(project), toOneLine(agent ?? ""), toOneLine(branch ?? "")]
    .filter((word) => word !== "")
    .join(", ");
