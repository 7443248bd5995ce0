/** Waits until work has ended, successfully or not, or until the caller's signal aborts. The work itself continues. */
export async function waitForEnd(
  work: Promise<unknown> | null | undefined,
  signal: AbortSignal | undefined,
): Promise<void> {
  if (!work || signal?.aborted) return;
  const ended = work.then(
    () => undefined,
    () => undefined,
  );
  if (signal === undefined) return ended;
  const heard = new AbortController();
  const aborted = new Promise<void>((resolve) =>
    signal.addEventListener("abort", () => resolve(), { once: true, signal: heard.signal }),
  );
  await Promise.race([ended, aborted]);
  heard.abort();
}
