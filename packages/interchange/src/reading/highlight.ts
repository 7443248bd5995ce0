/**
 * Syntax highlighting: comments, strings, numbers, keywords; good enough for reading, for any language with braces, hashes or dashes. Pure. One
 * pass over the text; anything unknown stays plain.
 */
export type CodeKind = "plain" | "comment" | "string" | "number" | "keyword";

export interface CodePiece {
  readonly kind: CodeKind;
  readonly text: string;
}

const KEYWORDS = new Set(
  `abstract and as async await begin bool boolean break case catch char class const continue def default defer del delete do double elif else
   elsif end enum except export extends false final finally float fn for from func function global go if impl implements import in instanceof
   int interface is lambda let long loop match mod module move mut namespace new nil none not null of or package pass private protected pub
   public raise readonly return select self static string struct super switch then this throw trait true try type typeof undefined union
   unless unsafe until use using var void when where while with yield create table insert into update values set order by group join on
   echo fi esac done local`.split(/\s+/),
);

const LEXEME =
  /(\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|$)|(?<=^|\s)#[^\n]*|(?<=^|\s)--[^\n]*)|("(?:[^"\\\n]|\\.)*"?|'(?:[^'\\\n]|\\.)*'?|`(?:[^`\\]|\\[\s\S])*`?)|(\b\d[\w.]*)|([A-Za-z_$][\w$]*)/gm;

/** Longer code stays plain: highlighting it helps nobody. */
const MAX_CHARS = 60_000;

export function colourCode(code: string): CodePiece[] {
  if (code.length > MAX_CHARS) return [{ kind: "plain", text: code }];
  const pieces: { kind: CodeKind; text: string }[] = [];
  const add = (kind: CodeKind, text: string): void => {
    const last = pieces.at(-1);
    if (text === "") return;
    if (last?.kind === kind) last.text += text;
    else pieces.push({ kind, text });
  };
  let end = 0;
  for (const match of code.matchAll(LEXEME)) {
    add("plain", code.slice(end, match.index));
    add(kindOf(match), match[0]);
    end = match.index + match[0].length;
  }
  add("plain", code.slice(end));
  return pieces;
}

function kindOf([text, comment, string, number]: RegExpExecArray): CodeKind {
  if (comment !== undefined) return "comment";
  if (string !== undefined) return "string";
  if (number !== undefined) return "number";
  return KEYWORDS.has(text.toLowerCase()) ? "keyword" : "plain";
}

export interface TextBlock {
  readonly kind: "text" | "code";
  readonly text: string;
  readonly language: string;
}

/** Running text and fenced code, in order. */
export function splitFences(text: string): TextBlock[] {
  const blocks: TextBlock[] = [];
  let kept: string[] = [];
  let fence: { mark: string; language: string } | null = null;
  const flush = (): void => {
    if (kept.length > 0)
      blocks.push({ kind: fence ? "code" : "text", text: kept.join("\n"), language: fence?.language ?? "" });
    kept = [];
  };
  for (const line of text.split("\n")) {
    const [, mark = "", language = ""] = /^ {0,3}(`{3,}(?!.*`)|~{3,})\s*([\w+#.-]*)/.exec(line) ?? [];
    if (fence === null && mark !== "") {
      flush();
      fence = { mark, language };
    } else if (fence !== null && mark.startsWith(fence.mark) && language === "") {
      flush();
      fence = null;
    } else kept.push(line);
  }
  flush();
  return blocks;
}
