/** The licenses of bundled code, which must be distributed with it. */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";

const ROOT = join(import.meta.dirname, "..", "..");

/** `inputs` are the files that went into the bundle, as paths from the root. */
export async function renderNotices(inputs: readonly string[]): Promise<string> {
  const folders = new Set(
    inputs.flatMap((path) => /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1] ?? []),
  );
  const notices = await Promise.all([...folders].sort().map(renderNotice));
  return `# Software of others in this package\n\n${notices.join("\n")}`;
}

async function renderNotice(folder: string): Promise<string> {
  const home = join(ROOT, folder);
  const manifest = JSON.parse(await readFile(join(home, "package.json"), "utf8")) as {
    name: string;
    version: string;
    license: string;
  };
  const name = (await readdir(home)).find((file) => /^(licen[cs]e|copying)(\.\w+)?$/i.test(file));
  const text = name === undefined ? "" : await readFile(join(home, name), "utf8");
  const block = text === "" ? "" : `\n\`\`\`text\n${text.trim()}\n\`\`\`\n`;
  return `## ${manifest.name} ${manifest.version} (${manifest.license})\n${block}`;
}
