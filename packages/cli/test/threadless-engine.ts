/** The library as the warm program has it: an engine works in the caller's thread, because starting two others is most of what a short command costs. */
import { openEngine as open } from "lossless-claw";

export * from "lossless-claw";

export const openEngine: typeof open = (options) => open({ ...options, thread: false });
