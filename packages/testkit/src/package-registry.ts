/** A registry with one package, on loopback: the install command of users can be tested before publishing. */
import { spawnSync } from "node:child_process";
import { hash } from "node:crypto";
import { readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { startLoopback, type LoopbackServer } from "./loopback.ts";

/** Packs a folder as `npm publish` would, and returns the archive. */
export function packPackage(folder: string, target: string): string {
  const packed = spawnSync("npm", ["pack", "--json", "--pack-destination", target], {
    cwd: folder,
    encoding: "utf8",
    shell: process.platform === "win32",
  });
  if (packed.status !== 0) throw new Error(`cannot pack ${folder}:\n${packed.stderr}`);
  const [{ filename }] = JSON.parse(packed.stdout.slice(packed.stdout.indexOf("["))) as [
    { filename: string },
  ];
  return join(target, filename);
}

/** Serves the archive of a package whose manifest is in `folder`. */
export async function startRegistry(folder: string, archive: string): Promise<LoopbackServer> {
  const manifest = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as {
    name: string;
    version: string;
  };
  const { name, version } = manifest;
  const content = readFileSync(archive);
  const path = `/${name}/-/${basename(archive)}`;
  const server = await startLoopback((request, response) => {
    if (request.url === path) return response.end(content);
    if (request.url !== `/${name}`) return response.writeHead(404).end("{}");
    const dist = {
      tarball: `${server.url}${path}`,
      shasum: hash("sha1", content),
      integrity: `sha512-${hash("sha512", content, "base64")}`,
    };
    response.setHeader("content-type", "application/json");
    return response.end(
      JSON.stringify({
        name,
        "dist-tags": { latest: version },
        versions: { [version]: { ...manifest, dist } },
      }),
    );
  });
  return server;
}
