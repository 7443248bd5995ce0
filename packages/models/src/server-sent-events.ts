/** Parses server-sent events from text that arrives in pieces. Only the data of an event matters here; both dialects repeat its name inside. */

/** Far above any event of a completion; a server that sends more is not one. */
const MAX_EVENT_CHARS = 1_000_000;

export class EventParser {
  /** The beginning of a line, in pieces as received: joined once, when the line ends. */
  #begun: string[] = [];
  #begunChars = 0;
  #data: string[] = [];

  /** The data of the events that this piece completes. */
  push(piece: string): string[] {
    const end = piece.lastIndexOf("\n");
    const lines = end < 0 ? [] : (this.#begun.splice(0).join("") + piece.slice(0, end)).split("\n");
    const rest = piece.slice(end + 1);
    this.#begun.push(rest);
    this.#begunChars = (end < 0 ? this.#begunChars : 0) + rest.length;
    const events = lines.flatMap((line) => this.#takeLine(line.endsWith("\r") ? line.slice(0, -1) : line));
    if (this.#begunChars > MAX_EVENT_CHARS) throw new RangeError("an event of the stream is too large");
    return events;
  }

  /** The data of an event whose final empty line never arrived. */
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
