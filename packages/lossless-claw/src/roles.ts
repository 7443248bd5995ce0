/** Roles of a server, each for the rows of one owner. An archive in a file has none: anyone who can read the file can read all of it. */
import { EngineError } from "@lossless/core";
import { parseAddress } from "@lossless/core/ports";

/** A role of the server, and an owner whose rows it sees. Declared here: the library's public types do not depend on a driver. */
export interface ArchiveRole {
  readonly role: string;
  readonly owner: string;
}

export interface Roles {
  list(): Promise<ArchiveRole[]>;
  add(one: ArchiveRole): Promise<void>;
  /** Removes one owner, or all. False if there was nothing to remove. */
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
