/**
 * What a call reads from: the archive, opened when the first call needs it, for one owner. The server can be started before there is an
 * archive; until then every call says so, and the first one after it was made finds it.
 */
import type { Engine } from "@lossless/core";

export interface ArchiveReader {
  /** The archive; opened once, and tried again after a failure. */
  engine(): Promise<Engine>;
  /** Whose conversations may be read; undefined for all. Never taken from a request. */
  readonly owner: string | undefined;
  /** The project it was started in: what happened lately there is told first. */
  readonly project?: string | undefined;
  /** How times are written. */
  readonly timeZone: string;
}

/** An archive that is opened when it is first asked for. */
export function openOnDemand(open: () => Promise<Engine>): {
  engine(): Promise<Engine>;
  close(): Promise<void>;
} {
  let opened: Promise<Engine> | null = null;
  const engine = (): Promise<Engine> => {
    opened ??= open().catch((error: unknown) => {
      opened = null;
      throw error;
    });
    return opened;
  };
  const close = async (): Promise<void> => {
    const last = opened;
    opened = null;
    await last?.then((engine) => engine.close()).catch(() => undefined);
  };
  return { engine, close };
}
