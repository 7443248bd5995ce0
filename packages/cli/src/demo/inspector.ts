/** The demo with `--web`: after the tour, its archive stays open in the web inspector. */
import { resolveSettings } from "@lossless/core";
import { openEngine } from "lossless-claw";
import { style } from "../style.ts";
import { runInspector } from "@lossless/web";
import { readVersion } from "../own-files.ts";
import type { Tour } from "./tour.ts";

export async function showInspector(tour: Tour): Promise<void> {
  const { database } = tour;
  const { settings } = resolveSettings({ config: { databasePath: database } });
  const engine = await openEngine({ database, filesDir: settings.largeFilesDir, settings, readOnly: true });
  try {
    await runInspector({
      engine,
      settings,
      scope: {},
      port: 0,
      version: readVersion(),
      database,
      onReady: ({ url }) => {
        tour.say("");
        tour.tell(`${style.title("Open in your browser")}  ${style.name(url)}`);
        tour.tell(style.faint("Ctrl-C ends it."));
      },
    });
  } finally {
    await engine.close();
  }
}
