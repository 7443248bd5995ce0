#!/usr/bin/env node
// Starts `lcm tui` under the name that people know it by.
import { start } from "./start.js";

await start(import.meta.url, ["tui"]);
