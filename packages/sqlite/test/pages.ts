/** The pages of a SQLite file by what they are, as its format describes them. */

export type PageKind =
  | "header"
  | "schema"
  | "interior table"
  | "leaf table"
  | "interior index"
  | "leaf index"
  | "overflow"
  | "free list"
  | "free page"
  | "pointer map";

const KINDS: Readonly<Record<number, PageKind>> = {
  2: "interior index",
  5: "interior table",
  10: "leaf index",
  13: "leaf table",
};
export const HEADER_BYTES = 100;
/** Where the header says how many bytes a page has, where the free list begins, and the largest root where there are pointer maps. */
const [PAGE_SIZE_AT, FREE_LIST_AT, LARGEST_ROOT_AT] = [16, 32, 52];

export interface PageMap {
  readonly pageSize: number;
  /** Numbers of pages, from 1; that of the header has the schema too. */
  readonly pages: ReadonlyMap<PageKind, readonly number[]>;
}

export function mapPages(file: Buffer): PageMap {
  const pageSize = file.readUInt16BE(PAGE_SIZE_AT) === 1 ? 65_536 : file.readUInt16BE(PAGE_SIZE_AT);
  const free = listFree(file, pageSize);
  const pages = new Map<PageKind, number[]>([
    ["header", [1]],
    ["schema", [1]],
  ]);
  for (let page = 2; page <= file.length / pageSize; page++) {
    const kind = free.get(page) ?? nameKind(file, page, pageSize);
    pages.set(kind, [...(pages.get(kind) ?? []), page]);
  }
  return { pageSize, pages };
}

function nameKind(file: Buffer, page: number, pageSize: number): PageKind {
  const pointers = pageSize / 5;
  if (file.readUInt32BE(LARGEST_ROOT_AT) > 0 && (page - 2) % (Math.floor(pointers) + 1) === 0)
    return "pointer map";
  // Overflow pages have no type: they begin with the number of the next, which is small.
  return KINDS[file[(page - 1) * pageSize] ?? 0] ?? "overflow";
}

/** Trunks name the next trunk, then how many leaves they have, and those. */
function listFree(file: Buffer, pageSize: number): Map<number, PageKind> {
  const free = new Map<number, PageKind>();
  for (let trunk = file.readUInt32BE(FREE_LIST_AT); trunk !== 0 && !free.has(trunk);) {
    const at = (trunk - 1) * pageSize;
    free.set(trunk, "free list");
    const leaves = file.readUInt32BE(at + 4);
    for (let leaf = 0; leaf < leaves; leaf++) free.set(file.readUInt32BE(at + 8 + 4 * leaf), "free page");
    trunk = file.readUInt32BE(at);
  }
  return free;
}
