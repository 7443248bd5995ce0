// Long tool outputs of the sample: logs, test runs, tables, listings, readings.
//
// A line `{{name argument …}}` in a scene becomes what the generator of that name makes. Dialogue is never made
// here. Invariant: no generator makes an order number that a scene speaks about, so that searching for such a
// number finds the story and not a log line by chance.

import { ALL_SKUS, inventoryCsv } from "./inventory.ts";
import { HEX, type Random } from "./random.ts";
import { parseShopTime } from "./screenplay.ts";

type Generator = (random: Random, args: readonly string[]) => string;

const DIRECTIVE = /^\{\{(\w+) ?(.*)\}\}$/gm;

export function expandBulk(text: string, random: Random): string {
  return text.replace(DIRECTIVE, (_line, name: string, rest: string) => {
    const generate = GENERATORS[name];
    if (generate === undefined) throw new Error(`cannot expand {{${name}}}: no such generator`);
    return generate(random, rest.split(" ").filter(Boolean));
  });
}

const STORY_ORDERS = new Set([
  20388, 20597, 22018, 22031, 22044, 22047, 22060, 22063, 22071, 22102, 20417, 20433, 20551, 20612, 20988,
  21204, 21377, 21960, 22015, 22318, 22471, 22903, 23087, 23140, 23366, 23512,
]);
const FIRST_DAY_MS = parseShopTime("2026-02-02T00:00");
const DAY_MS = 86_400_000;

/** Orders run at about ninety a day, so a number tells its date. */
function orderNumber(random: Random, atMs: number): string {
  const newest = 20_420 + Math.floor(((atMs - FIRST_DAY_MS) / DAY_MS) * 92);
  let number = random.int(newest - 160, newest);
  while (STORY_ORDERS.has(number)) number += 1;
  return `ORD-${number}`;
}

function stamp(ms: number): string {
  return new Date(ms).toISOString();
}

function clock(ms: number): string {
  return new Date(ms + 3_600_000).toISOString().slice(0, 19).replace("T", " ");
}

function times<T>(count: number, make: (index: number) => T): T[] {
  return Array.from({ length: count }, (_unused, index) => make(index));
}

function table(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = header.map((name, column) =>
    Math.max(name.length, ...rows.map((row) => (row[column] ?? "").length)),
  );
  const line = (cells: readonly string[]) =>
    ` ${cells.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join(" | ")}`.trimEnd();
  const rule = widths.map((width) => "-".repeat(width + 2)).join("+");
  return [line(header), rule, ...rows.map(line), `(${rows.length} rows)`].join("\n");
}

const WORKERS = ["poller", "pusher", "label", "stock", "webhook"];

type LogLine = (random: Random, ms: number) => string;

const CALM: readonly LogLine[] = [
  (r) =>
    `poller  fetched ${r.int(1, 14)} orders from gruenmarkt cursor=${r.text(HEX, 10)} took=${r.int(80, 420)}ms`,
  (r, ms) =>
    `pusher  ${orderNumber(r, ms)} shipment created parcel=PF${r.int(400000000, 499999999)} weight=${r.int(80, 4800)}g`,
  (r, ms) => `label   ${orderNumber(r, ms)} label queued printer=zt231 queue=${r.int(0, 9)}`,
  (r) =>
    `stock   reserved ${r.int(1, 12)} x ${r.pick(SKUS)} lot=${r.text("ABCDEFGH", 2)}${r.int(100, 999)} left=${r.int(3, 900)}`,
  (r, ms) =>
    `webhook ${orderNumber(r, ms)} event=${r.pick(["paid", "packed", "shipped", "delivered", "address_changed"])} source=zahlwerk`,
  (r) => `poller  idle, next poll in ${r.int(5, 30)} s`,
];

const BANNED: readonly LogLine[] = [
  (r, ms) =>
    `pusher  ${orderNumber(r, ms)} POST /v3/shipments 429 retry=${r.int(1, 5)} delay=${r.int(1, 4)}00ms`,
  (r, ms) =>
    `pusher  ${orderNumber(r, ms)} POST /v3/shipments 403 {"code":"PF-4031","msg":"client temporarily blocked"}`,
  (r) => `pusher  queue depth ${r.int(40, 240)}, oldest ${r.int(3, 50)} min`,
];

const STARVED: readonly LogLine[] = [
  (r) => `stock   pool exhausted: 20/20 clients busy, waiting=${r.int(40, 330)}`,
  (r, ms) => `webhook ${orderNumber(r, ms)} timeout after 5000ms acquiring client (SYNC-E-112)`,
  (r, ms) => `pusher  ${orderNumber(r, ms)} deferred: stock reservation not confirmed`,
  (r) => `label   heartbeat ok printer=zt231 queue=${r.int(0, 2)}`,
  (r) => `poller  fetch failed: timeout of 15000ms exceeded, attempt ${r.int(1, 6)}`,
];

function makeLog(
  random: Random,
  startMs: number,
  count: number,
  moods: readonly LogLine[],
  gapMs: number,
): string[] {
  let ms = startMs;
  return times(count, () => {
    ms += random.int(40, gapMs);
    const line = random.pick(moods)(random, ms);
    const level = /429|403|timeout|exhausted|failed|deferred/.test(line) ? "WARN " : "INFO ";
    return `${stamp(ms)} ${level} [${random.int(0, 3)}] ${line}`;
  });
}

/** `{{syncLog 2026-02-03T07:40 60 banned}}` */
function syncLog(random: Random, args: readonly string[]): string {
  const [at = "", count = "40", mood = "calm"] = args;
  const moods = mood === "banned" ? [...CALM, ...BANNED] : mood === "starved" ? [...CALM, ...STARVED] : CALM;
  return makeLog(random, parseShopTime(at), Number(count), moods, 4_000).join("\n");
}

/** The log of the night, up to the minute in which it is read: calm, one leaked client after another, starvation. */
function nightLog(random: Random): string {
  const at = (time: string) => parseShopTime(`2026-02-26T${time}`);
  const note = (time: string, text: string) => `${stamp(at(time))} ${text}`;
  const lines = [
    ...makeLog(random, at("00:30"), 555, CALM, 21_700),
    note("02:11", "INFO  [2] stock   nightly reorder job started: 4,118 SKUs, worker=reorder-nightly"),
    ...makeLog(random, at("02:11"), 125, CALM, 9_500),
    note(
      "02:21",
      "WARN  [2] stock   client not released after 300000ms, holder=reorderPoint() at src/stock/reorder.ts:88",
    ),
    ...makeLog(random, at("02:21"), 180, [...CALM, ...STARVED.slice(0, 2)], 6_500),
    note(
      "02:31",
      "ERROR [0] stock   pool exhausted: 20/20 clients busy, waiting=311, every holder=reorderPoint()",
    ),
    ...makeLog(random, at("02:31"), 320, STARVED, 4_800),
    note("02:44", "ERROR [0] webhook circuit open for zahlwerk, SYNC-E-112 x 50 in 60 s, answering 503"),
    ...makeLog(random, at("02:44"), 62, STARVED, 5_500),
  ];
  // Stretches overlap by some seconds; a log is in order of time.
  return lines.sort().join("\n");
}

const SKUS = [
  "TOM-BLK-010",
  "TOM-ROM-025",
  "PEP-PAD-020",
  "BAS-GEN-100",
  "FER-ASP-P09",
  "FER-DRY-P11",
  "MOS-KYO-T20",
  "LAV-MUN-P12",
  "SAL-BAT-250",
  "RAD-CHE-200",
  "KAL-NER-050",
  "ZUC-ROM-015",
  "BOH-BLA-080",
  "DIL-MAM-100",
  "KAP-ORG-050",
  "COS-SEN-060",
  "ECH-PUR-P11",
  "MIN-MAR-P09",
  "PFE-LOL-025",
  "KUR-HOK-012",
  "SPI-MAT-200",
  "ERB-PRO-150",
  "TAG-PAT-080",
  "SON-VEL-030",
];

const TEST_FILES: readonly (readonly [string, readonly string[]])[] = [
  [
    "test/carrier/retry-policy.test.ts",
    [
      "doubles the delay after each refusal",
      "never waits longer than the cap",
      "keeps the ban window of the carrier",
      "starts afresh after a success",
    ],
  ],
  [
    "test/carrier/shipment.test.ts",
    [
      "maps a parcel to the carrier's fields",
      "splits a heavy order in two parcels",
      "refuses a parcel without a postcode",
      "rounds weights up to the next gram",
    ],
  ],
  ["test/carrier/client.test.ts", ["signs each request", "reads the block notice", "passes the trace id on"]],
  [
    "test/allocation/reserve-stock.test.ts",
    [
      "reserves the oldest lot first",
      "gives back what a cancelled order held",
      "never reserves below zero under load",
      "splits a line over two lots",
    ],
  ],
  ["test/allocation/release.test.ts", ["releases on refund", "releases once on a repeated event"]],
  [
    "test/orders/import.test.ts",
    [
      "imports a page of orders",
      "resumes at the stored cursor",
      "skips an order it has",
      "keeps the note of the buyer to the letter",
      "reads a price with a comma",
    ],
  ],
  [
    "test/orders/address.test.ts",
    [
      "accepts a Packstation",
      "keeps umlauts",
      "moves an overlong company line",
      "refuses a post office box for live plants",
    ],
  ],
  [
    "test/webhook/payment.test.ts",
    ["checks the signature", "marks the order as paid once", "answers 503 while the circuit is open"],
  ],
  ["test/webhook/replay.test.ts", ["ignores a replayed event", "accepts events out of order"]],
  [
    "test/labels/zpl.test.ts",
    ["renders a label for A6", "escapes a caret in a name", "prints the plant passport number"],
  ],
  [
    "test/stock/reorder.test.ts",
    [
      "computes the reorder point from six weeks",
      "leaves out seasonal goods",
      "releases its client when the query fails",
    ],
  ],
  ["test/stock/count.test.ts", ["books a counted difference", "asks twice for a difference above fifty"]],
  [
    "test/refunds/policy.test.ts",
    [
      "refunds small amounts at once",
      "asks for approval above the limit",
      "offers a replacement for live plants",
    ],
  ],
  [
    "test/export/datev.test.ts",
    ["writes one line per booking", "uses the tax key of the country", "closes the month"],
  ],
];

/** `{{testRun 3}}` lists all files, with the total of failed tests left to the scene. */
function testRun(random: Random, args: readonly string[]): string {
  const failed = args.join(" ");
  let total = 0;
  const lines = TEST_FILES.flatMap(([file, names]) => {
    total += names.length;
    const took = names.map(() => random.int(2, 90));
    const broken = failed !== "" && names.includes(failed);
    const head = ` ${broken ? "❯" : "✓"} ${file} (${names.length} tests${broken ? " | 1 failed" : ""}) ${took.reduce((a, b) => a + b)}ms`;
    return [head, ...names.map((name, i) => `   ${name === failed ? "×" : "✓"} ${name} ${took[i]}ms`)];
  });
  const files = TEST_FILES.length;
  const broken = failed === "" ? 0 : 1;
  return [
    " RUN  v3.2.4 /srv/order-sync",
    "",
    ...lines,
    "",
    ` Test Files  ${broken ? "1 failed | " : ""}${files - broken} passed (${files})`,
    `      Tests  ${broken ? "1 failed | " : ""}${total - broken} passed (${total})`,
    `   Duration  ${(random.int(280, 640) / 100).toFixed(2)}s`,
  ].join("\n");
}

const CITIES = [
  "Freiburg",
  "Basel",
  "Köln",
  "Leipzig",
  "Wien",
  "Graz",
  "Hamburg",
  "Münster",
  "Bozen",
  "Zürich",
  "Dresden",
  "Mulhouse",
];

/** `{{orderTable 2026-02-03T09:00 20 stuck}}` */
function orderTable(random: Random, args: readonly string[]): string {
  const [at = "", count = "15", status = "mixed"] = args;
  const startMs = parseShopTime(at);
  const rows = times(Number(count), (index) => {
    const ms = startMs - index * random.int(60_000, 900_000);
    const state =
      status === "mixed" ? random.pick(["paid", "packed", "shipped", "delivered", "paid", "packed"]) : status;
    return [
      orderNumber(random, startMs),
      clock(ms),
      state,
      random.pick(CITIES),
      (random.int(490, 14_900) / 100).toFixed(2),
      String(random.int(1, 9)),
    ];
  });
  return table(["order_no", "created_at", "status", "city", "total_eur", "lines"], rows);
}

const TICKETS = [
  "Where is my parcel? It says Umkirch since Friday",
  "Fern arrived frozen, leaves are glassy",
  "Wrong variety: ordered Roma, bag says Black Krim",
  "Bitte Rechnung mit USt-IdNr.",
  "Invoice shows old address",
  "Basil seeds do not germinate after 3 weeks",
  "Can I plant the lavender outside in March?",
  "Double charge on my card",
  "Coupon KEIM10 is refused",
  "Pot broken, plant fine, just so you know",
  "Change delivery to Packstation 117",
  "Do you ship to Switzerland?",
  "Refund still missing",
  "Gutschein verloren",
  "Is the compost peat-free?",
  "Moss arrived dry, can it be saved?",
  "Order cancelled by itself?",
  "Newsletter: please take me off",
  "Two bags of radish instead of one, shall I send one back?",
  "Password mail never comes",
  "Tomato seeds: organic certificate?",
  "Slugs. Any advice?",
  "Lieferung an Nachbarn, welcher Nachbar?",
  "Cat ate the catnip plant, reorder please",
  "Plant passport for Austria",
  "Sunflower sprouted black spots",
  "Falsche Menge Steckzwiebeln",
  "When are dahlias back?",
  "Label torn, parcel returned",
  "Thank you, best ferns ever",
  "Which soil for chilli seedlings?",
  "Rechnung doppelt erhalten",
  "Seeds for a school garden, discount?",
  "Parcel left in the rain",
  "¿Envían a Mallorca?",
  "Le colis est ouvert",
  "Rose hat keine Knospen",
  "Can I pick up in Umkirch on Saturday?",
  "Gift card amount wrong",
  "Watering can missing in parcel",
  "Mint or lemon balm? (photo)",
  "Bestellung bitte teilen",
  "Hokkaido seeds: last year's harvest?",
  "Heat pack was cold",
  "Please remove my phone number",
  "Versandkosten nach Südtirol?",
  "The cat in your newsletter, is it for sale?",
];

/** `{{ticketTable 4400 20}}` */
function ticketTable(random: Random, args: readonly string[]): string {
  const [first = "4400", count = "15"] = args;
  const rows = times(Number(count), (index) => [
    `T-${Number(first) + index * random.int(1, 2)}`,
    random.pick(["de", "de", "de", "en", "fr", "es"]),
    random.pick(["open", "open", "waiting", "answered"]),
    `${random.int(1, 90)} h`,
    TICKETS[(index * 7 + Number(first)) % TICKETS.length] ?? "",
  ]);
  return table(["ticket", "lang", "state", "age", "subject"], rows);
}

const COMMITS = [
  "carrier: read the block notice",
  "labels: escape the caret in names",
  "orders: keep the buyer's note as it came",
  "stock: count lots, not bags",
  "ci: cache the browser",
  "webhook: check the signature before parsing",
  "docs: say who to call on Sundays",
  "orders: accept a price with a comma",
  "stock: first draft of stock_v2",
  "labels: plant passport number in bold",
  "export: tax key for Austria",
  "carrier: split parcels above 20 kg",
  "test: freeze the clock in import tests",
  "deps: postgres client 8.13",
  "refunds: ask above the limit",
  "orders: resume at the stored cursor",
  "ops: rotate logs daily",
  "labels: A6 batch template",
  "stock: release on refund",
  "webhook: ignore replayed events",
  "poller: slow down at night",
  "orders: umlauts in company names",
  "carrier: trace id on each request",
  "test: one database per worker",
  "export: close the month",
];

/** `{{gitLog 2026-02-03 15}}` */
function gitLog(random: Random, args: readonly string[]): string {
  const [day = "", count = "12"] = args;
  let ms = parseShopTime(`${day}T17:00`);
  return times(Number(count), (index) => {
    ms -= random.int(3, 60) * 3_600_000;
    const subject = COMMITS[(index * 4 + Number(day.slice(8))) % COMMITS.length];
    return `${random.text(HEX, 7)} ${clock(ms).slice(0, 10)} ${random.pick(["mira", "clawdia", "clawdia", "jonas"])} ${subject}`;
  }).join("\n");
}

/** `{{readings 2026-03-05T06:00 24}}` makes JSON of temperatures; the hand-set frost is the scene's business. */
function readings(random: Random, args: readonly string[]): string {
  const [at = "", count = "24", low = "6"] = args;
  const startMs = parseShopTime(at);
  const rows = times(Number(count), (index) => {
    const celsius =
      Number(low) + 7 + 7 * Math.sin(((index % 24) / 24) * 2 * Math.PI - 1.6) + random.int(-9, 9) / 10;
    return {
      t: stamp(startMs + index * 3_600_000),
      node: `gh-${String(random.int(1, 14)).padStart(2, "0")}`,
      celsius: Number(celsius.toFixed(1)),
      humidity: random.int(48, 93),
      soil: random.int(18, 44),
      battery: Number((3 + random.int(10, 62) / 100).toFixed(2)),
      rssi: -random.int(71, 118),
    };
  });
  return `[\n${rows.map((row) => `  ${JSON.stringify(row)}`).join(",\n")}\n]`;
}

/** `{{shipments 2026-02-05T10:00 8}}` */
function shipments(random: Random, args: readonly string[]): string {
  const [at = "", count = "8"] = args;
  const ms = parseShopTime(at);
  const items = times(Number(count), () => ({
    parcel: `PF${random.int(400000000, 499999999)}`,
    reference: orderNumber(random, ms),
    state: random.pick([
      "announced",
      "in_transit",
      "in_transit",
      "at_depot",
      "out_for_delivery",
      "delivered",
    ]),
    depot: random.pick(["FR-03", "KA-11", "S-07", "BS-01", "M-22"]),
    weightGrams: random.int(90, 6_200),
    updated: stamp(ms - random.int(1, 1_700) * 60_000),
  }));
  return JSON.stringify({ page: 1, pages: random.int(2, 9), items }, undefined, 1);
}

/** `{{pickList 2026-02-05T05:40 18}}` */
function pickList(random: Random, args: readonly string[]): string {
  const [at = "", count = "16"] = args;
  const ms = parseShopTime(at);
  const rows = times(Number(count), () => [
    orderNumber(random, ms),
    `${random.pick(["A", "B", "C", "D"])}${random.int(1, 14)}-${random.int(1, 6)}`,
    random.pick(SKUS),
    String(random.int(1, 8)),
    random.pick(["tray", "bag", "box S", "box M", "box L"]),
    random.pick(["", "", "", "fragile", "heat pack", "passport"]),
  ]);
  return table(["order_no", "bin", "sku", "qty", "pack", "remark"], rows);
}

/** `{{copyProgress 2026-02-18T21:04 1184302 5000 40}}`: every so many-th batch of a copy. */
function copyProgress(random: Random, args: readonly string[]): string {
  const [at = "", total = "0", batch = "5000", shown = "30"] = args;
  const batches = Math.ceil(Number(total) / Number(batch));
  const step = Math.max(1, Math.floor(batches / Number(shown)));
  let ms = parseShopTime(at);
  const lines: string[] = [];
  for (let index = step; index < batches; index += step) {
    ms += step * random.int(2_300, 3_400);
    const done = index * Number(batch);
    lines.push(
      `${clock(ms)} batch ${index}/${batches} rows=${done} (${((done / Number(total)) * 100).toFixed(1)} %) last=${random.int(900, 2_400)}ms lag=${random.int(0, 3)}s`,
    );
  }
  lines.push(`${clock(ms + 3_000)} batch ${batches}/${batches} rows=${total} (100.0 %) done`);
  return lines.join("\n");
}

/** `{{fileList photos 2026-02-20 14}}` */
function fileList(random: Random, args: readonly string[]): string {
  const [kind = "wal", day = "2026-02-01", count = "12"] = args;
  const startMs = parseShopTime(`${day}T00:05`);
  const rows = times(Number(count), (index) => {
    const ms = startMs + index * random.int(4, 61) * 60_000;
    const when = clock(ms).slice(5, 16);
    const name = {
      wal: `0000000100000${random.text("0123456789ABCDEF", 3)}000000${random.text("0123456789ABCDEF", 2)}`,
      dump: `shop-${clock(ms).slice(0, 10)}-${index}.dump`,
      photos: `IMG_${random.int(2000, 8999)}.jpg`,
      csv: `${random.pick(["orders", "lots", "counts", "returns"])}-${clock(ms).slice(0, 10)}-${index}.csv`,
    }[kind];
    const size = kind === "wal" ? 16_777_216 : random.int(40_000, 9_000_000);
    return `-rw-r----- 1 postgres backup ${String(size).padStart(9)} ${when} ${name}`;
  });
  return [`total ${rows.length * 16_384}`, ...rows].join("\n");
}

/** `{{journal 2026-02-26T02:50 25 fennel}}` */
function journal(random: Random, args: readonly string[]): string {
  const [at = "", count = "20", host = "fennel"] = args;
  let ms = parseShopTime(at);
  const lines: readonly (() => string)[] = [
    () => `systemd[1]: Started session-${random.int(200, 900)}.scope - Session of User clawdia.`,
    () =>
      `kernel: [UFW BLOCK] IN=ens3 SRC=203.0.113.${random.int(1, 250)} PROTO=TCP DPT=${random.pick([22, 23, 3389, 8080])}`,
    () => `CRON[${random.int(10000, 60000)}]: (root) CMD (/usr/local/sbin/rotate-sync-logs)`,
    () =>
      `order-sync[${random.int(1000, 3000)}]: ${random.pick(WORKERS)} alive rss=${random.int(140, 420)}MB`,
    () => `cupsd[811]: job ${random.int(40000, 49000)} queued on zt231`,
    () => `chronyd[402]: Selected source 10.4.0.1 offset ${random.int(-90, 90)}us`,
    () => `nginx[977]: upstream response time ${(random.int(8, 900) / 1000).toFixed(3)} /api/stock`,
  ];
  return times(Number(count), () => {
    ms += random.int(500, 40_000);
    const [date = "", time = ""] = clock(ms).split(" ");
    return `${date.slice(5)} ${time} ${host} ${random.pick(lines)()}`;
  }).join("\n");
}

/** `{{salesTable 14 sold}}`: quantities by SKU, each SKU once, largest first. */
function salesTable(random: Random, args: readonly string[]): string {
  const [count = "12", order = "sold"] = args;
  const first = random.int(0, ALL_SKUS.length - 1);
  const rows = times(Number(count), (index) => {
    const sku = ALL_SKUS[(first + index * 13) % ALL_SKUS.length] ?? "";
    const sold = random.int(14, 640);
    return {
      sku,
      sold,
      revenue: sold * (random.int(190, 990) / 100),
      change: random.int(-38, 71),
      onHand: random.int(0, 900),
    };
  });
  rows.sort((a, b) => (order === "sold" ? b.sold - a.sold : b.revenue - a.revenue));
  const cells = rows.map((row) => [
    row.sku,
    String(row.sold),
    row.revenue.toFixed(2),
    `${row.change} %`,
    String(row.onHand),
  ]);
  return table(["sku", "sold", "revenue_eur", "vs_2025", "on_hand"], cells);
}

/** `{{queryPlan seq}}` or `{{queryPlan index}}` */
function queryPlan(random: Random, args: readonly string[]): string {
  const [kind = "seq"] = args;
  const rows = random.int(1_150_000, 1_190_000);
  const scan =
    kind === "seq"
      ? `->  Parallel Seq Scan on order_lines ol  (cost=0.00..31877.40 rows=${random.int(900, 1500)} width=48) (actual time=0.041..${random.int(800, 1400)}.209 rows=${random.int(200, 700)} loops=3)`
      : `->  Index Scan using order_lines_lot_open_idx on order_lines ol  (cost=0.43..18.92 rows=14 width=48) (actual time=0.027..0.${random.int(100, 900)} rows=${random.int(9, 30)} loops=1)`;
  return [
    `Sort  (cost=${random.int(33_000, 35_000)}.12..${random.int(35_001, 36_000)}.80 rows=271 width=96) (actual time=${random.int(2, 1400)}.511..${random.int(1401, 1500)}.540 rows=271 loops=1)`,
    "  Sort Key: o.created_at DESC",
    "  Sort Method: quicksort  Memory: 62kB",
    "  ->  Hash Join",
    "        Hash Cond: (ol.order_id = o.id)",
    `        ${scan}`,
    "              Filter: (released_at IS NULL)",
    ...(kind === "seq" ? [`              Rows Removed by Filter: ${rows}`] : []),
    "        ->  Hash",
    "              Buckets: 4096  Batches: 1  Memory Usage: 212kB",
    "              ->  Index Scan using orders_status_idx on orders o",
    `Planning Time: 0.${random.int(200, 900)} ms`,
  ].join("\n");
}

const GENERATORS: Readonly<Record<string, Generator>> = {
  syncLog,
  nightLog,
  testRun,
  orderTable,
  ticketTable,
  gitLog,
  readings,
  shipments,
  pickList,
  copyProgress,
  fileList,
  journal,
  salesTable,
  queryPlan,
  inventoryCsv,
};
