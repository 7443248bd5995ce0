/** `lcm reindex`: rebuilds the full-text index online, beside the one in use. */
import type { Command } from "commander";
import { runCancellable, toAction } from "../../invocation.ts";
import type { Invocation } from "../../invocation.ts";
import { countOf } from "@lossless/core/doors";
import { countNote, startProgress } from "../../progress.ts";
import { style } from "../../style.ts";
import { addExamples } from "../shared.ts";

export function defineReindex(program: Command): void {
  const command = program
    .command("reindex")
    .description("Rebuild the search index online")
    .action(toAction(runReindex));
  addExamples(command, [["lcm reindex", "if search is degraded, or verify reports the index"]]);
}

async function runReindex(invocation: Invocation): Promise<void> {
  const progress = startProgress("Indexing", { isWanted: !invocation.isJson });
  const { messages } = await runCancellable(
    (signal) =>
      invocation.withArchive(
        "change",
        (engine) =>
          engine.reindex({
            signal,
            onProgress: (done, total) => progress.update(done, total, countNote(done, total, "messages")),
          }),
        { thread: true },
      ),
    { isPatient: true, what: "the index" },
  ).finally(() => progress.finish());
  await invocation.print({
    data: { messages },
    text: () => `${style.good("ok")}  ${countOf(messages, "message")} indexed`,
  });
}
