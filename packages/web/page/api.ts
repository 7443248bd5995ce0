/** The page's requests to its server. The types of the responses are the server's own, see `../src/api-types.ts`. */
import type {
  ActionPreview,
  ActionResult,
  ActionRequest,
  AskResult,
  ContextResult,
  ContextTurns,
  ConversationChoices,
  ConversationDetail,
  CountedConversation,
  DoctorReply,
  Graph,
  GrowthResult,
  HeadedConversation,
  LabelUpdate,
  MessageDetail,
  MessagePage,
  News,
  Overview,
  Page,
  SearchReply,
  SpendResult,
  StatsReply,
  SummaryNode,
  TimelineResult,
  TurnSum,
  UnderSummary,
  WriteAccess,
} from "../src/api-types.ts";
import { fetchWithToken } from "./token.ts";

export type * from "../src/api-types.ts";

type Query = Readonly<Record<string, string | number | undefined>>;

async function ask<T>(path: string, query: Query = {}): Promise<T> {
  const pairs = Object.entries(query).flatMap(([name, value]): [string, string][] =>
    value === undefined ? [] : [[name, String(value)]],
  );
  const search = new URLSearchParams(pairs).toString();
  return readAnswer(
    await fetchWithToken(search === "" ? path : `${path}?${search}`, {
      headers: { accept: "application/json" },
    }),
  );
}

async function readAnswer<T>(response: Response): Promise<T> {
  const text = await response.text();
  const body = parse(text) as { error?: { message: string; hint?: string } } | null;
  if (response.ok && body !== null) return body as T;
  const hint = body?.error?.hint === undefined ? "" : ` (${body.error.hint})`;
  throw new Error(
    body?.error
      ? body.error.message + hint
      : text.trim() || `the inspector answered with status ${response.status}`,
  );
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Errors are plain text, and shown as such.
    return null;
  }
}

let write: WriteAccess | null = null;
let database: string | null = null;

/** The server's write access; null while it is read-only. */
export const writeAccess = (): WriteAccess | null => write;

/** A command as it works from any terminal: for the archive that is shown here. */
export const nameArchive = (command: string): string =>
  database !== null && command.startsWith("lcm ") ? `${command} --db ${database}` : command;

function post<T>(path: string, body: object): Promise<T> {
  return fetchWithToken(path, {
    method: "POST",
    headers: { "content-type": "application/json", "x-lcm-write": write?.token ?? "" },
    body: JSON.stringify(body),
  }).then((response) => readAnswer<T>(response));
}

export async function readOverview(): Promise<Overview> {
  const overview = await ask<Overview>("/api/overview");
  write = overview.write;
  database = overview.database;
  return overview;
}
export const readGrowth = (): Promise<GrowthResult> => ask("/api/growth");
export const listConversations = (query: Query): Promise<Page<CountedConversation>> =>
  ask("/api/conversations", { sort: "newest", ...query });
export const listChoices = (): Promise<ConversationChoices> => ask("/api/conversation-choices");
export const changeLabels = (id: number, update: LabelUpdate): Promise<HeadedConversation> =>
  post(`/api/conversations/${id}/labels`, update);
export const readConversation = (id: number): Promise<ConversationDetail> => ask(`/api/conversations/${id}`);
export const listMessages = (id: number, query: Query): Promise<MessagePage> =>
  ask(`/api/conversations/${id}/messages`, query);
export const readTurnSums = (id: number, at: number, limit: number): Promise<{ turns: readonly TurnSum[] }> =>
  ask(`/api/conversations/${id}/turn-sums`, { at, limit });
/** `q`: a search, whose matches in the message are named. */
export const readMessage = (id: number, q?: string): Promise<MessageDetail> =>
  ask(`/api/messages/${id}`, { q });
/** Without the path up to the root, which takes longer than the message. */
export const readMessageAlone = (id: number): Promise<MessageDetail> =>
  ask(`/api/messages/${id}`, { path: "none" });
export const readGraph = (id: number): Promise<Graph> => ask(`/api/conversations/${id}/graph`);
export const readSummary = (id: string): Promise<SummaryNode> => ask(`/api/summaries/${id}`);
export const listUnder = (id: string, at: number): Promise<UnderSummary> =>
  ask(`/api/summaries/${id}/messages`, { at });
export const readContext = (id: number, budget: number): Promise<ContextResult> =>
  ask(`/api/conversations/${id}/context`, { budget });
export const readTurns = (id: number, budget: number): Promise<ContextTurns> =>
  ask(`/api/conversations/${id}/turns`, { budget });
export const readFirstWords = (
  ids: readonly string[],
  chars?: number,
): Promise<Readonly<Record<string, string>>> => ask("/api/first-words", { ids: ids.join(","), chars });
export const readTimeline = (id: number): Promise<TimelineResult> => ask(`/api/conversations/${id}/timeline`);
export const search = (query: Query): Promise<SearchReply> => ask("/api/search", query);
export const askArchive = (query: Query): Promise<AskResult> => ask("/api/ask", query);
export const readSpend = (): Promise<SpendResult> => ask("/api/spend", { by: "day" });
export const readStats = (by: string): Promise<StatsReply> => ask("/api/stats", { by });
export const examine = (): Promise<DoctorReply> => ask("/api/doctor");
export const previewAction = (request: ActionRequest): Promise<ActionPreview> =>
  post("/api/actions/preview", request);
export const applyAction = (confirmation: string): Promise<ActionResult> =>
  post("/api/actions/apply", { confirmation });

/** The bytes of a picture, as a URL that only this page can read. */
export async function readPicture(messageId: number, ordinal: number): Promise<string> {
  const response = await fetchWithToken(`/api/messages/${messageId}/image/${ordinal}`);
  if (!response.ok) return readAnswer(response);
  return URL.createObjectURL(await response.blob());
}

/** The delay before reconnecting to an event stream that broke off. */
const RETRY_MS = 2_000;

/** Follows the archive's events for as long as the page is open. An EventSource could not send the token. */
export async function followNews(onNews: (news: News) => void, onEnd: () => void): Promise<void> {
  for (;;) {
    try {
      const { ok, body } = await fetchWithToken("/api/events");
      if (!ok || body === null) return onEnd();
      let rest = "";
      const pieces = body.pipeThrough(new TextDecoderStream()).getReader();
      for (let piece = await pieces.read(); !piece.done; piece = await pieces.read()) {
        const lines = (rest + piece.value).split("\n");
        rest = lines.pop() ?? "";
        // The server writes the data of an event on one line.
        for (const line of lines)
          if (line.startsWith("data: ")) onNews(JSON.parse(line.slice("data: ".length)) as News);
      }
    } catch (error) {
      // The server is gone, which onEnd reports; anything else is a bug in this page.
      if (!(error instanceof TypeError)) throw error;
    }
    onEnd();
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
}
