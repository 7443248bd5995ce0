/** The web inspector, served until it is ended. */
export { runInspector } from "./run-inspector.ts";
