/** The archive as an MCP server: one factory, on stdin and stdout or on an address of this machine. */
export { startHttp } from "./http.ts";
export type { HttpServer } from "./http.ts";
export { openOnDemand } from "./reader.ts";
export type { ArchiveReader } from "./reader.ts";
export { makeFactory, SERVER_NAME } from "./server.ts";
export { runStdio } from "./stdio.ts";
export { MCP_TOOLS } from "./tools.ts";
export type { McpServerFactory } from "@modelcontextprotocol/server";
