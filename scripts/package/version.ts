/** The text changes of a new version: pure functions, so that a dry run and the real one cannot differ. */

const PARTS = ["major", "minor", "patch"];
const VERSION = /^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)$/;
const UNRELEASED = "## Unreleased\n";

/** `request` is a version, or the part to increment. Throws with a reason when it is invalid. */
export function chooseVersion(current: string, request: string): string {
  const part = PARTS.indexOf(request);
  const version = part < 0 ? request : raise(current, part);
  if (!VERSION.test(version))
    throw new Error(
      `${request} is not a version: give three numbers, such as 1.2.3, or major, minor or patch`,
    );
  if (!isNewer(version, current)) throw new Error(`${version} is not newer than ${current}`);
  return version;
}

function raise(version: string, part: number): string {
  const numbers = readNumbers(version);
  return numbers.map((number, index) => (index > part ? 0 : number + Number(index === part))).join(".");
}

function isNewer(version: string, other: string): boolean {
  const numbers = readNumbers(version);
  const others = readNumbers(other);
  const first = numbers.findIndex((number, index) => number !== others[index]);
  return first >= 0 && numbers[first]! > others[first]!;
}

function readNumbers(version: string): number[] {
  return version.split(".").map(Number);
}

/** Moves the unreleased changes under a heading of the new version. */
export function releaseChanges(changes: string, version: string, day: string): string {
  const start = changes.indexOf(UNRELEASED);
  if (start < 0) throw new Error("CHANGELOG.md has no heading Unreleased");
  const body = changes.slice(start + UNRELEASED.length);
  if (!/^- /m.test(body.split(/^## /m)[0] ?? ""))
    throw new Error("CHANGELOG.md has nothing under Unreleased: there is nothing to release");
  return `${changes.slice(0, start)}${UNRELEASED}\n## ${version}, ${day}\n${body}`;
}

interface Manifest {
  name?: string;
  version?: string;
  dependencies?: Record<string, string>;
  devDependencies?: Record<string, string>;
}

/** Sets the version of a manifest, or of an entry of the lock file, and of its dependencies on our own packages. */
export function setVersion(manifest: Manifest, version: string, ours: ReadonlySet<string>): void {
  manifest.version = version;
  for (const needs of [manifest.dependencies, manifest.devDependencies])
    for (const name of Object.keys(needs ?? {})) if (ours.has(name)) needs![name] = version;
}

interface LockFile extends Manifest {
  packages: Record<string, Manifest>;
}

/** The lock file names the project itself and each of its packages. */
export function setLockedVersion(lock: LockFile, version: string, ours: ReadonlySet<string>): void {
  lock.version = version;
  for (const [path, entry] of Object.entries(lock.packages))
    if (!path.includes("node_modules/")) setVersion(entry, version, ours);
}
