/**
 * Days, months and years named in a question ("on 3 May", "in June 2023", "10.01.2024", "2024年4月1日"). Messages have a time, so a named date
 * says where to look even if no message spells it out. Reads absolute dates only; needs no clock. Pure.
 */

/** A date as far as it was named. `month` is 1–12. At least one of the three is present, and a day never without its month. */
export interface NamedDate {
  readonly year?: number;
  readonly month?: number;
  readonly day?: number;
}

/** People write about a day on the day and in the days after it, and plan it shortly before. */
const DAYS_BEFORE = 1;
const DAYS_AFTER = 3;
const DAY_MS = 86_400_000;

const MONTH_NAMES = [
  "january jan",
  "february feb",
  "march mar",
  "april apr",
  "may",
  "june jun",
  "july jul",
  "august aug",
  "september sept sep",
  "october oct",
  "november nov",
  "december dec",
];
const MONTH_NUMBERS = new Map(
  MONTH_NAMES.flatMap((names, index) => names.split(" ").map((name): [string, number] => [name, index + 1])),
);
const MONTH = `(${[...MONTH_NUMBERS.keys()].toSorted((a, b) => b.length - a.length).join("|")})\\.?`;
const DAY = "(\\d{1,2})(?:st|nd|rd|th)?";
const YEAR = "((?:19|20)\\d{2})";

interface Form {
  readonly pattern: RegExp;
  /** Which group has which field; 0 for none. */
  readonly year: number;
  readonly month: number;
  readonly day: number;
}

/** From the most specific form to the least; what one form has matched is blanked before the next is tried. */
const FORMS: readonly Form[] = [
  { pattern: /((?:19|20)\d{2})[-/.年]\s?(\d{1,2})[-/.月]\s?(\d{1,2})(?!\d)/g, year: 1, month: 2, day: 3 },
  { pattern: /((?:19|20)\d{2})年\s?(\d{1,2})月/g, year: 1, month: 2, day: 0 },
  { pattern: /(\d{1,2})月(\d{1,2})[日号]/g, year: 0, month: 1, day: 2 },
  { pattern: /(?<!\d)(\d{1,2})\.(\d{1,2})\.((?:19|20)\d{2})(?!\d)/g, year: 3, month: 2, day: 1 },
  { pattern: /(?<!\d)(\d{1,2})\/(\d{1,2})\/((?:19|20)\d{2})(?!\d)/g, year: 3, month: 1, day: 2 },
  {
    pattern: new RegExp(`\\b${DAY}(?: of)? ${MONTH},?(?: of)? ?${YEAR}\\b`, "gi"),
    year: 3,
    month: 2,
    day: 1,
  },
  { pattern: new RegExp(`\\b${MONTH} ${DAY},? ?${YEAR}\\b`, "gi"), year: 3, month: 1, day: 2 },
  { pattern: new RegExp(`\\b${MONTH},?(?: of)? ${YEAR}\\b`, "gi"), year: 2, month: 1, day: 0 },
  { pattern: new RegExp(`\\b${DAY}(?: of)? ${MONTH}\\b`, "gi"), year: 0, month: 2, day: 1 },
  { pattern: new RegExp(`\\b${MONTH} ${DAY}\\b(?!:)`, "gi"), year: 0, month: 1, day: 2 },
  // "may" and "march" alone are words; after a preposition they are months.
  {
    pattern: new RegExp(`\\b(?:in|during|since|until|by|of|last|this|early|late|mid)[ -]${MONTH}\\b`, "gi"),
    year: 0,
    month: 1,
    day: 0,
  },
  {
    pattern: new RegExp(`\\b(?:in|during|since|until|by|of)(?: the year)? ${YEAR}\\b`, "gi"),
    year: 1,
    month: 0,
    day: 0,
  },
  { pattern: /((?:19|20)\d{2})年/g, year: 1, month: 0, day: 0 },
];

function readNumber(value: string | undefined): number | undefined {
  return value === undefined ? undefined : (MONTH_NUMBERS.get(value.toLowerCase()) ?? Number(value));
}

function readForm(form: Form, groups: readonly (string | undefined)[]): NamedDate | undefined {
  const year = form.year > 0 ? readNumber(groups[form.year]) : undefined;
  const month = form.month > 0 ? readNumber(groups[form.month]) : undefined;
  const day = form.day > 0 ? readNumber(groups[form.day]) : undefined;
  if (month !== undefined && (month < 1 || month > 12)) return undefined;
  if (day !== undefined && (day < 1 || day > 31)) return undefined;
  return {
    year,
    month,
    day,
  };
}

/** The dates named in a text, the most specific form first. */
export function findDates(text: string): NamedDate[] {
  const dates: NamedDate[] = [];
  let rest = text;
  for (const form of FORMS) {
    rest = rest.replace(form.pattern, (whole: string, ...groups: (string | undefined)[]) => {
      const date = readForm(form, [whole, ...groups]);
      if (date === undefined) return whole;
      dates.push(date);
      return " ".repeat(whole.length);
    });
  }
  return dates;
}

/** Whether a time (ms, UTC) is one at which someone would write about the date: within it, or within days of a named day. */
export function isNearDate(date: NamedDate, timeMs: number): boolean {
  if (date.day === undefined || date.month === undefined) return isWithin(date, new Date(timeMs));
  const year = date.year ?? nearestYear(date.month, timeMs);
  const distanceDays = (timeMs - Date.UTC(year, date.month - 1, date.day)) / DAY_MS;
  return distanceDays >= -DAYS_BEFORE && distanceDays < DAYS_AFTER + 1;
}

function isWithin(date: NamedDate, time: Date): boolean {
  const sameYear = date.year === undefined || time.getUTCFullYear() === date.year;
  return sameYear && (date.month === undefined || time.getUTCMonth() + 1 === date.month);
}

/** The year that brings a month closest to a time: 30 December is two days before 1 January. */
function nearestYear(month: number, timeMs: number): number {
  const time = new Date(timeMs);
  const apart = month - (time.getUTCMonth() + 1);
  return time.getUTCFullYear() + (apart > 6 ? -1 : apart < -6 ? 1 : 0);
}
