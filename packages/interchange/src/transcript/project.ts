/**
 * The project a folder belongs to: the root of its git repository, or the folder itself. A worktree belongs to the repository it was made from,
 * so that conversations in one are found from the other. A folder that is not on this machine is its own project.
 */
import { existsSync, readFileSync, realpathSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";

/** @example findProject(".") // "/home/ada/app", from anywhere below it */
export function findProject(folder: string): string {
  const start = existsSync(folder) ? realpathSync(folder) : resolve(folder);
  for (let at = start; ; at = dirname(at)) {
    const root = findRoot(at);
    if (root !== null) return root;
    if (at === dirname(at)) return start;
  }
}

function findRoot(folder: string): string | null {
  const git = join(folder, ".git");
  const stats = statSync(git, { throwIfNoEntry: false });
  if (stats === undefined) return null;
  return stats.isDirectory() ? folder : (findMainRoot(git) ?? folder);
}

/** The repository of a worktree, whose `.git` is a file that names a folder inside the repository's `.git`. */
function findMainRoot(gitFile: string): string | null {
  const named = /^gitdir: (.+)[/\\]\.git[/\\]worktrees[/\\]/u.exec(readFileSync(gitFile, "utf8"))?.[1];
  return named !== undefined && existsSync(named) ? realpathSync(named) : null;
}
