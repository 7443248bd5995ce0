/** Refuses to overwrite an entry of others under our name. */
import { EngineError } from "@lossless/core";

export const taken = (path: string, name: string): EngineError =>
  new EngineError("invalid_input", `cannot change ${path}: it has an entry named ${name} already`, {
    hint: "remove that entry first",
  });
