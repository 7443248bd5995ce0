/**
 * Which tests a run has: `scripts/run-tests.ts` names a suite. Without one, as in `npx vitest run <file>`, every file can be run. A file
 * belongs to the browser suite when it imports the browser, to the PostgreSQL suite when it imports that server, and to the soak suite when it asks how often to repeat itself, or has properties.
 */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { defineConfig } from "vitest/config";
import { HANG_LIMIT_MS } from "./packages/testkit/src/hang-limit.ts";

const EVERY = ["packages/*/test/**/*.test.ts", "test/**/*.test.ts"];
const BROWSER = "@lossless/testkit/chromium.ts";
const POSTGRES = "@lossless/testkit/postgres-server.ts";
const SOAK = ["rounds", "properties", "linear-time"].map((file) => `@lossless/testkit/${file}.ts`);

const importing = (...modules: string[]): string[] =>
  globSync(EVERY).filter((file) => {
    const text = readFileSync(file, "utf8");
    return modules.some((module) => text.includes(`"${module}"`));
  });

const SUITES: Readonly<Record<string, { include: string[]; exclude?: string[] }>> = {
  every: { include: EVERY },
  test: { include: EVERY, exclude: importing(BROWSER, POSTGRES) },
  browser: { include: importing(BROWSER) },
  postgres: { include: importing(POSTGRES) },
  soak: { include: importing(...SOAK) },
};

export default defineConfig({
  test: {
    ...SUITES[process.env["LCM_SUITE"] ?? "every"],
    testTimeout: HANG_LIMIT_MS,
    hookTimeout: HANG_LIMIT_MS,
    expect: { poll: { timeout: HANG_LIMIT_MS } },
    pool: "forks",
    // A process for each file would read and compile the same modules two hundred times. What a file changes in its process, it changes back.
    isolate: false,
    // Node reads the files itself, as it does for users: code that Vite rewrites takes up to half as long again.
    experimental: { viteModuleRunner: false, nodeLoader: false },
    // Processes and threads that tests start find what was compiled before.
    env: { NODE_COMPILE_CACHE: join(import.meta.dirname, "node_modules/.cache/lcm-tests") },
    maxWorkers: "100%",
  },
});
