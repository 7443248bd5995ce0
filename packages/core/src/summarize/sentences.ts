/**
 * Splits prose into sentences: markdown marks removed, fenced code set aside, headings kept as the context of what follows. Also classifies
 * a sentence for a reader: decisions, constraints, tasks, errors, causes, or chatter. Cue words of several languages.
 */

export interface Sentence {
  readonly text: string;
  /** Sum of the cues found in the sentence and the heading above it. */
  readonly cue: number;
  /** Below 1 for greetings, thanks and narration of the next step. */
  readonly worth: number;
}

export interface Prose {
  readonly sentences: Sentence[];
  /** Fenced code, for the vocabulary only. */
  readonly code: string;
}

const MAX_SENTENCE = 320;

/** States what must be, or must not. */
const CONSTRAINT =
  /\b(must|never|always|do(?:n't| not)|can(?:'t|not)|may not|should(?:n't| not)|required?|requirements?|constraint|only (?:use|when|if)|at (?:most|least)|no more than|(?:above|below|more than|less than|up to|until|minimum|maximum) [€$£]?\d|rules?|polic(?:y|ies)|unless|needs? (?:my|his|her|their) (?:ok|approval)|limit(?:ed)?|budget|forbidden|allowed|deadline|prefer\w*|muss|darf|niemals|immer|doit|jamais|toujours|debe|nunca|siempre)\b|必须|不要|不能|不得|禁止|务必|应该|一定|最多|至少|限制|要求|注意|記住|记住|してはいけない|必ず|반드시|^no (?!problem|worries|idea|doubt|response|way\b)[\w`]+|^(?:keep|use|avoid|make sure|ensure|only)\b/i;

const CUES: readonly (readonly [number, RegExp])[] = [
  [
    3,
    /\b(decid\w+|decision|agreed|we(?:'ll| will) (?:use|go|keep)|going with|settled on|chose|chosen|opt(?:ed)? for|instead of|rather than|switch(?:ed)? to|approved?|rejected?|verdict|conclusion|entschied\w*|beschlossen|décid\w+|decidi\w+)\b|决定|决策|采用|改用|选择了|同意|定为|決定|採用|결정/i,
  ],
  [3, CONSTRAINT],
  [
    2.4,
    /\b(to-?do|next steps?|remaining|pending|still (?:need|missing|open|have)|not yet|blocked|blocker|follow[- ]up|open (?:question|issue|task)|need(?:s|ed)? to|plan(?:ned|ning)? to|in progress|offen|à faire|pendiente)\b|待办|下一步|还需要|尚未|未完成|计划|需要|TODO|やること|残り|해야/i,
  ],
  [
    2.2,
    /\b(error|fail(?:s|ed|ing|ure)?|bugs?|broken|crash\w*|exception|panic|regression|wrong|missing|timeout|denied|invalid|undefined|fehler|erreur|fallo)\b|错误|失败|异常|崩溃|问题|报错|缺少|エラー|失敗|오류/i,
  ],
  [
    1.8,
    /\b(because|root cause|the (?:reason|cause|problem|issue|fix)|caused by|due to|turns out|so that|which means|found (?:that|the|an?|\d+)|discovered|key (?:insight|finding)|weil|parce que|porque)\b|因为|原因|由于|所以|发现|根因|導致|导致|原因は/i,
  ],
  [1.2, /\b(important(?:ly)?|critical|key|main|crucial|essential|note that|remember)\b|重要|关键|重点/i],
  [
    1.4,
    /\b(fixed|added|removed|renamed|changed|created|implemented|updated|deleted|moved|replaced|merged|committed|pushed|deployed|released|passes|passed|works|finished|completed|done|resolved|verified)\b|修复|添加|删除|完成|实现|更新|修改|已经|创建|追加|修正|완료/i,
  ],
];

/** Decides how something is done. */
const DECISION =
  /\b(?:decided|decision:|agreed (?:to|on|that)|we(?:'ll| will) (?:use|go|keep|stick|not)|let(?:'|’)?s (?:use|go|keep|stick|not|leave|drop|skip|make)|going with|settled on|(?:i|we) chose|opted for|i(?:'d| would) (?:rather|prefer)|switch(?:ed|ing) to|beschlossen|entschieden|décidé|decidimos)\b|决定|采用|改用|決定|採用|결정/i;
/** A sentence that gives the reason for the one before. */
const REASON =
  /^(?:because|since|so that|that way|this way|otherwise|the reason|reason:|this (?:keeps|avoids|means|makes)|weil|sonst|parce que|porque|因为|这样|否则)\b/i;
/** The user says that something is not as it should be. */
const CORRECTION =
  /^(?:no\b(?! problem| worries)|nope|nah|not\b|actually|wait|stop|hold on|undo|revert|instead|rather|don(?:'|’)?t|never|that(?:'|’)?s (?:not|wrong)|this is (?:not|wrong)|you (?:should|forgot|missed|didn)|why (?:did|are|is)|i (?:said|meant|would have expected)|nein|falsch|non\b|faux|不对|不是|错了|不要|違う|아니)/i;

export const isDecision = (text: string): boolean => DECISION.test(text);
export const isConstraint = (text: string): boolean => CONSTRAINT.test(text);
export const isCorrection = (text: string): boolean => CORRECTION.test(text);
/**
 * Thanks, greetings and nods, with nothing that could be acted on, and commands to the host: what they led to is in the next messages.
 */
export const isChatter = (text: string): boolean => HOST_COMMAND.test(text) || isSmallTalk(text);

const HOST_COMMAND = /^\/[a-z][\w:-]*$/i;

const isSmallTalk = (text: string): boolean =>
  text.length < 90 &&
  (GREETING.test(text) || text.length < 16) &&
  cueOf(text) === 0 &&
  !isCorrection(text) &&
  !isDecision(text) &&
  !/[`\d?？/]|[\u3040-\u9fff]{6}/.test(text.replace(/(.)\1+/gu, "$1")) &&
  text.split(/\s+/).length < 12;
export const isNarration = (text: string): boolean => NARRATION.test(text);

const GREETING =
  /^(hey|hi|hello|wow|thanks?|thank you|awesome|great|nice|cool|perfect|excellent|sure|yes|yeah|yep|ok(?:ay)?|no problem|sounds (?:good|great)|you're (?:right|welcome)|absolutely|good (?:question|point|idea|to)|(?:that|this|it|what)(?:'s|’s| is| was| sounds| must have been)? (?:an? )?(?:really |so |such |super )?(?:awesome|great|so|amazing|cool|wonderful|fantastic|nice|special|fun|powerful)|so (?:cool|nice|happy|glad)|glad|(?:totally|completely|i) agree|no doubts?|congrats\w*|can't wait|haha|lol|who?ah?|aww?|take care|bye|see you|好的|谢谢|你好|没问题|当然|是的|嗯|哈哈|はい|ありがとう)(?:[\s,.!?~，。！]|$)/i;

const NARRATION =
  /^(?:(?:now|next|first|then|also|ok(?:ay)?|good|great|perfect|alright)[,.!:]? +)*(?:let me|let's (?:look|see|check|start)|i'll (?:now|start|check|look|read|take|continue|help|run)|i need to (?:look|check|see|understand|read|find)|i'm going to|i will now|now i(?:'ll| will| need)|looking at|checking|让我|我来|接下来)/i;

/** The sentences of a text in order, with the worth of each by its wording. */
export function readProse(text: string): Prose {
  const sentences: Sentence[] = [];
  const code: string[] = [];
  let fenced = false;
  let headingCue = 0;
  let rowStart = 0;
  for (const raw of text.split("\n")) {
    const line = raw.trim();
    if (/^(```|~~~)/.test(line)) {
      fenced = !fenced;
      continue;
    }
    if (fenced) {
      code.push(raw);
      continue;
    }
    if (isTableRule(line)) sentences.length = rowStart;
    const plain = stripMarks(line);
    if (plain === "") continue;
    rowStart = sentences.length;
    if (isHeading(line, plain)) {
      headingCue = cueOf(plain) / 2;
      if (plain.length > 60) pushSentence(sentences, plain, 0);
      continue;
    }
    for (const sentence of splitLine(plain)) pushSentence(sentences, sentence, headingCue);
  }
  return { sentences, code: code.join("\n") };
}

function pushSentence(sentences: Sentence[], text: string, headingCue: number): void {
  const clean = text.trim();
  if (clean.length < 2) return;
  const before = sentences.at(-1);
  // A decision keeps its reason.
  if (before !== undefined && REASON.test(clean) && isDecision(before.text)) {
    sentences[sentences.length - 1] = {
      ...before,
      text: cutAtWord(`${before.text} ${clean}`, 2 * MAX_SENTENCE),
    };
    return;
  }
  sentences.push({
    text: cutAtWord(clean, MAX_SENTENCE),
    cue: cueOf(clean) + headingCue,
    worth: worthOf(clean),
  });
}

/** Strength of the cues in a text; two different cues count more than one, never more than double. */
export function cueOf(text: string): number {
  let sum = 0;
  let best = 0;
  for (const [strength, pattern] of CUES) {
    if (!pattern.test(text)) continue;
    sum += strength;
    if (strength > best) best = strength;
  }
  return Math.min(sum, best * 2);
}

function worthOf(text: string): number {
  if (GREETING.test(text) && text.length < 90) return 0.25;
  if (NARRATION.test(text)) return 0.3;
  return 1;
}

function isHeading(line: string, plain: string): boolean {
  if (/^#{1,6}\s/.test(line)) return true;
  if (plain.length > 80) return false;
  return /[:：]$/.test(plain) || /^\*\*[^*]+\*\*:?$/.test(line);
}

/** The line under a table's header: the header says nothing without its columns. */
const isTableRule = (line: string): boolean => /^\|?\s*:?-{2,}:?\s*\|[\s|:-]*$/.test(line);

function stripMarks(line: string): string {
  if (/^[\s|:+=*_-]*$/.test(line)) return "";
  const cells = line.startsWith("|") ? line.replace(/^\||\|$/g, "").split("|") : null;
  const joined =
    cells === null
      ? line
      : cells
          .map((cell) => cell.trim())
          .filter(Boolean)
          .join(" — ");
  return joined
    .replace(/^(?:[>#*•·-]+\s+)+/, "")
    .replace(/^\d{1,3}[.)]\s+/, "")
    .replace(/^\[[ x]\]\s+/i, "")
    .replace(/\*\*([^*]+)\*\*/g, "$1")
    .replace(/<\/?[a-z][a-z0-9_-]{0,40}>/gi, " ")
    .replace(/\s+/g, " ")
    .trim();
}

const SENTENCE_END = /(?<=[.!?…]["')\]]?)\s+(?=["'([`]?[^a-z\s])|(?<=[。！？；])/;

/** Splits one line of prose into sentences, none of them shortened. */
export function splitLine(line: string): string[] {
  if (line.length < 60 && !/[.!?。！？；]./.test(line)) return [line];
  return mergeShort(mergeMarked(line.split(SENTENCE_END)));
}

/** A sentence does not end inside code marks, unless a mark was simply forgotten. */
function mergeMarked(pieces: string[]): string[] {
  const merged: string[] = [];
  let carry = "";
  for (const piece of pieces) {
    const isOdd = hasOddMarks(piece);
    const text = carry === "" ? piece : `${carry} ${piece}`;
    const staysOpen = (carry !== "") !== isOdd && text.length < MAX_SENTENCE;
    if (staysOpen) carry = text;
    else {
      merged.push(text);
      carry = "";
    }
  }
  return carry === "" ? merged : [...merged, carry];
}

function hasOddMarks(text: string): boolean {
  let marks = 0;
  for (let at = text.indexOf("`"); at >= 0; at = text.indexOf("`", at + 1)) marks++;
  return marks % 2 === 1;
}

/** A fragment like `Yes.` or `1.` belongs to the sentence after it. */
function mergeShort(pieces: string[]): string[] {
  const merged: string[] = [];
  let carry = "";
  for (const piece of pieces) {
    const text = carry === "" ? piece : `${carry} ${piece}`;
    if (text.length < 12 && !/[\u3040-\u9fff]/.test(text)) carry = text;
    else {
      merged.push(text);
      carry = "";
    }
  }
  if (carry !== "") merged.push(carry);
  return merged;
}

/** Cuts at a word's end near the limit and adds an ellipsis. */
export function cutAtWord(text: string, limit: number): string {
  if (text.length <= limit) return text;
  const room = text.slice(0, limit - 1);
  const space = room.lastIndexOf(" ");
  const end = space > limit * 0.6 ? space : room.length;
  const isBroken = end > 0 && isHighSurrogate(room.charCodeAt(end - 1));
  return `${room.slice(0, isBroken ? end - 1 : end).trimEnd()}…`;
}

const isHighSurrogate = (code: number): boolean => code >= 0xd800 && code <= 0xdbff;
