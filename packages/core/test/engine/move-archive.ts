/** An archive exported, imported into a new one, twice, and exported from there: the same bytes, and the second import brings nothing. */
import { mkdirSync, readFileSync, rmSync } from "node:fs";

import { exportArchive, importArchive } from "@lossless/interchange/testing";

import { deriveMessage } from "../../src/ingest/prepare.ts";
import type { Store } from "../../src/store/store.ts";
import { makeSqliteGround } from "./grounds.ts";
import type { Ground } from "./grounds.ts";

export async function moveAndCompare(ground: Ground, folder: string): Promise<string[]> {
  mkdirSync(folder);
  const [out, back] = [`${folder}/out.lcmx`, `${folder}/back.lcmx`];
  const second = await (await makeSqliteGround(folder)).openStore({ readOnly: false });
  try {
    await withStore(ground, (store) => exportArchive(store, { out }));
    const take = () => importArchive(second, { path: out, derive: deriveMessage, now: 1 });
    const { problems } = await take();
    const again = await take();
    const report = await second.verify(deriveMessage, () => undefined);
    await exportArchive(second, { out: back });
    const faults = [...problems, ...report.problems].map(({ message }) => `in the copy: ${message}`);
    if (again.imported > 0) faults.push(`a second import brought ${again.imported} messages`);
    if (!readFileSync(out).equals(readFileSync(back))) faults.push("what the copy exports is not the same");
    return faults;
  } finally {
    await second.close();
    rmSync(folder, { recursive: true });
  }
}

async function withStore(ground: Ground, work: (store: Store) => Promise<unknown>): Promise<void> {
  const store = await ground.openStore({ readOnly: true });
  try {
    await work(store);
  } finally {
    await store.close();
  }
}
