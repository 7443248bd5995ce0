/** To show and change settings: everything of `@lossless/core/settings`. */
export * from "@lossless/core/settings";
