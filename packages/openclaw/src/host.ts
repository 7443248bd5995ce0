/**
 * The part of OpenClaw's plugin contract that this plugin uses, in our own types. The host ships no types for some of it and is no
 * dependency of the project, so what we rely on is written down here, once, as it was seen to behave. Types only; no code.
 */

/** A message as the host hands it over. Only `role` is certain; everything else is kept and given back untouched. */
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
}

export interface CommitTurnParams extends SessionParams {
  readonly advancementKey: string;
  readonly admission: EntryAnchor;
  readonly terminal: EntryAnchor;
  readonly messages: readonly AgentMessage[];
}

export interface AssembleParams extends SessionParams {
  readonly messages: readonly AgentMessage[];
  readonly tokenBudget?: number;
}

export interface IngestParams extends SessionParams {
  readonly message: AgentMessage;
}

export interface IngestBatchParams extends SessionParams {
  readonly messages: readonly AgentMessage[];
}

export interface AfterTurnParams extends IngestBatchParams {
  /** How many of `messages` were there before this turn. */
  readonly prePromptMessageCount: number;
}

export interface CompactParams extends SessionParams {
  readonly sessionKey: string;
  readonly [field: string]: unknown;
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

/** What the host calls. It makes a new one for every turn, so an instance holds no state of its own. */
export interface ContextEngine {
  readonly info: ContextEngineInfo;
  bootstrap(params: SessionParams): Promise<BootstrapResult>;
  commitTurn(params: CommitTurnParams): Promise<{ status: "committed" | "duplicate" }>;
  assemble(params: AssembleParams): Promise<{ messages: AgentMessage[]; estimatedTokens: number }>;
  ingest(params: IngestParams): Promise<{ ingested: boolean }>;
  ingestBatch(params: IngestBatchParams): Promise<{ ingestedCount: number }>;
  afterTurn(params: AfterTurnParams): Promise<void>;
  compact(params: CompactParams): Promise<CompactResult>;
  maintain(params: SessionParams): Promise<MaintainResult>;
  dispose(): Promise<void>;
}

export interface PluginLogger {
  info(message: string): void;
  warn(message: string): void;
  error(message: string): void;
}

export interface CommandContext {
  readonly args?: string;
  readonly agentId?: string;
  readonly sessionKey?: string;
  readonly sessionId?: string;
}

export interface CommandDefinition {
  readonly name: string;
  readonly description: string;
  readonly acceptsArgs: boolean;
  handler(context: CommandContext): Promise<{ text: string }>;
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
  readonly runtime: { readonly state: { resolveStateDir(): string } };
  readonly lifecycle?: { onDispose?(dispose: () => void | Promise<void>): void };
  registerContextEngine(id: string, create: () => ContextEngine): void;
  registerCommand(command: CommandDefinition): void;
  registerService(service: PluginService): void;
}

export interface PluginEntry {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  register(api: PluginApi): void;
}
