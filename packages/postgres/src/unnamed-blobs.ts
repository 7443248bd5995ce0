/**
 * Removes large files that no row names, under the locks of their conversations: otherwise another program could find a file, keep it, and
 * name it in a row just before it is removed.
 */
import type { StoreContext } from "./store-context.ts";

const LOCK = `
  SELECT conversation_id FROM conversations WHERE conversation_id = ANY($1::bigint[]) ORDER BY conversation_id FOR NO KEY UPDATE`;
const NAMED = "SELECT storage_path FROM large_files WHERE storage_path = ANY($1::text[])";

export async function removeUnnamed(
  { sql, files }: StoreContext,
  paths: readonly string[],
): Promise<string[]> {
  if (paths.length === 0) return [];
  return sql.write(async (own) => {
    await own.all(LOCK, [...new Set(paths.map((path) => Number.parseInt(path, 10) || 0))]);
    const rows = await own.all<{ storage_path: string }>(NAMED, [...paths]);
    const named = new Set(rows.map((row) => row.storage_path));
    const removed: string[] = [];
    for (const path of paths) if (!named.has(path) && (await files.discard(own, path))) removed.push(path);
    return removed;
  });
}
