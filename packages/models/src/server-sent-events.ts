/** Reads server-sent events from text that arrives in pieces. Only the data of an event matters here; both dialects repeat its name inside. */

/** No event of a completion comes near this; a server that sends more is not one. */
const MAX_EVENT_CHARS = 1_000_000;

export class EventParser {
  #rest = "";
  #data: string[] = [];

  /** The data of the events that this piece completes. */
  push(piece: string): string[] {
    const lines = (this.#rest + piece).split("\n");
    this.#rest = lines.pop() ?? "";
    const events = lines.flatMap((line) => this.#takeLine(line.endsWith("\r") ? line.slice(0, -1) : line));
    if (this.#rest.length > MAX_EVENT_CHARS) throw new RangeError("an event of the stream is too large");
    return events;
  }

  /** The data of an event whose last empty line never came. */
  end(): string[] {
    return [...this.push("\n"), ...this.#takeLine("")];
  }

  #takeLine(line: string): string[] {
    if (line === "") {
      const data = this.#data.splice(0);
      return data.length === 0 ? [] : [data.join("\n")];
    }
    if (line.startsWith("data:")) this.#data.push(line.slice(line.startsWith("data: ") ? 6 : 5));
    return [];
  }
}
