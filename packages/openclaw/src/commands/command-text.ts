/** The texts of `/lcm`: turns the engine's numbers into a few lines for a chat. Pure. */

import type { SearchResult, Settings, SpendGroup, StatusResult, VerifyResult } from "@lossless/core";
import { describeDamage } from "@lossless/core/repair";
import type { RewriteTarget } from "@lossless/core/repair";
import { readSetting, SETTING_KEYS } from "@lossless/core/settings";
import type { Outage } from "../host/process-memory.ts";

/** The input of `status` and `doctor`. */
export interface Findings {
  readonly status: StatusResult;
  readonly isKept: boolean;
  readonly outages: readonly Outage[];
  readonly spooledTurns: number;
  /** Spool files that were moved aside because they could not be read or stored. */
  readonly asideFiles: readonly string[];
  readonly preflight: readonly string[];
  /** Damaged summaries of this chat; only the doctor looks for them. */
  readonly damaged?: readonly RewriteTarget[];
}

const MAX_ANSWER_CHARS = 1800;

export function cutAnswer(text: string): string {
  return text.length <= MAX_ANSWER_CHARS ? text : `${text.slice(0, MAX_ANSWER_CHARS - 1)}…`;
}

export function renderStatus(findings: Findings): string {
  const { status } = findings;
  const problems = listProblems(findings);
  return [
    describeChat(findings),
    ...describeFolding(status),
    `Archive: ${count(status.messages, "message")} in ${count(status.conversations, "conversation")}, ${formatBytes(status.databaseBytes + status.filesBytes)}`,
    `Last stored: ${status.lastStoredAt === null ? "nothing yet" : new Date(status.lastStoredAt).toISOString()}`,
    `Database: ${status.databasePath}`,
    ...(problems.length === 0 ? ["All parts work."] : problems.map((problem) => `! ${problem.what}`)),
  ].join("\n");
}

export function renderDoctor(findings: Findings): string {
  const problems = listProblems(findings);
  if (problems.length === 0) return "Nothing is wrong. /lcm verify proves the archive itself.";
  return problems.map(({ what, remedy }) => `- ${what}${remedy === "" ? "" : `\n  ${remedy}`}`).join("\n");
}

interface Problem {
  readonly what: string;
  readonly remedy: string;
}

function listProblems({
  status,
  outages,
  spooledTurns,
  asideFiles,
  preflight,
  damaged = [],
}: Findings): Problem[] {
  const problems = listOutages(outages.filter((outage) => outage.part !== "spool"));
  if (spooledTurns > 0)
    problems.push({
      what: `${count(spooledTurns, "turn waits", "turns wait")} in lcm-spool`,
      remedy: "They are stored in order with the next turn of their chat.",
    });
  if (asideFiles.length > 0)
    problems.push({
      what: `${count(asideFiles.length, "file")} of the spool could not be used and ${asideFiles.length === 1 ? "was" : "were"} moved aside: ${listSome(asideFiles.map((name) => `lcm-spool/${name}`))}`,
      remedy:
        "Their messages are read from the host's transcript. Delete the files when the chat is complete in the archive.",
    });
  if (status.index.kind !== "ready")
    problems.push({
      what: `search index: ${status.index.reason}`,
      remedy: "/lcm doctor apply makes it again.",
    });
  const [first] = damaged;
  if (first !== undefined && first.damage !== null)
    problems.push({
      what: `${count(damaged.length, "summary", "summaries")} damaged: ${first.summaryId} ${describeDamage(first.damage)}${damaged.length === 1 ? "" : ", and others"}`,
      remedy: "/lcm doctor apply regenerates them from their sources.",
    });
  for (const guard of status.guards)
    problems.push({
      what: `models are not called until ${formatTime(guard.openUntil)}: ${guard.reason}`,
      remedy: "Until then summaries are made without a model.",
    });
  const failure = status.folding?.debt?.lastFailure;
  if (failure) problems.push({ what: `folding: ${failure}`, remedy: "It is tried again by itself." });
  problems.push(...preflight.map((what) => ({ what, remedy: "" })));
  return problems;
}

/** Parts of the plugin before those of single chats, which may be many. */
function listOutages(outages: readonly Outage[]): Problem[] {
  const [general, ofChats] = [outages.filter((one) => !one.remedy), outages.filter((one) => one.remedy)];
  const more = ofChats.length - MAX_LISTED;
  return [
    ...[...general, ...ofChats.slice(0, MAX_LISTED)].map((outage) => ({
      what: `${outage.part}: ${outage.message} (since ${formatTime(outage.since)}, ${outage.times}×)`,
      remedy: outage.remedy ?? "The chat goes on; what was said is stored as soon as this works again.",
    })),
    ...(more > 0 ? [{ what: `the same, or the like, in ${count(more, "more chat")}`, remedy: "" }] : []),
  ];
}

function describeChat({ status, isKept }: Findings): string {
  const { conversation } = status;
  if (!isKept) return "This chat is not kept (a session pattern says so).";
  if (conversation === null) return "This chat: nothing stored yet";
  return `This chat: ${count(conversation.messages, "message")}, about ${conversation.shownTokens.toLocaleString("en")} tokens shown`;
}

function describeFolding({ folding }: StatusResult): string[] {
  if (folding === null) return [];
  const { cover, stale, extractive } = folding.summaries;
  if (cover === 0) return ["Folded: nothing yet"];
  const notes = [
    extractive > 0 ? `${extractive} made without a model` : "",
    stale > 0 ? `${stale} to be remade` : "",
    folding.debt === null ? "" : "more is due",
  ].filter((note) => note !== "");
  const cache =
    folding.cache === null || folding.cache.cachedTokens === 0
      ? []
      : [
          `Cached by the provider: ${Math.round((100 * folding.cache.cachedTokens) / folding.cache.promptTokens)} %`,
        ];
  return [
    `Folded: ${count(cover, "summary", "summaries")}${notes.length === 0 ? "" : ` (${notes.join(", ")})`}`,
    ...cache,
  ];
}

export function renderHits({ hits }: SearchResult, timeZone: string): string {
  if (hits.length === 0) return "Nothing was found in this chat.";
  return hits
    .map(
      (hit) =>
        `${hit.id} ${new Date(hit.createdAt).toLocaleDateString("en-CA", { timeZone })} ${hit.role}: ${hit.snippet}`,
    )
    .join("\n");
}

const SHOWN_KEPT = 5;

export function renderRepair({
  written,
  kept,
  left,
}: {
  readonly written: number;
  readonly kept: readonly string[];
  readonly left: number;
}): string {
  const tried = written + kept.length;
  const more = kept.length - SHOWN_KEPT;
  return [
    `${written.toLocaleString("en")} of ${count(tried, "damaged summary", "damaged summaries")} regenerated. Every message is as it was.`,
    ...kept.slice(0, SHOWN_KEPT).map((line) => `- kept ${line}`),
    ...(more > 0 ? [`- and ${count(more, "other")}`] : []),
    ...(left > 0 ? [`${count(left, "more is", "more are")} left: /lcm doctor apply goes on.`] : []),
  ].join("\n");
}

export function renderSpend(days: readonly SpendGroup[], models: readonly SpendGroup[]): string {
  if (days.length === 0) return "No model was called for summaries in the last seven days.";
  const line = ({ key, calls, inputTokens, outputTokens }: SpendGroup): string =>
    `${key}: ${count(calls, "call")}, ${inputTokens.toLocaleString("en")} tokens in, ${outputTokens.toLocaleString("en")} out`;
  return ["Summaries in the last seven days", ...days.map(line), "By model", ...models.map(line)].join("\n");
}

export function renderVerify(report: VerifyResult): string {
  const { problems } = report;
  if (problems.length === 0)
    return `Proven: ${count(report.messages, "message")} and ${count(report.summaries, "summary", "summaries")}, each byte in its place.`;
  const shown = problems.slice(0, 5).map((problem) => `- ${problem.message}`);
  return [`${count(problems.length, "problem")} found:`, ...shown].join("\n");
}

/** `defaults` are those of the same state folder and the same other settings. */
export function renderConfig(settings: Settings, defaults: Settings): string {
  const show = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value));
  const lines = SETTING_KEYS.map((key) => [
    key,
    show(readSetting(settings, key)),
    show(readSetting(defaults, key)),
  ])
    .filter(([, value, byDefault]) => value !== byDefault)
    .map(([key, value]) => `${key}: ${value}`);
  return lines.length === 0 ? "All settings are the defaults." : lines.join("\n");
}

const MAX_LISTED = 3;

function listSome(names: readonly string[]): string {
  const more = names.length - MAX_LISTED;
  return `${names.slice(0, MAX_LISTED).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

function count(number: number, noun: string, plural = `${noun}s`): string {
  return `${number.toLocaleString("en")} ${number === 1 ? noun : plural}`;
}

function formatTime(at: number): string {
  return `${new Date(at).toISOString().slice(0, 16).replace("T", " ")} UTC`;
}

function formatBytes(bytes: number): string {
  const megabytes = bytes / 1024 ** 2;
  return megabytes < 1 ? `${Math.ceil(bytes / 1024)} kB` : `${megabytes.toFixed(1)} MB`;
}
