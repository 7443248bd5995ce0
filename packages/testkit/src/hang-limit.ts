/**
 * When something that is waited for counts as never coming. Far above what anything takes on a busy machine, so that no result depends on
 * how fast the machine is; only a test that hangs ends by it.
 */
export const HANG_LIMIT_MS = 900_000;
