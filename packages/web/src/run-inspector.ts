/** Runs the inspector on an open archive until Ctrl-C. Shared by `lcm web` and the demo. */
import type { Engine, Scope, Settings } from "@lossless/core";
import { waitForInterrupt } from "@lossless/core/doors";
import type { ReplacedSetting } from "@lossless/core/settings";
import { startInspector } from "./server.ts";

export interface InspectorOptions {
  readonly engine: Engine;
  readonly settings: Settings;
  readonly scope: Scope;
  readonly port: number;
  /** The version of the program that serves the page. */
  readonly version: string;
  /** The archive as it was named with `--db`, for the commands that the page shows; null when the settings name it. */
  readonly database?: string | null;
  /** Why the model of the settings cannot be asked, for the doctor. */
  readonly modelProblem?: string | null;
  /** Rejected settings, for the doctor. */
  readonly replacedSettings?: readonly ReplacedSetting[];
  /** File with prices of models, for the page of figures. */
  readonly prices?: string | undefined;
  /** Absent: read-only. */
  readonly write?: { readonly model: string | null };
  readonly onReady: (inspector: { readonly url: string; readonly port: number }) => void | Promise<void>;
}

export async function runInspector(options: InspectorOptions): Promise<void> {
  const {
    engine,
    settings,
    scope,
    port,
    version,
    database = null,
    prices,
    write,
    modelProblem = null,
    replacedSettings = [],
    onReady,
  } = options;
  const inspector = await startInspector({
    engine,
    scope,
    port,
    timezone: settings.timezone,
    version,
    database,
    prices,
    write: write === undefined ? null : { settings, ...write },
    examine: async () => {
      const { examine } = await import("@lossless/core/repair");
      return examine({
        engine,
        settings,
        databasePath: settings.databasePath,
        filesDir: settings.largeFilesDir,
        modelProblem,
        replacedSettings,
      });
    },
  });
  const ended = waitForInterrupt();
  try {
    await onReady(inspector);
    await ended;
  } finally {
    await inspector.close();
  }
}
