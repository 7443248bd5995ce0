/** The program that `migrate.test.ts` kills: migrates an archive in small groups and reports every step to its parent. */
import { migrate } from "../src/interchange.ts";

const [from = "", to = ""] = process.argv.slice(2);
const result = await migrate({
  from: { database: from },
  to: { database: to },
  groupRows: 40,
  onProgress: (progress) => void process.send?.(progress),
});
process.send?.({ result });
process.disconnect();
