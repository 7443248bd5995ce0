/** Refuses to overwrite an entry of others under our name. */
import { EngineError } from "@lossless/core";

export const taken = (path: string, name: string): EngineError =>
  new EngineError("invalid_input", `cannot change ${path}: it already has an entry named ${name}`, {
    hint: "remove that entry first",
  });
