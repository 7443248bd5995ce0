/** Requests to the web inspector, byte for byte on its socket. It answers with one of our statuses, never with 500, and keeps running. */
import { connect } from "node:net";
import { openSite } from "../../../packages/web/test/archive.ts";
import { hold } from "../target.ts";
import type { Target } from "../target.ts";

/** The response is complete when the server has sent nothing for this long. */
const IDLE_MS = 30;
const LONGEST_MS = 20_000;

export const inspectorTarget: Target = {
  name: "inspector",
  words: [
    "GET ",
    "POST ",
    "HEAD ",
    "/api/overview",
    "/api/conversations",
    "/api/messages/1",
    "/api/search?q=",
    "/api/context",
    "/api/graph/1",
    "/api/actions/preview",
    "/api/actions/apply",
    "?limit=",
    "&after=",
    "%00",
    "%ff",
    " HTTP/1.1\r\n",
    "\r\n",
    "host: 127.0.0.1:$PORT",
    "x-lcm-token: $TOKEN",
    "x-lcm-write: $WRITE",
    "origin: http://127.0.0.1:$PORT",
    "content-type: application/json",
    "content-length: ",
    "transfer-encoding: chunked",
    '{"kind":"forget"}',
  ],
  open: async (folder) => {
    const site = await openSite(folder, { write: true, thread: false });
    const url = new URL(site.inspector.url);
    const token = url.searchParams.get("token") ?? "";
    const headers = { "x-lcm-token": token };
    const overview = await (await fetch(`${url.origin}/api/overview`, { headers })).text();
    const write = /"token":"([\w-]+)"/.exec(overview)?.[1] ?? "";
    let runs = 0;
    return {
      run: async (input) => {
        const text = input
          .toString("latin1")
          .replaceAll("$PORT", url.port)
          .replaceAll("$TOKEN", token)
          .replaceAll("$WRITE", write);
        const answer = await ask(Number(url.port), Buffer.from(text, "latin1"));
        for (const [, status] of answer.matchAll(/^HTTP\/1\.1 (\d{3})/gm))
          hold(Number(status) < 500, "the inspector fails", answer.slice(0, 2_000));
        if (++runs % 64 === 0)
          hold(
            (await fetch(`${url.origin}/api/overview`, { headers })).status === 200,
            "the inspector does not go on",
          );
      },
      close: site.close,
    };
  },
};

function ask(port: number, bytes: Buffer): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1");
    const chunks: Buffer[] = [];
    const end = (): void => {
      clearTimeout(limit);
      socket.destroy();
      resolve(Buffer.concat(chunks).toString("latin1"));
    };
    const limit = setTimeout(end, LONGEST_MS);
    socket.setTimeout(IDLE_MS, end);
    socket.on("data", (chunk: Buffer) => chunks.push(chunk));
    socket.on("end", end);
    socket.on("error", (error: NodeJS.ErrnoException) =>
      error.code === "ECONNREFUSED" ? reject(error) : end(),
    );
    socket.write(bytes);
  });
}
