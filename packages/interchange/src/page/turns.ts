/** Groups messages into turns: a request and everything up to the next one, with results attached to their calls. */
import type { MessageRow, MessageView } from "@lossless/core";
import { isHousekeeping, pairCalls } from "../reading/pairs.ts";
import { readPart, readPicture } from "../reading/parts.ts";
import type { ReadablePart } from "../reading/parts.ts";

/** Longer parts are cut and marked as such. */
const MAX_PART_CHARS = 100_000;
/** Larger pictures are only named. */
const MAX_PICTURE_BYTES = 5_000_000;
export interface PagePart extends ReadablePart {
  /** The picture as a data URL. */
  readonly picture: string | null;
  /** The result of a call. */
  readonly result: ReadablePart | null;
}

export interface PageMessage {
  readonly messageId: number;
  readonly role: MessageView["role"];
  readonly model: string | null;
  readonly at: number;
  readonly isDated: boolean;
  readonly tokens: number;
  readonly isHousekeeping: boolean;
  readonly parts: readonly PagePart[];
}

export interface PageTurn {
  readonly messages: readonly PageMessage[];
  /** How many messages were said, also those that are shown with others. */
  readonly said: number;
  readonly tokens: number;
  readonly startAt: number | null;
  readonly tookMs: number;
}

export function readPageMessage(
  row: MessageRow,
  { bytes, view }: { readonly bytes: Uint8Array; readonly view: MessageView },
): PageMessage {
  const parts = view.parts.map((part): PagePart => {
    const read = readPart(bytes, part, MAX_PART_CHARS);
    const isShown = read.hasImage && (read.payloadBytes ?? 0) <= MAX_PICTURE_BYTES;
    const picture = isShown ? readPicture(bytes, part) : null;
    const address = picture && `data:${picture.mimeType};base64,${picture.bytes.toString("base64")}`;
    return { ...read, picture: address, result: null };
  });
  return {
    messageId: row.messageId,
    role: view.role,
    model: view.model?.model ?? null,
    at: row.createdAt,
    isDated: row.isDated,
    tokens: row.tokens,
    isHousekeeping: isHousekeeping(row),
    parts,
  };
}

/** Nothing to read. */
export const isBlank = ({ text, type, payloadBytes }: PagePart): boolean =>
  text.trim() === "" && type !== "tool_call" && (payloadBytes ?? 0) === 0;

export const beginsTurn = ({ role, isHousekeeping: isLeftOut }: PageMessage): boolean =>
  role === "user" && !isLeftOut;

/** Moves results to their calls and drops messages that held nothing else. Results of a call outside the turn stay where they are. */
export function makeTurn(messages: readonly PageMessage[]): PageTurn {
  const { resultOf, moved } = pairCalls(messages.map(({ messageId, parts }) => ({ id: messageId, parts })));
  const paired = messages.flatMap((message) => {
    const kept = message.parts.filter((part) => !moved.has(part));
    if (kept.length === 0 && message.parts.length > 0) return [];
    const parts = kept.map((part) => ({ ...part, result: resultOf.get(part)?.part ?? null }));
    return [{ ...message, parts }];
  });
  const spoken = messages.filter((message) => !message.isHousekeeping && message.isDated);
  const startAt = spoken[0]?.at ?? null;
  return {
    messages: paired,
    said: messages.filter((message) => !message.isHousekeeping).length,
    tokens: messages.reduce(
      (sum, { tokens, isHousekeeping: isLeftOut }) => sum + (isLeftOut ? 0 : tokens),
      0,
    ),
    startAt,
    tookMs: Math.max(0, (spoken.at(-1)?.at ?? 0) - (startAt ?? 0)),
  };
}
