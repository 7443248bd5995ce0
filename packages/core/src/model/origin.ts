/**
 * Where a conversation comes from, according to its host or transcript: for filters and lists, never for identity.
 *
 * Invariant: agent and project keep their first value, because a session that changes its folder is still the same work; branch, title and
 * model take the last one.
 */
export interface Origin {
  /** The program it was held in: `claude-code`, `codex`, `openclaw`, … */
  readonly agent: string | null;
  /** The root of the git repository it was about, or the folder: an absolute path. */
  readonly project: string | null;
  readonly branch: string | null;
  readonly title: string | null;
  readonly model: string | null;
}

/** The known fields of an origin; the rest stays as it is. */
export type OriginUpdate = { readonly [K in keyof Origin]?: string | undefined };

/** Selects conversations by origin. Absent fields do not narrow. */
export interface OriginFilter {
  readonly project?: string | undefined;
  readonly agent?: string | undefined;
  /** Excludes the conversations that this session wrote to last. */
  readonly exceptSession?: string | undefined;
}

export const NO_ORIGIN: Origin = { agent: null, project: null, branch: null, title: null, model: null };

export const ORIGIN_FIELDS = ["agent", "project", "branch", "title", "model"] as const;

export const pickOrigin = ({ agent, project, branch, title, model }: Origin): Origin => ({
  agent,
  project,
  branch,
  title,
  model,
});

const SAID_FIRST: ReadonlySet<keyof Origin> = new Set(["agent", "project"]);
/** Longest value that is kept; a longer title is cut, and nobody has such a path. */
const MAX_LENGTH = 1_024;

/** What an update changes of a known origin. */
export function updateOrigin(known: Origin, update: OriginUpdate): Partial<Origin> {
  const changed: { -readonly [K in keyof Origin]?: string } = {};
  for (const field of ORIGIN_FIELDS) {
    const value = update[field]?.replaceAll("\0", "").slice(0, MAX_LENGTH).toWellFormed();
    const isKept = value === undefined || value === "" || (SAID_FIRST.has(field) && known[field] !== null);
    if (!isKept && value !== known[field]) changed[field] = value;
  }
  return changed;
}

export const isNarrowed = ({ project, agent, exceptSession }: OriginFilter): boolean =>
  project !== undefined || agent !== undefined || exceptSession !== undefined;
