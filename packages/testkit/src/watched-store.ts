/** A store whose verbs a test sees, before and after each: to fail one, to cancel something, or to die. */
import type { OpenStore, Store } from "@lossless/core/ports";

/** Opens stores as `open` does; `around` runs each verb. */
export const watchStores =
  (open: OpenStore, around: (verb: string, run: () => Promise<unknown>) => Promise<unknown>): OpenStore =>
  async (address, options) =>
    new Proxy(await open(address, options), {
      get(store, name) {
        const verb: unknown = store[name as keyof Store];
        if (typeof verb !== "function") return verb;
        return (...request: unknown[]) =>
          around(String(name), async () => (await Reflect.apply(verb, store, request)) as unknown);
      },
    });
