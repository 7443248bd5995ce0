/**
 * The line that Claude Code shows below its prompt: whether the watcher runs, and when it last stored something. Plain `sh`: it runs every few
 * seconds, and starting Node alone takes longer. It reads the watcher's state file and writes nothing.
 */
import { resolve } from "node:path";
import { renderCommandLine } from "@lossless/core/doors";
import { nameLocally } from "@lossless/core/formats";

export function renderStatusLine(database: string): string {
  // The agent runs it in a project folder.
  const state = renderCommandLine([`${resolve(nameLocally(database))}.watch.json`]);
  return `# Shows whether lossless-claw stores this machine's sessions. Written by lcm setup, which also removes it.
exec 2>/dev/null
state=
read -r state <${state}
pid=\${state#*\\"pid\\":}
pid=\${pid%%[!0-9]*}
if [ -z "$state" ]; then
  echo 'lcm: nothing stored yet; run lcm watch'
  exit 0
fi
last=0
rest=$state
while :; do
  case $rest in *'"lastStoredAt":'*) ;; *) break ;; esac
  rest=\${rest#*\\"lastStoredAt\\":}
  at=\${rest%%[!0-9]*}
  [ -n "$at" ] && [ "$at" -gt "$last" ] && last=$at
done
when='nothing stored yet'
if [ "$last" -gt 0 ]; then
  s=$(($(date +%s) - last / 1000))
  [ "$s" -lt 0 ] && s=0
  if [ "$s" -lt 120 ]; then when="stored $s s ago"
  elif [ "$s" -lt 7200 ]; then when="stored $((s / 60)) min ago"
  elif [ "$s" -lt 172800 ]; then when="stored $((s / 3600)) h ago"
  else when="stored $((s / 86400)) days ago"; fi
fi
if [ -n "$pid" ] && kill -0 "$pid"; then echo "lcm: $when"
else echo "lcm: not watching, $when; run lcm watch"; fi
exit 0
`;
}
