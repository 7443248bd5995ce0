/**
 * Runs a pure, synchronous function with a limit of processor time. A regular expression can take exponential time, and nothing else
 * interrupts it in its own thread.
 *
 * Invariant: the limit counts this thread's processor time, so a busy or suspended machine does not change a result.
 */
import { createContext, Script } from "node:vm";

const sandbox = createContext({ work: undefined as unknown });
const script = new Script("work()");

/** The function's result, or undefined if it was stopped. A run stopped by wall-clock time alone starts over with twice the time. */
export function runWithin<T>(limitMs: number, work: () => T): T | undefined {
  const before = process.threadCpuUsage();
  for (let timeoutMs = limitMs; ; timeoutMs *= 2) {
    try {
      sandbox.work = work;
      return script.runInContext(sandbox, { timeout: timeoutMs }) as T;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ERR_SCRIPT_EXECUTION_TIMEOUT") throw error;
      const { user, system } = process.threadCpuUsage(before);
      if ((user + system) / 1000 >= limitMs) return undefined;
    } finally {
      sandbox.work = undefined;
    }
  }
}
