/**
 * What a sub-agent may read of its parent: when the host starts one, it gets a grant for the parent's session, resets included; when it ends,
 * the grant ends. The engine stores grants, so a restart neither loses nor revives one.
 */

import type { Engine } from "@lossless/core";
import type { SubagentSpawnParams } from "./host.ts";
import { readAgentId } from "./session.ts";

export class SubagentGrants {
  #open: () => Promise<Engine>;
  #fail: (error: unknown) => void;

  constructor(options: { open: () => Promise<Engine>; onFailure: (error: unknown) => void }) {
    this.#open = options.open;
    this.#fail = options.onFailure;
  }

  /** Gives the child its grant. A failure never prevents a sub-agent from starting: it only cannot read its parent's history. */
  async prepare(params: SubagentSpawnParams): Promise<{ rollback(): Promise<void> } | undefined> {
    const { parentSessionKey, childSessionKey, ttlMs } = params;
    try {
      const engine = await this.#open();
      const owner = readAgentId(parentSessionKey);
      await engine.createGrant({
        session: { key: parentSessionKey, owner },
        holderKey: childSessionKey,
        ttlMs,
      });
    } catch (error) {
      this.#fail(error);
      return undefined;
    }
    return { rollback: () => this.end(childSessionKey) };
  }

  async end(childSessionKey: string): Promise<void> {
    try {
      const engine = await this.#open();
      await engine.revokeGrants({ holderKey: childSessionKey });
    } catch (error) {
      this.#fail(error);
    }
  }
}
