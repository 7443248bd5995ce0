/** Long output on a terminal goes through a pager, which has the terminal until it ends. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect, test } from "vitest";

const PROGRAM = `
  import { printResult } from ${JSON.stringify(import.meta.resolve("../src/output.ts"))};
  Object.assign(process.stdout, { isTTY: true, rows: 2 });
  await printResult("x", { data: {}, text: () => "1\\n2\\n3\\n" }, { version: "", durationMs: 0 }, false);
  process.stdout.write("ended");`;

test("Ctrl-C is for the pager; the program waits for its end", async () => {
  const pager = `trap 'echo left; exit' INT; cat; echo "LESS=$LESS"; echo ready >&2; while :; do sleep 0.1; done`;
  const { LESS: _own, ...env } = process.env;
  const child = spawn(process.execPath, ["--input-type=module", "--eval", PROGRAM], {
    detached: true,
    env: { ...env, LCM_PAGER: pager },
  });
  let stdout = "";
  child.stdout.on("data", (data: Buffer) => (stdout += data.toString()));
  await once(child.stderr, "data");
  // To the group, as a terminal does.
  process.kill(-child.pid!, "SIGINT");
  const [status, signal] = (await once(child, "close")) as [number | null, string | null];
  expect([status, signal, stdout]).toEqual([0, null, "1\n2\n3\nLESS=FRX\nleft\nended"]);
});
