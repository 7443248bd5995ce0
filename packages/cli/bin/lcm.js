#!/usr/bin/env node
// Starts `lcm`.
import { start } from "./start.js";

await start(import.meta.url, []);
