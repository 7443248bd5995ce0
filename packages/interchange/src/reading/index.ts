/** Renders messages for people, as markup and in a few words. Everything here also runs in a browser. */
export { describeFile, describeOutcome, isShortDiff, lineOf, titleOf } from "./cards.ts";
export { markUpCode, markUpDiff } from "./code.ts";
export { markUpText } from "./markdown.ts";
export { isBlank, isHousekeeping, pairCalls } from "./pairs.ts";
export type { Pairs } from "./pairs.ts";
export { quoteText } from "./markup.ts";
export type { Markup, MarkupElement } from "./markup.ts";
