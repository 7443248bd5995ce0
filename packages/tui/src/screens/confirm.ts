/** A change of the archive: first a preview, then `y`. Nothing is changed before that. */
import type { HeadedConversation } from "@lossless/core";
import type { Key } from "../keys.ts";
import type { Desk, Screen } from "../screen.ts";
import { TextScreen, type TextContent } from "./text.ts";

export interface Plan {
  readonly name: string;
  readonly conversation?: HeadedConversation;
  /** The preview. */
  readonly preview: () => Promise<TextContent>;
  /** Makes the change, and returns what was done. */
  readonly apply: () => Promise<string>;
}

export function makeConfirmScreen(desk: Desk, { name, conversation, preview, apply }: Plan): Screen {
  let isBusy = false;
  let content: TextContent | null = null;
  const act = ({ name: key }: Key): Promise<boolean> => {
    if (key === "n") return desk.back().then(() => true);
    if (key !== "y" || isBusy) return Promise.resolve(isBusy);
    isBusy = true;
    desk.say("working …");
    desk.run(async () => {
      try {
        const done = await apply();
        return async () => {
          await desk.back({ hasChanged: true });
          desk.say(done);
        };
      } finally {
        isBusy = false;
      }
    });
    return Promise.resolve(true);
  };
  return new TextScreen(desk, {
    name,
    conversation,
    keys: [
      { keys: "y", does: "apply" },
      { keys: "n Esc", does: "leave it" },
    ],
    // The running change alters the archive, and the preview with it: keep the one that was confirmed.
    read: async () => (content = isBusy && content !== null ? content : await preview()),
    act,
  });
}
