/** Colours by meaning. Only on a terminal; follows NO_COLOR and FORCE_COLOR. */
import { styleText } from "node:util";

type Format = Parameters<typeof styleText>[0];

const paint =
  (format: Format) =>
  (text: string): string =>
    styleText(format, text, { stream: process.stdout });

const paintError =
  (format: Format) =>
  (text: string): string =>
    styleText(format, text, { stream: process.stderr });

export const style = {
  title: paint("bold"),
  faint: paint("dim"),
  good: paint("green"),
  bad: paint("red"),
  warning: paint("yellow"),
  name: paint("cyan"),
  match: paint(["bold", "yellow"]),
};

/** The same for stderr. */
export const errorStyle = { bad: paintError(["bold", "red"]), faint: paintError("dim") };
