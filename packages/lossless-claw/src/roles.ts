/** Roles of a server, each for the rows of one owner. An archive in a file has none: whoever may read the file may read all of it. */
import { EngineError } from "@lossless/core";
import { parseAddress } from "@lossless/core/ports";

/** A role of the server, and an owner whose rows it sees. Declared here: what the library publishes names no driver. */
export interface ArchiveRole {
  readonly role: string;
  readonly owner: string;
}

export interface Roles {
  list(): Promise<ArchiveRole[]>;
  add(one: ArchiveRole): Promise<void>;
  /** Takes one owner, or all. False where there was nothing to take. */
  remove(role: string, owner: string | null): Promise<boolean>;
}

/** The roles of the archive at an address. */
export async function openRoles(address: string): Promise<Roles> {
  const parsed = parseAddress(address);
  if (parsed.kind !== "postgres") {
    throw new EngineError("usage", "cannot use roles here: the archive is in a file, not on a server", {
      step: { kind: "choose_server" },
    });
  }
  const { addRole, listRoles, removeRole } = await import("@lossless/postgres");
  return {
    list: () => listRoles(parsed.address),
    add: (one) => addRole(parsed.address, one),
    remove: (role, owner) => removeRole(parsed.address, role, owner),
  };
}
