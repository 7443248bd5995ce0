/** A picture sent to the agent: it is archived with its message, and still shown after the host has deleted its file. */

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { existsSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { RecordedRequest } from "@lossless/testkit/fake-model.ts";
import type { Stage } from "../stage.ts";

export const PICTURE_CHAT = "agent:main:pictures";
/** One transparent pixel. */
const PICTURE =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

export async function playImages(stage: Stage): Promise<void> {
  await stage.client.request("sessions.patch", { key: PICTURE_CHAT, model: "fake/fake-vision" });
  await stage.step("a picture is sent, archived, and stays when the host's file is gone", async () => {
    const { status } = await stage.client.request("agent", {
      sessionKey: PICTURE_CHAT,
      message: "SAY I see a dot",
      idempotencyKey: randomUUID(),
      attachments: [{ type: "image", mimeType: "image/png", fileName: "dot.png", content: PICTURE }],
    });
    assert.equal(status, "ok");
    const folder = join(stage.state.stateDir, "media", "inbound");
    assert.ok(
      existsSync(folder) && readdirSync(folder).length > 0,
      "the host keeps the picture in its folder",
    );
    for (const name of readdirSync(folder)) rmSync(join(folder, name));
    const first = stage.model.requests.length;
    await stage.playTurn("SAY and now?", PICTURE_CHAT);
    const [request] = stage.requestsSince(first);
    assert.ok(request !== undefined && showsPicture(request), "the picture is in the request");
  });
}

function showsPicture({ messages }: RecordedRequest): boolean {
  return JSON.stringify(messages).includes(PICTURE.slice(0, 60));
}
