/**
 * The timeout for anything a test waits for. Far above what anything takes on a busy machine, so that no result depends on speed; only a test
 * that hangs reaches it.
 */
export const HANG_LIMIT_MS = 900_000;
