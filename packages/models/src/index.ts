/** Models over the network, for summaries and for vectors. */
export { findEndpoint } from "./endpoints.ts";
export { openComplete } from "./open-complete.ts";
export { openEmbed } from "./open-embed.ts";
