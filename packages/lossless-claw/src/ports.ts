/** To bring a database or a model: everything of `@lossless/core/ports`. */
export * from "@lossless/core/ports";
