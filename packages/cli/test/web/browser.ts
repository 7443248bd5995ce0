/**
 * A real Chromium without a window, driven over its DevTools protocol. Keeps what the page printed as errors and which addresses it asked
 * for, so that a test can say that there were none.
 */
import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const PLACES = [
  process.env["LCM_CHROMIUM"],
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
];
const START_MS = 60_000;
const WAIT_MS = 30_000;
const LOOK_MS = 25;

export function findChromium(): string | null {
  return PLACES.find((path) => path !== undefined && path !== "" && existsSync(path)) ?? null;
}

interface Reply {
  readonly id?: number;
  readonly method?: string;
  readonly params?: Record<string, unknown>;
  readonly result?: Record<string, unknown>;
  readonly error?: { readonly message: string };
}

export class Browser {
  /** Errors on the console, exceptions, refusals of the content security policy. */
  readonly troubles: string[] = [];
  readonly requests: string[] = [];
  readonly #child: ChildProcess;
  readonly #profile: string;
  readonly #socket: WebSocket;
  readonly #waiting = new Map<number, { resolve: (reply: Reply) => void; reject: (error: Error) => void }>();
  #nextId = 1;

  private constructor(child: ChildProcess, profile: string, socket: WebSocket) {
    this.#child = child;
    this.#profile = profile;
    this.#socket = socket;
    socket.addEventListener("message", (event) => this.#receive(JSON.parse(String(event.data)) as Reply));
  }

  static async start(executable: string): Promise<Browser> {
    const profile = mkdtempSync(join(tmpdir(), "lcm-chromium-"));
    const flags = `--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking
      --disable-component-update --disable-sync --disable-dev-shm-usage --hide-scrollbars --force-color-profile=srgb --remote-debugging-port=0`;
    const child = spawn(
      executable,
      [...flags.trim().split(/\s+/), `--user-data-dir=${profile}`, "about:blank"],
      { stdio: ["ignore", "ignore", "pipe"] },
    );
    const port = await readPort(child);
    const targets = (await (await fetch(`http://127.0.0.1:${port}/json/list`)).json()) as {
      type: string;
      webSocketDebuggerUrl: string;
    }[];
    const page = targets.find(({ type }) => type === "page");
    if (page === undefined) throw new Error("the browser has no page");
    const socket = new WebSocket(page.webSocketDebuggerUrl);
    await new Promise((resolve, reject) => {
      socket.addEventListener("open", resolve);
      socket.addEventListener("error", reject);
    });
    const browser = new Browser(child, profile, socket);
    for (const domain of ["Page", "Runtime", "Network", "Log"]) await browser.send(`${domain}.enable`);
    await browser.resize(1280, 800);
    return browser;
  }

  send(method: string, params: object = {}): Promise<Record<string, unknown>> {
    const id = this.#nextId++;
    return new Promise<Reply>((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#socket.send(JSON.stringify({ id, method, params }));
    }).then((reply) => reply.result ?? {});
  }

  async open(url: string): Promise<void> {
    await this.send("Page.navigate", { url });
  }

  async resize(width: number, height: number): Promise<void> {
    await this.send("Emulation.setDeviceMetricsOverride", {
      width,
      height,
      deviceScaleFactor: 1,
      mobile: false,
    });
  }

  async setScheme(scheme: "light" | "dark"): Promise<void> {
    await this.send("Emulation.setEmulatedMedia", {
      features: [{ name: "prefers-color-scheme", value: scheme }],
    });
  }

  /** What an expression is worth in the page. */
  async evaluate<T>(expression: string): Promise<T> {
    const answer = await this.send("Runtime.evaluate", {
      expression,
      awaitPromise: true,
      returnByValue: true,
    });
    const { exceptionDetails, result } = answer as {
      exceptionDetails?: { exception?: { description?: string } };
      result: { value: T };
    };
    if (exceptionDetails)
      throw new Error(exceptionDetails.exception?.description ?? "the page threw something");
    return result.value;
  }

  /** Looks again and again until an expression is true. */
  async until(expression: string): Promise<void> {
    const end = Date.now() + WAIT_MS;
    while (!(await this.evaluate<boolean>(`Boolean(${expression})`))) {
      if (Date.now() > end)
        throw new Error(
          `the page never came to: ${expression}\n${await this.evaluate<string>("document.body.innerText.slice(0, 2000)")}`,
        );
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    }
  }

  async press(key: string): Promise<void> {
    const text = key.length === 1 ? { text: key } : {};
    await this.send("Input.dispatchKeyEvent", { type: "keyDown", key, ...text });
    await this.send("Input.dispatchKeyEvent", { type: "keyUp", key });
  }

  async click(x: number, y: number): Promise<void> {
    for (const type of ["mouseMoved", "mousePressed", "mouseReleased"]) {
      await this.send("Input.dispatchMouseEvent", {
        type,
        x,
        y,
        button: type === "mouseMoved" ? "none" : "left",
        clickCount: 1,
      });
    }
  }

  async screenshot(): Promise<Buffer> {
    const { data } = await this.send("Page.captureScreenshot", { format: "png" });
    return Buffer.from(String(data), "base64");
  }

  async close(): Promise<void> {
    const ended = new Promise((resolve) => this.#child.once("exit", resolve));
    this.send("Browser.close").catch(() => this.#child.kill());
    await ended;
    this.#socket.close();
    rmSync(this.#profile, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  }

  #receive(reply: Reply): void {
    if (reply.id !== undefined) {
      const waiting = this.#waiting.get(reply.id);
      this.#waiting.delete(reply.id);
      if (reply.error) waiting?.reject(new Error(reply.error.message));
      else waiting?.resolve(reply);
      return;
    }
    this.#note(reply.method ?? "", reply.params ?? {});
  }

  #note(method: string, params: Record<string, unknown>): void {
    if (method === "Network.requestWillBeSent")
      this.requests.push((params["request"] as { url: string }).url);
    if (method === "Runtime.exceptionThrown") this.troubles.push(JSON.stringify(params["exceptionDetails"]));
    if (method === "Runtime.consoleAPICalled" && ["error", "warning"].includes(String(params["type"])))
      this.troubles.push(JSON.stringify(params["args"]));
    const entry = params["entry"] as { level: string; text: string; url?: string } | undefined;
    if (method === "Log.entryAdded" && entry?.level === "error")
      this.troubles.push(`${entry.text} ${entry.url ?? ""}`);
  }
}

/** The browser says on stderr where it listens. */
function readPort(child: ChildProcess): Promise<number> {
  return new Promise((resolve, reject) => {
    let said = "";
    const timer = setTimeout(() => reject(new Error(`the browser did not start: ${said}`)), START_MS);
    child.on("error", reject);
    child.stderr?.on("data", (chunk: Buffer) => {
      said += chunk.toString();
      const port = /DevTools listening on ws:\/\/127\.0\.0\.1:(\d+)/.exec(said)?.[1];
      if (port === undefined) return;
      clearTimeout(timer);
      resolve(Number(port));
    });
  });
}
