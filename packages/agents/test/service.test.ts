/** The service file: written where the manager looks, removed without a trace, and nothing else touched. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { makeTemporaryDirectory } from "@lossless/testkit";
import { expect, test } from "vitest";
import { installService, readLocationVariables, uninstallService } from "../src/index.ts";

const command = ["/opt/node bin/node", "/opt/lcm.js", "watch", "--db", '/data/100%/$HOME/"x".db'];

const env = readLocationVariables({
  CLAUDE_CONFIG_DIR: '/data/5%/"c"',
  CODEX_HOME: "/$HOME/x",
  HOME: "/h",
  XDG_DATA_HOME: "",
});

test("a unit for systemd quotes what it starts, is started, and goes again", () => {
  const home = makeTemporaryDirectory();
  const asked: string[] = [];
  const run = (program: string, args: readonly string[]): void =>
    void asked.push([program, ...args].join(" "));
  const request = { home, platform: "linux" as const, configHome: join(home, "config"), command, env, run };
  expect(uninstallService(request)).toBeNull();
  const { path, next, isTested } = installService(request);
  expect(path).toBe(join(home, "config/systemd/user/lcm-watch.service"));
  expect([next, isTested]).toEqual([null, true]);
  expect(readFileSync(path, "utf8")).toContain(
    String.raw`[Service]
Environment="CLAUDE_CONFIG_DIR=/data/5%%/\"c\""
Environment="CODEX_HOME=/$HOME/x"
ExecStart="/opt/node bin/node" "/opt/lcm.js" "watch" "--db" "/data/100%%/$$HOME/\"x\".db"`,
  );
  expect(uninstallService(request)?.path).toBe(path);
  expect(existsSync(path)).toBe(false);
  expect(asked).toEqual([
    "systemctl --user daemon-reload",
    "systemctl --user enable --now lcm-watch.service",
    "systemctl --user disable --now lcm-watch.service",
    "systemctl --user daemon-reload",
  ]);
});

test("what a manager that cannot be asked would have been told is left to the user", () => {
  const run = (): void => {
    throw new Error("no manager");
  };
  const { next } = installService({ home: makeTemporaryDirectory(), platform: "linux", command, run });
  expect(next).toBe("systemctl --user daemon-reload && systemctl --user enable --now lcm-watch.service");
});

test("launchd gets its own format, marked as untested; other systems are refused", () => {
  const request = { home: makeTemporaryDirectory(), command: ["a", "<b>"], run: () => undefined, env };
  const { path, isTested } = installService({ ...request, platform: "darwin" });
  expect(isTested).toBe(false);
  expect(readFileSync(path, "utf8")).toContain("<string>&lt;b&gt;</string>");
  expect(readFileSync(path, "utf8")).toContain("<key>CODEX_HOME</key><string>/$HOME/x</string></dict>");
  expect(() => installService({ ...request, platform: "win32" })).toThrow("only Linux and macOS");
});
