/** `lcm`, from a command line to an exit status. Every error of every command ends here, and nowhere else. */
import { describeFailure } from "./exit.ts";
import { printFailure } from "./output.ts";
import { buildProgram, isHelpShown } from "./program.ts";

export async function main(args: readonly string[]): Promise<void> {
  // A reader that has seen enough (`| head`) is no error.
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") process.exit(process.exitCode ?? 0);
    throw error;
  });
  try {
    await buildProgram().parseAsync(args, { from: "user" });
  } catch (error) {
    if (isHelpShown(error)) return;
    fail(error, wantsJson(args));
  }
}

function fail(error: unknown, isJson: boolean): void {
  const failure = describeFailure(error);
  if (process.env["LCM_DEBUG"]) console.error(error);
  printFailure(failure, isJson);
  process.exitCode = failure.exit;
  // What was cancelled may still be at work in its thread; it writes nothing any more.
  if (failure.code === "aborted") process.exit();
}

/** Asked of the words themselves, because the command line may be what is wrong. */
function wantsJson(args: readonly string[]): boolean {
  const end = args.indexOf("--");
  return (end < 0 ? args : args.slice(0, end)).includes("--json");
}
