/** The watcher as a user service: a unit for systemd, or an agent for launchd. Only the one file named here is written or removed. */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { EngineError } from "@lossless/core";

const UNIT = "lcm-watch.service";
const LABEL = "dev.lossless-claw.watch";

export interface ServiceRequest {
  readonly home: string;
  readonly platform: NodeJS.Platform;
  readonly configHome?: string | undefined;
  /** The program with its arguments. */
  readonly command: readonly string[];
  /** Variables to start it with. */
  readonly env?: Readonly<Record<string, string>>;
  /** Runs a command of the service manager; throws when that fails. */
  readonly run?: (program: string, args: readonly string[]) => void;
}

export interface ServiceResult {
  readonly path: string;
  /** Commands for the user to run, if the service manager could not be called. */
  readonly next: string | null;
  readonly isTested: boolean;
}

export function installService(request: ServiceRequest): ServiceResult {
  const { path, text, start, isTested } = describeService(request);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text, { mode: 0o600 });
  return { path, next: runAll(start, request.run), isTested };
}

/** Null when it is not installed. */
export function uninstallService(request: ServiceRequest): ServiceResult | null {
  const { path, stop, after, isTested } = describeService(request);
  if (!existsSync(path)) return null;
  runAll(stop, request.run);
  rmSync(path);
  return { path, next: runAll(after, request.run), isTested };
}

type Commands = readonly (readonly string[])[];

interface Service {
  readonly path: string;
  readonly text: string;
  readonly start: Commands;
  readonly stop: Commands;
  readonly after: Commands;
  readonly isTested: boolean;
}

function describeService({ home, platform, configHome, command, env = {} }: ServiceRequest): Service {
  if (platform === "darwin") {
    const path = join(home, "Library", "LaunchAgents", `${LABEL}.plist`);
    const start = [["launchctl", "load", "-w", path]];
    return {
      path,
      text: writePlist(command, Object.entries(env)),
      start,
      stop: [["launchctl", "unload", path]],
      after: [],
      isTested: false,
    };
  }
  if (platform !== "linux")
    throw new EngineError("usage", `cannot install a service on ${platform}: only Linux and macOS have one`, {
      hint: "run lcm watch in a terminal",
    });
  const path = join(configHome ?? join(home, ".config"), "systemd", "user", UNIT);
  const reload = ["systemctl", "--user", "daemon-reload"];
  return {
    path,
    text: writeUnit(command, Object.entries(env)),
    start: [reload, ["systemctl", "--user", "enable", "--now", UNIT]],
    stop: [["systemctl", "--user", "disable", "--now", UNIT]],
    after: [reload],
    isTested: true,
  };
}

type Variables = readonly (readonly [name: string, value: string])[];

const writeUnit = (command: readonly string[], variables: Variables): string => `[Unit]
Description=lossless-claw: store the sessions of agents

[Service]
${variables.map(([name, value]) => `Environment=${quoteValue(`${name}=${value}`)}\n`).join("")}ExecStart=${command.map(quoteForUnit).join(" ")}
Restart=on-failure
RestartSec=5
Nice=10

[Install]
WantedBy=default.target
`;

/** systemd reads quotes and backslashes as C does, and expands % everywhere and $ in commands. */
const quoteForUnit = (word: string): string => quoteValue(word).replaceAll("$", "$$$$");
const quoteValue = (word: string): string =>
  `"${word.replaceAll(/["\\]/gu, String.raw`\$&`).replaceAll("%", "%%")}"`;

const escapeXml = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

const writePlist = (
  command: readonly string[],
  variables: Variables,
): string => `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0"><dict>
  <key>Label</key><string>${LABEL}</string>
  <key>ProgramArguments</key><array>${command.map((word) => `<string>${escapeXml(word)}</string>`).join("")}</array>
  <key>EnvironmentVariables</key><dict>${variables.map(([name, value]) => `<key>${name}</key><string>${escapeXml(value)}</string>`).join("")}</dict>
  <key>RunAtLoad</key><true/>
  <key>KeepAlive</key><dict><key>SuccessfulExit</key><false/></dict>
  <key>ProcessType</key><string>Background</string>
</dict></plist>
`;

/** The commands that failed, for the user to run; null when all succeeded. */
function runAll(commands: Commands, run: NonNullable<ServiceRequest["run"]> = ask): string | null {
  for (const [at, [program = "", ...args]] of commands.entries()) {
    try {
      run(program, args);
    } catch {
      return commands
        .slice(at)
        .map((words) => words.join(" "))
        .join(" && ");
    }
  }
  return null;
}

/** A service manager that is running answers at once. */
function ask(program: string, args: readonly string[]): void {
  execFileSync(program, args, { stdio: "ignore", timeout: 20_000 });
}
