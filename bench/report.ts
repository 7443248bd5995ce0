/** The result of a benchmark, and its output: an aligned table for people or, with `--json`, one line for programs. */

export interface BenchTable {
  readonly title: string;
  readonly rows: BenchResult["rows"];
}

export interface BenchResult {
  readonly name: string;
  readonly rows: readonly Record<string, string | number>[];
  /** More tables, each with its own columns. */
  readonly tables?: readonly BenchTable[];
  readonly notes?: readonly string[];
}

/** The result as an aligned table; numbers to the right, columns in the order they first appear. */
export function renderTable(rows: BenchResult["rows"]): string {
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const cells = rows.map((row) => columns.map((column) => String(row[column] ?? "")));
  const widths = columns.map((column, at) =>
    Math.max(column.length, ...cells.map((row) => row[at]?.length ?? 0)),
  );
  const isNumeric = columns.map((column) => rows.every((row) => typeof (row[column] ?? 0) === "number"));
  const renderLine = (values: readonly string[]): string =>
    values
      .map((value, at) => (isNumeric[at] ? value.padStart(widths[at] ?? 0) : value.padEnd(widths[at] ?? 0)))
      .join("  ")
      .trimEnd();
  return [
    renderLine(columns),
    renderLine(widths.map((width) => "-".repeat(width))),
    ...cells.map(renderLine),
  ].join("\n");
}

/** Prints a result; with `json` as one line of JSON instead. */
export function printResult(result: BenchResult, options: { readonly json?: boolean } = {}): void {
  if (options.json) {
    process.stdout.write(`${JSON.stringify(result)}\n`);
    return;
  }
  console.log(`\n${result.name}\n`);
  if (result.rows.length > 0) console.log(renderTable(result.rows));
  for (const { title, rows } of result.tables ?? []) console.log(`\n${title}\n\n${renderTable(rows)}`);
  for (const note of result.notes ?? []) console.log(`\n${note}`);
}
