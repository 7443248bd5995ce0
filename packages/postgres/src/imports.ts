/** What is noted of imports; the rules are in `archive/imports.ts`. */
import { toImported } from "@lossless/core/adapter";
import type { ImportedPart, Row } from "@lossless/core/ports";
import type { StoreContext } from "./store-context.ts";

const LIST = `
  SELECT import_id, conversation_id, source, at, messages FROM imports ORDER BY at DESC, import_id, conversation_id`;

export async function listImports({ sql }: StoreContext): Promise<ImportedPart[]> {
  return (await sql.all<Row<"imports">>(LIST)).map(toImported);
}
