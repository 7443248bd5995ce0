/**
 * The part of OpenClaw's plugin contract that this plugin uses, in our own types. The host ships no types for some of it and is not a dependency
 * of the project, so everything we rely on is declared here, once, as observed. Types only; no code.
 */

/** A message from the host. Only `role` is guaranteed; everything else is stored and returned unchanged. */
export interface AgentMessage {
  readonly role: string;
  readonly [field: string]: unknown;
}

export interface SessionTarget {
  readonly agentId?: string;
  readonly sessionId?: string;
  readonly sessionKey?: string;
  readonly storePath?: string;
}

/** A row of the transcript that a turn starts or ends at. Positions count visible messages from zero. */
export interface EntryAnchor {
  readonly agentId: string;
  readonly sessionId: string;
  readonly sessionKey: string;
  readonly storePath?: string;
  readonly entryId: string;
  readonly activeMessagePosition: number;
}

export interface SessionParams {
  readonly sessionId: string;
  readonly sessionKey?: string;
  readonly sessionTarget?: SessionTarget;
  readonly runtimeSettings?: RuntimeSettings;
  readonly runtimeContext?: RuntimeContext;
}

export interface RuntimeSettings {
  readonly model?: { readonly resolved?: string | null; readonly provider?: string | null };
  readonly limits?: { readonly promptTokenBudget?: number | null };
}

/** The host's runtime for one call. Its members depend on the call. */
export interface RuntimeContext {
  readonly provider?: string;
  readonly model?: string;
  readonly modelId?: string;
  readonly modelContextWindow?: number;
  /** The part of the model's window that the host uses. */
  readonly tokenBudget?: number;
  /** Why the host wants a compaction: `manual`, `overflow` or `budget`. */
  readonly trigger?: string;
  /** The host offers this time for deferred work. */
  readonly allowDeferredCompactionExecution?: boolean;
  readonly llm?: HostLlm;
  readonly [field: string]: unknown;
}

export interface HostLlm {
  complete(params: LlmParams): Promise<LlmAnswer>;
}

export interface LlmParams {
  readonly model?: string;
  readonly messages: readonly { readonly role: "user" | "system" | "assistant"; readonly content: string }[];
  readonly systemPrompt?: string;
  readonly maxTokens?: number;
  readonly temperature?: number;
  readonly reasoning?: string;
  readonly purpose?: string;
  readonly signal?: AbortSignal;
}

export interface LlmAnswer {
  readonly text: string;
  readonly provider: string;
  readonly model: string;
  readonly stopReason?: string;
  readonly usage?: {
    readonly inputTokens?: number;
    readonly outputTokens?: number;
    readonly cacheReadTokens?: number;
    readonly cacheWriteTokens?: number;
  };
}

export interface CommitTurnParams extends SessionParams {
  readonly advancementKey: string;
  readonly admission: EntryAnchor;
  readonly terminal: EntryAnchor;
  readonly messages: readonly AgentMessage[];
  /** The turn was started by the host's heartbeat. */
  readonly isHeartbeat?: boolean;
}

export interface AssembleParams extends SessionParams {
  readonly messages: readonly AgentMessage[];
  readonly tokenBudget?: number;
  readonly model?: string;
  /** The user's message; only at the start of a turn. */
  readonly prompt?: string;
  readonly availableTools?: ReadonlySet<string>;
  readonly citationsMode?: unknown;
}

export interface AssembleResult {
  readonly messages: AgentMessage[];
  readonly estimatedTokens: number;
  readonly systemPromptAddition?: string;
  readonly contextProjection?: {
    readonly mode: "per_turn" | "thread_bootstrap";
    readonly epoch?: string;
    readonly fingerprint?: string;
  };
}

export interface IngestParams extends SessionParams {
  readonly message: AgentMessage;
}

export interface IngestBatchParams extends SessionParams {
  readonly messages: readonly AgentMessage[];
}

export interface AfterTurnParams extends IngestBatchParams {
  /** The number of `messages` from before this turn. */
  readonly prePromptMessageCount: number;
}

export interface CompactParams extends SessionParams {
  readonly sessionKey: string;
  /** The part of the model's window that the host uses; before a turn sometimes minus its reserve for the answer. */
  readonly tokenBudget?: number;
  readonly currentTokenCount?: number;
  readonly customInstructions?: string;
  readonly abortSignal?: AbortSignal;
  readonly [field: string]: unknown;
}

export interface MaintainParams extends SessionParams {
  readonly abortSignal?: AbortSignal;
}

export interface SubagentSpawnParams {
  readonly parentSessionKey: string;
  readonly childSessionKey: string;
  readonly contextMode?: "isolated" | "fork";
  readonly parentSessionId?: string;
  readonly childSessionId?: string;
  readonly ttlMs?: number;
}

export interface CompactResult {
  readonly ok: boolean;
  readonly compacted: boolean;
  readonly reason?: string;
  readonly [field: string]: unknown;
}

export interface ContextEngineInfo {
  readonly id: string;
  readonly name: string;
  readonly version: string;
  readonly ownsCompaction: boolean;
  readonly turnMaintenanceMode: "foreground" | "background";
  readonly transcriptSemantics: {
    readonly currentTurnFence: "before-current-turn-entry-v1";
    readonly turnAdvancementIdempotency: "atomic-idempotent-v1";
  };
}

export interface BootstrapResult {
  readonly bootstrapped: boolean;
  readonly importedMessages?: number;
  readonly reason?: string;
}

export interface MaintainResult {
  readonly changed: boolean;
  readonly bytesFreed: number;
  readonly rewrittenEntries: number;
  readonly reason?: string;
}

/** The interface that the host calls. It creates a new instance for every turn, so an instance has no state of its own. */
export interface ContextEngine {
  readonly info: ContextEngineInfo;
  bootstrap(params: SessionParams): Promise<BootstrapResult>;
  commitTurn(params: CommitTurnParams): Promise<{ status: "committed" | "duplicate" }>;
  assemble(params: AssembleParams): Promise<AssembleResult>;
  ingest(params: IngestParams): Promise<{ ingested: boolean }>;
  ingestBatch(params: IngestBatchParams): Promise<{ ingestedCount: number }>;
  afterTurn(params: AfterTurnParams): Promise<void>;
  compact(params: CompactParams): Promise<CompactResult>;
  maintain(params: MaintainParams): Promise<MaintainResult>;
  prepareSubagentSpawn(params: SubagentSpawnParams): Promise<{ rollback(): Promise<void> } | undefined>;
  onSubagentEnded(params: { childSessionKey: string; reason: string }): Promise<void>;
  dispose(): Promise<void>;
}

export interface PluginLogger {
  info(message: string): void;
  warn(message: string): void;
  error(message: string): void;
}

export interface CommandContext {
  readonly args?: string;
  /** The host knows the sender and lets them give commands. */
  readonly isAuthorizedSender?: boolean;
  readonly runtimeContext?: {
    compactCurrent?(): Promise<{
      compacted: boolean;
      reason?: string;
      tokensBefore?: number;
      tokensAfter?: number;
    }>;
  };
  readonly agentId?: string;
  readonly sessionKey?: string;
  readonly sessionId?: string;
}

export interface CommandDefinition {
  readonly name: string;
  readonly description: string;
  readonly acceptsArgs: boolean;
  readonly requireAuth: boolean;
  handler(context: CommandContext): Promise<{ text: string }>;
}

/** The host's own facts about the run that a tool is created for. */
export interface ToolFactoryContext {
  readonly agentId?: string;
  readonly sessionKey?: string;
  readonly sessionId?: string;
}

export interface AgentTool {
  readonly name: string;
  readonly label: string;
  readonly description: string;
  readonly parameters: unknown;
  readonly catalogMode: "direct-only";
  execute(
    callId: string,
    params: unknown,
    signal?: AbortSignal,
  ): Promise<{ content: { type: "text"; text: string }[]; details: unknown }>;
}

export interface PluginService {
  readonly id: string;
  start(): void | Promise<void>;
  stop(): void | Promise<void>;
}

/** `full` runs in the gateway; `discovery` is a second instance of the module beside it, for agent runs. */
export type RegistrationMode =
  | "full"
  | "discovery"
  | "tool-discovery"
  | "setup-only"
  | "setup-runtime"
  | "cli-metadata";

export interface PluginApi {
  readonly registrationMode: RegistrationMode;
  readonly pluginConfig?: Record<string, unknown>;
  readonly logger: PluginLogger;
  /** The host's whole configuration. */
  readonly config?: Record<string, unknown>;
  readonly runtime: PluginRuntime;
  readonly lifecycle?: { onDispose?(dispose: () => void | Promise<void>): void };
  /** Hosts before 2026.9.6 have none. */
  registerContextEngine?(id: string, create: () => ContextEngine): void;
  registerTool(create: (context: ToolFactoryContext) => AgentTool[], options: { names: string[] }): void;
  registerCommand(command: CommandDefinition): void;
  registerService(service: PluginService): void;
  on(hook: "session_end", listen: (event: SessionEndEvent) => Promise<void>): void;
  on(
    hook: "reply_payload_sending",
    listen: (event: ReplyEvent) => { payload: ReplyEvent["payload"] } | undefined,
  ): void;
}

/** The host's runtime for sub-agents, as far as we use it: one answer, without tools and without a session of its own. */
export interface HostSubagents {
  complete(params: {
    readonly agentId: string;
    readonly message: string;
    readonly extraSystemPrompt?: string;
    readonly model?: string;
    readonly timeoutMs?: number;
    readonly signal?: AbortSignal;
  }): Promise<{ readonly text: string }>;
}

export interface PluginRuntime {
  readonly state: { resolveStateDir(): string };
  readonly llm?: HostLlm;
  readonly subagent?: HostSubagents;
  readonly system?: {
    /** Puts a line before the next prompt of a session. */
    enqueueSystemEvent?(text: string, options: { sessionKey: string; agentId?: string }): unknown;
  };
  readonly agent?: {
    readonly session?: {
      listSessionEntries?(params: { agentId: string }): readonly {
        readonly sessionKey: string;
        readonly entry?: { readonly sessionId?: string; readonly updatedAt?: number };
      }[];
    };
  };
}

/** An answer on its way to a chat. */
export interface ReplyEvent {
  readonly payload: { readonly text?: string; readonly [field: string]: unknown };
  readonly kind: string;
}

export interface SessionEndEvent {
  readonly sessionId: string;
  readonly sessionKey?: string;
  /** `new`, `reset`, `idle`, `daily`, `compaction`, `deleted`, `shutdown`, `restart` or `unknown`. */
  readonly reason?: string;
}
