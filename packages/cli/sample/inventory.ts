// The stock list that Mira pastes into the conversation: about 1,100 rows of CSV, made here because nobody types it.
//
// The rows that the story speaks about stand in `KNOWN_ROWS`, at fixed places; all other rows are drawn.

import type { Random } from "./random.ts";

const HEADER =
  "sku,name,category,lot,bin,booked,counted,unit_cost_eur,price_eur,supplier,last_count,best_before,note";

const KNOWN_ROWS: ReadonlyMap<number, string> = new Map([
  [
    118,
    'TOM-OXH-025,"Tomato Oxheart Giant, 25 seeds",seed,TX117,B7-2,1930,193,0.42,3.40,Semillas del Turia,2026-02-10,2028-06-30,',
  ],
  [
    267,
    'FER-ASP-P09,"Bird\'s nest fern, 9 cm pot",fern,LY208,G2-1,412,418,1.05,7.90,云南绿源种苗有限公司,2026-02-10,,two trays moved from G4',
  ],
  [
    391,
    'BAS-GEN-100,"Basil Genovese, 100 seeds",seed,BG044,B1-5,640,604,0.19,2.20,Semillas del Turia,2026-02-09,2027-12-31,digits swapped?',
  ],
  [
    540,
    'LAV-HID-P12,"Lavender Hidcote, 12 cm pot",perennial,LH310,G6-3,96,0,1.80,6.50,Gärtnerei Vogt,2026-02-10,,not found',
  ],
  [
    702,
    'MOS-KYO-T20,"Kyoto moss, tray 20 x 20",moss,KM012,G1-4,38,38,9.20,24.90,苔の里,2026-02-10,,keep damp',
  ],
  [
    866,
    'PEP-PAD-020,"Pepper Padrón, 20 seeds",seed,PP229,B7-6,310,-12,0.31,2.90,Semillas del Turia,2026-02-09,2027-09-30,negative?',
  ],
  [
    1001,
    'KUR-HOK-012,"Squash Hokkaido, 12 seeds",seed,KH155,B3-1,455,455,0.38,3.10,Lindenhof Saat,2025-08-02,2026-01-31,expired',
  ],
]);

const PLANTS: readonly (readonly [string, string, readonly string[]])[] = [
  [
    "TOM",
    "Tomato",
    ["Black Krim", "Roma", "Green Zebra", "Matina", "Berner Rose", "Tigerella", "Sungold", "Harzfeuer"],
  ],
  ["PEP", "Pepper", ["Lunchbox", "Hungarian Wax", "Sweet Banana", "Cayenne", "Corno Rosso"]],
  ["SAL", "Lettuce", ["Batavia", "Lollo Rossa", "Maikönig", "Forellenschluss", "Oak Leaf"]],
  ["RAD", "Radish", ["Cherry Belle", "Icicle", "French Breakfast", "Rudi"]],
  ["KAL", "Kale", ["Nero di Toscana", "Westländer", "Red Russian"]],
  ["BOH", "Bean", ["Blauhilde", "Neckarkönigin", "Borlotto", "Saxa"]],
  ["KUR", "Squash", ["Butternut", "Muscade", "Spaghetti", "Patisson"]],
  ["LAV", "Lavender", ["Munstead", "Grosso", "Rosea"]],
  ["FER", "Fern", ["Dryopteris", "Polystichum", "Adiantum", "Athyrium", "Cyrtomium"]],
  ["MIN", "Mint", ["Moroccan", "Pineapple", "Chocolate", "Peppermint"]],
  ["COS", "Cosmos", ["Sensation", "Purity", "Sea Shells"]],
  ["ZIN", "Zinnia", ["Queen Lime", "Benary Giant", "Thumbelina"]],
  ["ECH", "Coneflower", ["Purpurea", "White Swan", "Magnus"]],
  ["DAH", "Dahlia", ["Café au Lait", "Bishop", "Totally Tangerine", "Cornel"]],
  ["SED", "Stonecrop", ["Angelina", "Autumn Joy", "Purple Emperor"]],
  ["BAS", "Basil", ["Thai", "Cinnamon", "Lemon", "Dark Opal"]],
  ["SON", "Sunflower", ["Velvet Queen", "Teddy Bear", "Russian Giant"]],
];
const FORMS = [
  ["010", "10 seeds", "seed"],
  ["025", "25 seeds", "seed"],
  ["050", "50 seeds", "seed"],
  ["200", "200 seeds", "seed"],
  ["P09", "9 cm pot", "plant"],
  ["P11", "11 cm pot", "plant"],
  ["T06", "tray of 6", "plant"],
] as const;
const SUPPLIERS = [
  "Semillas del Turia",
  "Lindenhof Saat",
  "Gärtnerei Vogt",
  "Kwekerij De Linde",
  "Own harvest",
  "昆明花都园艺",
];

/** Every SKU that the drawn rows may carry, each once. */
export const ALL_SKUS: readonly string[] = [
  ...new Set(
    PLANTS.flatMap(([code, , kinds]) =>
      kinds.flatMap((kind) => FORMS.map(([form]) => renderSku(code, kind, form))),
    ),
  ),
];

export function inventoryCsv(random: Random, args: readonly string[]): string {
  const count = Number(args[0] ?? "1100");
  const rows = Array.from({ length: count }, (_unused, index) => KNOWN_ROWS.get(index) ?? drawRow(random));
  return [HEADER, ...rows].join("\n");
}

function renderSku(code: string, kind: string, form: string): string {
  return `${code}-${kind
    .replaceAll(/[^A-Za-z]/g, "")
    .slice(0, 3)
    .toUpperCase()}-${form}`;
}

function drawRow(random: Random): string {
  const [code, plant, kinds] = random.pick(PLANTS);
  const kind = random.pick(kinds);
  const [form, formName, category] = random.pick(FORMS);
  const sku = renderSku(code, kind, form);
  const isSeed = category === "seed";
  const booked = isSeed ? random.int(0, 900) : random.int(0, 160);
  const counted = random.chance(0.82) ? booked : Math.max(0, booked + random.int(-8, 6));
  const cost = (isSeed ? random.int(12, 88) : random.int(40, 290)) / 100;
  const bin = isSeed
    ? `B${random.int(1, 14)}-${random.int(1, 6)}`
    : `G${random.int(1, 8)}-${random.int(1, 5)}`;
  return [
    sku,
    `"${plant} ${kind}, ${formName}"`,
    category,
    `${random.text("ABCDEFGHKLMNPRSTVW", 2)}${random.int(100, 999)}`,
    bin,
    booked,
    counted,
    cost.toFixed(2),
    (cost * (random.int(24, 71) / 10) + 0.9).toFixed(2),
    random.pick(SUPPLIERS),
    `2026-02-${random.pick(["09", "10"])}`,
    isSeed ? `202${random.int(6, 9)}-${random.pick(["06-30", "09-30", "12-31"])}` : "",
    random.chance(0.06)
      ? random.pick(["label faded", "half tray", "check lot", "moved", "damp corner", "last of lot"])
      : "",
  ].join(",");
}
