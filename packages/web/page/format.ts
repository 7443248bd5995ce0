/** Numbers, sizes and times for people to read. Pure. */

export const formatCount = (count: number): string => Math.round(count).toLocaleString("en");

export const countOf = (count: number, noun: string, plural = `${noun}s`): string =>
  `${formatCount(count)} ${count === 1 ? noun : plural}`;

/** Three digits: 1,234,567 is 1.23M. */
export function formatShort(count: number): string {
  const units = ["", "k", "M", "G"];
  let value = count;
  let unit = 0;
  while (Math.abs(value) >= 999.5 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  const digits = unit === 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return `${Number(value.toFixed(digits))}${units[unit]}`;
}

export const formatBytes = (bytes: number): string => {
  const text = formatShort(bytes);
  return /[kMG]$/.test(text) ? `${text.slice(0, -1)} ${text.slice(-1)}B` : `${text} B`;
};

export const formatShare = (part: number, whole: number): string =>
  whole === 0 ? "–" : `${((100 * part) / whole).toFixed(part / whole < 0.1 ? 1 : 0)} %`;

export const formatFactor = (raw: number, context: number): string =>
  context === 0 ? "–" : `${(raw / context).toFixed(raw / context >= 100 ? 0 : 1)} : 1`;

/** Created once: creating one takes longer than formatting everything in a view. */
let times = makeTimes("UTC");

/** The time zone of the settings; the same in every view. */
export function setTimeZone(timezone: string): void {
  times = makeTimes(timezone);
}

function makeTimes(timeZone: string): {
  readonly minute: Intl.DateTimeFormat;
  readonly day: Intl.DateTimeFormat;
} {
  return {
    minute: new Intl.DateTimeFormat("sv-SE", { timeZone, dateStyle: "short", timeStyle: "short" }),
    day: new Intl.DateTimeFormat("sv-SE", { timeZone }),
  };
}

export const formatTime = (ms: number | null): string => (ms === null ? "–" : times.minute.format(ms));

/** Times along an axis: days, and hours where days repeat. Empty if a label would repeat the one before. */
export function labelTimes(moments: readonly number[]): string[] {
  const days = moments.map(formatDay);
  const isRepeating = new Set(days).size < days.length;
  const labels = isRepeating ? moments.map((at) => formatTime(at).slice(5)) : days;
  return labels.map((label, index) => (label === labels[index - 1] ? "" : label));
}

/** The last folder of a path. */
export const nameProject = (path: string): string =>
  path.split(/[\\/]/).findLast((name) => name !== "") ?? path;

export function formatDuration(ms: number): string {
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  return seconds < 3600 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`;
}

/** At most three digits, also below one: 0.075, 2.5, 120. */
export const formatAmount = (value: number): string =>
  value >= 999.5 ? formatShort(value) : String(Number(value.toPrecision(3)));

export const formatMoney = (amount: number, currency: string): string => `${amount.toFixed(2)} ${currency}`;

export const formatHours = (ms: number): string => (ms / 3_600_000).toFixed(1);

export const formatDay = (ms: number): string => times.day.format(ms);

/** `3 min ago`, or the day when it is long ago. */
export function formatAgo(ms: number | null, now: number): string {
  if (ms === null) return "never";
  const seconds = (now - ms) / 1000;
  if (seconds < 60) return "just now";
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ago`;
  return formatTime(ms);
}

/** Budgets on a slider: equal steps multiply by the same factor. */
const MIN_BUDGET = 2_000;
const MAX_BUDGET = 1_000_000;
const SLIDER_STEPS = 1000;

export const budgetOfSlider = (step: number): number => {
  const exact = MIN_BUDGET * (MAX_BUDGET / MIN_BUDGET) ** (step / SLIDER_STEPS);
  const digits = 10 ** Math.max(0, Math.floor(Math.log10(exact)) - 1);
  return Math.min(MAX_BUDGET, Math.max(MIN_BUDGET, Math.round(exact / digits) * digits));
};

export const sliderOfBudget = (budget: number): number =>
  Math.round((SLIDER_STEPS * Math.log(budget / MIN_BUDGET)) / Math.log(MAX_BUDGET / MIN_BUDGET));
