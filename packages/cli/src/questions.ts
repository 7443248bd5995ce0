/** Questions on a terminal. They go to stderr, so that stdout has only the result. Ctrl-C and a closed input cancel the command. */
import { createInterface } from "node:readline/promises";
import { EngineError } from "@lossless/core";

/** Whether a user can be asked. */
export const canAsk = (isJson: boolean): boolean => !isJson && process.stdin.isTTY && process.stderr.isTTY;

/** The answer, or the default when it is empty. */
export async function ask(question: string, byDefault: string): Promise<string> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  const cancelled = new Promise<never>((_, reject) => {
    const cancel = (): void =>
      reject(new EngineError("aborted", "cannot continue: cancelled; nothing more was changed"));
    terminal.once("SIGINT", cancel).once("close", cancel);
  });
  try {
    const answer = await Promise.race([terminal.question(`${question} [${byDefault}] `), cancelled]);
    return answer.trim() === "" ? byDefault : answer.trim();
  } finally {
    cancelled.catch(() => undefined);
    terminal.close();
  }
}

export async function confirm(question: string, byDefault: boolean): Promise<boolean> {
  for (;;) {
    const answer = (await ask(question, byDefault ? "Y/n" : "y/N")).toLowerCase();
    if (answer === "y/n") return byDefault;
    if (/^(?:y|yes|n|no)$/u.test(answer)) return answer.startsWith("y");
    process.stderr.write("Answer y or n.\n");
  }
}
