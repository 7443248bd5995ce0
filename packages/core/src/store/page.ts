/** Keyset paging: `after` is the cursor of the last row seen; null starts at the beginning. */
export interface Page<T> {
  readonly items: T[];
  readonly next: string | null;
}
