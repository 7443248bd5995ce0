/** For adapters of databases and models: everything of `@lossless/core/ports`. */
export * from "@lossless/core/ports";
