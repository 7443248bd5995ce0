/**
 * The scripts that agents run as hooks, in plain `sh`: they record the event in the spool, and print what the watcher prepared. Starting Node
 * alone would take longer.
 *
 * Invariants: a script exits with 0 and prints nothing but the bundle or the instructions, whatever happens. It reads all of its input, since an
 * agent may treat a closed pipe as a failure. It records the session, transcript and folder of the event, and no text of messages: whether the
 * session may be stored is decided later. A spool file is created exclusively and needs no rename to be atomic: no proper prefix of a JSON
 * object is a JSON object, so a reader that can parse it has all of it. (A rename is one more process, more than a hook may cost.)
 *
 * A full spool keeps its oldest events, and the newest of each kind, which overwrites the one before and is counted: the shell can do that
 * without another process, and the newest event names the current state of the session.
 */
import { renderCommandLine } from "@lossless/core/doors";
import { renderRestartFrame } from "@lossless/core/formats";
import { listHookEvents } from "./events.ts";
import type { HookAgent, HookEvent } from "./events.ts";
import { EVENT_BYTES, findBundleFolder, findHookScript, findSpoolFolder, SPOOL_EVENTS } from "./folder.ts";

/** The command of an event in the agent's configuration, for any shell. A missing script must not block a prompt. */
export const renderHookCommand = (database: string, agent: HookAgent, event: string): string =>
  `sh ${renderCommandLine([findHookScript(database, agent), event])} 2>/dev/null || true`;

/** `lcm status` treats the script as the sign that hooks are set up. */
export const renderHookScript = (database: string, agent: HookAgent): string =>
  renderScript(agent, {
    spool: quote(findSpoolFolder(database)),
    bundles: quote(findBundleFolder(database)),
  });

/** The script with its folders as shell words, which may contain variables. */
export function renderScript(
  agent: HookAgent,
  { spool, bundles }: { readonly spool: string; readonly bundles: string },
): string {
  const events = listHookEvents(agent);
  return `# Hands events of ${agent} to lossless-claw. Written by lcm setup, which also removes it.
exec 2>/dev/null
LC_ALL=C
umask 077
kind=$1
event=$(cat)
case $kind in ${events.map(({ name }) => name).join("|")}) ;; *) exit 0 ;; esac
cd ${spool} || { mkdir -p ${spool} && cd ${spool}; } || exit 0

# The text of a member, as it is written; empty if it is no text, or one with quotes in it.
pick() {
  value=
  case $event in *"\\"$1\\""*) ;; *) return ;; esac
  rest=\${event#*"\\"$1\\""}
  case $rest in :\\"*|": \\""*) ;; *) return ;; esac
  rest=\${rest#*\\"}
  value=\${rest%%\\"*}
  case $value in *\\\\) value= ;; esac
}
note=
${FIELDS.map((field) => `pick ${field}; note="$note,\\"${field}\\":\\"$value\\""${field === "session_id" ? "; id=$value" : ""}`).join("\n")}
note="{\${note#,}}"

set -- *.json
if [ $# -lt ${SPOOL_EVENTS} ]; then
  n=0
  while [ -e "${agent}.$kind.$$.$n.json" ]; do n=$((n + 1)); done
  set -C
  printf '%.${EVENT_BYTES}s' "$note" >"${agent}.$kind.$$.$n.json"
  set +C
else
  printf '%.${EVENT_BYTES}s' "$note" >"${agent}.$kind.newest.json"
  lost=0
  read -r lost <${agent}.lost
  echo "$((lost + 1))" >${agent}.lost
fi
${events.map((event) => PRINTS[event.prints](event, agent, bundles)).join("")}exit 0
`;
}

/** The recorded fields of an event, by the names that agents use. Copilot CLI writes `sessionId`. */
const FIELDS = ["session_id", "sessionId", "transcript_path", "cwd", "source"] as const;

/** A bundle is claimed by renaming it, so that it is printed once. */
const PRINTS: Readonly<
  Record<HookEvent["prints"], (event: HookEvent, agent: HookAgent, bundles: string) => string>
> = {
  nothing: () => "",
  bundle: ({ name }, agent, bundles) => `if [ "$kind" = ${name} ]; then
  case $note in *'"source":"compact"}') ;; *) exit 0 ;; esac
  case $id in ''|*[!0-9A-Za-z_-]*) exit 0 ;; esac
  cd ${bundles} || exit 0
  mv -f "${agent}.$id.json" "${agent}.$id.given" && cat "${agent}.$id.given"
fi
`,
  instructions: ({ name }) => `if [ "$kind" = ${name} ]; then
  echo ${quote(KEEP_IDS)}
fi
`,
};

/** For a summariser whose text replaces everything before it for the model. */
const KEEP_IDS = renderRestartFrame(
  { for: "summary" },
  "Copy ids of the form sum_…, msg_… and file_… into the summary as they are, each with what it names: they open the original text with the tool lcm_describe.",
);

const quote = (word: string): string => `'${word.replaceAll("'", String.raw`'\''`)}'`;
