/** The files of the page that the server serves. An installed package has them beside the program; a clone builds them (`page-build.ts`). */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export interface PageFile {
  readonly type: string;
  readonly content: Buffer;
}

/** Keyed by the path of the address. */
export type PageFiles = ReadonlyMap<string, PageFile>;

const FILES: readonly (readonly [path: string, name: string, type: string])[] = [
  ["/", "index.html", "text/html; charset=utf-8"],
  ["/app.js", "app.js", "text/javascript; charset=utf-8"],
  ["/app.css", "app.css", "text/css; charset=utf-8"],
  ["/icon.svg", "icon.svg", "image/svg+xml"],
];

export async function loadPage(): Promise<PageFiles> {
  const built = await findBuilt();
  const files = FILES.map(async ([path, name, type]): Promise<[string, PageFile]> => [
    path,
    { type, content: await readFile(join(built, name)) },
  ]);
  return new Map(await Promise.all(files));
}

async function findBuilt(): Promise<string> {
  if (!import.meta.url.endsWith(".ts")) return fileURLToPath(new URL("page", import.meta.url));
  const { ensurePage } = await import("./page-build.ts");
  return ensurePage();
}
