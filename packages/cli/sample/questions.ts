// What the sample can be asked: thirty planted facts and twelve searches, for tests and benchmarks.
//
// Entry ids are not written here: the builder finds them, as all messages on the active branch that hold every
// string of `must`, so that a fact and the conversation cannot part ways.

export interface Fact {
  readonly id: string;
  readonly class: "name" | "number" | "path" | "decision" | "constraint";
  readonly question: string;
  readonly answer: string;
  /** Strings that a passage must hold to answer the question. */
  readonly must: readonly string[];
}

export interface Search {
  readonly query: string;
  readonly why: string;
  /** Each group names messages that should be found: those that hold all its strings. */
  readonly holds: readonly (readonly string[])[];
}

export const facts: readonly Fact[] = [
  {
    id: "name-fern-supplier",
    class: "name",
    question: "Who is our contact at the fern supplier in Yunnan?",
    answer: "陈伟 (Chen Wei) of 云南绿源种苗有限公司",
    must: ["陈伟", "绿源"],
  },
  {
    id: "name-electrician",
    class: "name",
    question: "Which electrician mounted the gateway on the roof?",
    answer: "Frau Oberle of Elektro Oberle in Umkirch",
    must: ["Elektro Oberle"],
  },
  {
    id: "name-carrier-engineer",
    class: "name",
    question: "Who is the integration engineer at the carrier Paketfuchs?",
    answer: "Jannik Reuss",
    must: ["Jannik Reuss", "Paketfuchs"],
  },
  {
    id: "name-gateway",
    class: "name",
    question: "What is the LoRa gateway called?",
    answer: "zaunkoenig",
    must: ["zaunkoenig", "gateway"],
  },
  {
    id: "name-cat",
    class: "name",
    question: "What is the name of the warehouse cat, and on which shelf does it live?",
    answer: "Pistacho, on shelf D4 on the thermal blankets",
    must: ["Pistacho", "D4"],
  },
  {
    id: "name-tax-adviser",
    class: "name",
    question: "Who is the tax adviser who gets the DATEV export?",
    answer: "Herr Winterhalder",
    must: ["Winterhalder", "DATEV"],
  },
  {
    id: "number-order-lines",
    class: "number",
    question: "How many rows did order_lines have when the migration was planned?",
    answer: "1,184,302",
    must: ["1,184,302 rows"],
  },
  {
    id: "number-fern-price",
    class: "number",
    question: "What does one bird's nest fern seedling from Lüyuan cost, at which minimum order?",
    answer: "4.85 yuan each, from 2,000 plants",
    must: ["4.85 元", "2000 株"],
  },
  {
    id: "number-sensors",
    class: "number",
    question: "How many LoRaWAN nodes did we buy, and at what price each?",
    answer: "14 nodes LW-7 at 38.50 €",
    must: ["14", "LW-7", "38.50 €"],
  },
  {
    id: "number-outage",
    class: "number",
    question: "How long was the outage in the night of 26 February, and how many orders were stuck?",
    answer: "47 minutes from the first warning, 212 orders",
    must: ["47 minutes", "212 orders"],
  },
  {
    id: "number-oxheart",
    class: "number",
    question: "How many bags of Oxheart tomato seed were booked, and what was counted by mistake?",
    answer: "1,930 booked, 193 counted: a missing zero",
    must: ["1,930", "193.", "TOM-OXH-025"],
  },
  {
    id: "number-refund-limit",
    class: "number",
    question: "Up to which amount may we refund without asking Mira?",
    answer: "35 € since 27 February (20 € before)",
    must: ["35 €", "efund"],
  },
  {
    id: "path-runbook",
    class: "path",
    question: "Where is the runbook for a ban by the carrier?",
    answer: "/srv/order-sync/docs/runbooks/carrier-ban.md",
    must: ["/srv/order-sync/docs/runbooks/carrier-ban.md"],
  },
  {
    id: "path-label-template",
    class: "path",
    question: "Where is the label template for batches?",
    answer: "/srv/warehouse-tools/labels/zpl/batch-a6.zpl",
    must: ["/srv/warehouse-tools/labels/zpl/batch-a6.zpl"],
  },
  {
    id: "path-flaky-test",
    class: "path",
    question: "Which test file was flaky?",
    answer: "test/allocation/reserve-stock.test.ts",
    must: ["test/allocation/reserve-stock.test.ts", "four of the five"],
  },
  {
    id: "path-reconcile",
    class: "path",
    question: "Where is the script that compares booked and counted stock?",
    answer: "/home/clawdia/inventory/reconcile.ts",
    must: ["/home/clawdia/inventory/reconcile.ts"],
  },
  {
    id: "path-wal",
    class: "path",
    question: "Where lies the write-ahead log of the night after the migration?",
    answer: "/backup/nettle/wal/2026-02-19/",
    must: ["/backup/nettle/wal/2026-02-19/"],
  },
  {
    id: "path-retry-policy",
    class: "path",
    question: "In which file is nextDelayMs?",
    answer: "src/carrier/retry-policy.ts",
    must: ["src/carrier/retry-policy.ts", "nextDelayMs"],
  },
  {
    id: "decision-back-off",
    class: "decision",
    question: "What did we decide about retries to the carrier, and why?",
    answer:
      "exponential back-off with a cap of 45 s, because the carrier bans after 60 requests in 10 minutes",
    must: ["cap of 45 s", "60 requests"],
  },
  {
    id: "decision-migration",
    class: "decision",
    question: "Why did we not use ALTER TABLE for order_lines, and what did we do instead?",
    answer:
      "a shadow table copied in batches of 5,000 rows, because ALTER would lock checkout for nine minutes",
    must: ["batches of 5,000 rows", "nine minutes"],
  },
  {
    id: "decision-lora",
    class: "decision",
    question: "Wi-Fi or LoRaWAN for the greenhouses, and why?",
    answer: "LoRaWAN instead of Wi-Fi: metal roofs swallow Wi-Fi and batteries die in two weeks",
    must: ["LoRaWAN instead of Wi-Fi", "roofs"],
  },
  {
    id: "decision-dead-on-arrival",
    class: "decision",
    question: "What do customers get for plants that arrive dead?",
    answer: "their choice of refund or replacement; replacements wait for three nights above −5 °C",
    must: ["refund or replacement", "three nights above −5 °C"],
  },
  {
    id: "decision-paper-pots",
    class: "decision",
    question: "Which pots replace plastic, and where does plastic stay?",
    answer: "paper pots from Semillas del Turia for 9 and 11 cm; plastic only for 12 cm",
    must: ["paper pots from Semillas del Turia", "12 cm"],
  },
  {
    id: "decision-stock-v2",
    class: "decision",
    question: "When may stock_v2_reads be switched on?",
    answer: "not before 1 April, because of the spring peak and four unexplained SKUs",
    must: ["stock_v2_reads", "off until 1 April"],
  },
  {
    id: "constraint-printer",
    class: "constraint",
    question: "When must the label printer not be restarted?",
    answer: "never between 05:00 and 06:30, and never while jobs are in its RAM",
    must: ["05:00", "06:30"],
  },
  {
    id: "constraint-spring-festival",
    class: "constraint",
    question: "In which days must nobody write to Chen Wei?",
    answer: "15 to 23 February, Spring Festival",
    must: ["陈伟", "15", "23"],
  },
  {
    id: "constraint-virus-test",
    class: "constraint",
    question: "What must be there before tomato seed from outside the EU is sold?",
    answer: "a negative ToBRFV test in the certificates folder",
    must: ["outside the EU", "negative ToBRFV test"],
  },
  {
    id: "constraint-lifting",
    class: "constraint",
    question: "How much may Tomás lift, and until when?",
    answer: "no more than 15 kg until 1 April",
    must: ["15 kg until 1 April"],
  },
  {
    id: "constraint-monday-ddl",
    class: "constraint",
    question: "When is DDL on the orders table forbidden?",
    answer: "on Mondays before 11:00, during the weekly marketplace import",
    must: ["No DDL on", "Mondays before 11:00"],
  },
  {
    id: "constraint-sensor-budget",
    class: "constraint",
    question: "What was the limit of the budget for the greenhouse sensors?",
    answer: "below 1,200 € all in",
    must: ["elow", "1,200 €"],
  },
];

export const searches: readonly Search[] = [
  { query: "ORD-20417", why: "an order number, exactly", holds: [["ORD-20417"]] },
  {
    query: "back-off cap carrier ban",
    why: "a decision in plain words",
    holds: [["cap of 45 s", "60 requests"]],
  },
  { query: "reorderPoint", why: "an identifier in code, logs and talk", holds: [["reorderPoint"]] },
  { query: "鸟巢蕨 报价", why: "Chinese without spaces", holds: [["鸟巢蕨", "4.85"]] },
  {
    query: "reiniciar impresora",
    why: "Spanish, with other forms of the verb",
    holds: [["Puedo reiniciar"], ["No la reinicies"], ["reiniciarla"]],
  },
  { query: "苔マット", why: "Japanese", holds: [["苔マット"]] },
  {
    query: "idle in transaction",
    why: "a phrase, in settings, queries and dialogue",
    holds: [["idle in transaction"]],
  },
  {
    query: "Gutschein KEIM10",
    why: "a code inside a newsletter, a table and a German mail",
    holds: [["KEIM10"]],
  },
  {
    query: "LAV-HID-P12",
    why: "a row inside the large paste, and the talk about it",
    holds: [["LAV-HID-P12"]],
  },
  { query: "hotel Lyon cancellation BE-30911", why: "travel, weeks later", holds: [["BE-30911"]] },
  {
    query: "column does not exist pick screen",
    why: "the error behind the scare",
    holds: [["column l.lot does not exist"]],
  },
  { query: "pool exhausted waiting=311", why: "one line inside the large log", holds: [["waiting=311"]] },
];
