/** `lcm name`, `tag`, `pin` and `hide`: labels that help people find a conversation. Only lists use them. */
import type { Command } from "commander";
import { EngineError } from "@lossless/core";
import type { LabelUpdate } from "@lossless/core";
import { toOneLine, usageError } from "@lossless/core/doors";
import { toAction } from "../../invocation.ts";
import type { Invocation } from "../../invocation.ts";
import { style } from "../../style.ts";
import { addExamples, parseConversationId, toConversationJson } from "../shared.ts";

const ID = ["<conversation>", "number of the conversation"] as const;

export function defineLabels(program: Command): void {
  const name = program
    .command("name")
    .description("Name a conversation; lists show the name instead of the agent's title")
    .argument(...ID, parseConversationId)
    .argument("[words...]", "the name")
    .option("--remove", "take the name away")
    .action(toAction(runName));
  addExamples(name, [
    ["lcm name 3 Retry budget", "name conversation 3"],
    ["lcm name 3 --remove", "show the agent's own title again"],
  ]);
  const tag = program
    .command("tag")
    .description("Tag a conversation; lcm conversations list --tag shows what has a tag")
    .argument(...ID, parseConversationId)
    .argument("<tags...>", "one or more words")
    .option("--remove", "take these tags away")
    .action(toAction(runTag));
  addExamples(tag, [["lcm tag 3 billing later", "give conversation 3 two tags"]]);
  const pin = program
    .command("pin")
    .description("Pin a conversation to the top of lists")
    .argument(...ID, parseConversationId)
    .option("--remove", "unpin it")
    .action(
      toAction((invocation, options: Switch, id: number) => runSwitch(invocation, id, "pinned", options)),
    );
  addExamples(pin, [["lcm pin 3", "show conversation 3 first in lists"]]);
  const hide = program
    .command("hide")
    .description("Hide a conversation from lists; search, proof and export still see it")
    .argument(...ID, parseConversationId)
    .option("--remove", "list it again")
    .action(
      toAction((invocation, options: Switch, id: number) => runSwitch(invocation, id, "unlisted", options)),
    );
  addExamples(hide, [["lcm hide 3", "leave conversation 3 out of lists"]]);
}

interface Switch {
  readonly remove?: boolean;
}

function runName(
  invocation: Invocation,
  { remove = false }: Switch,
  id: number,
  words: readonly string[],
): Promise<void> {
  const name = words.join(" ").trim();
  if (remove === (name !== ""))
    throw usageError(
      `cannot name conversation ${id}: ${remove ? "--remove takes no name" : "no name was given"}`,
      "Give a name, or --remove alone",
    );
  return label(invocation, id, { name: remove ? null : name });
}

const runTag = (
  invocation: Invocation,
  { remove = false }: Switch,
  id: number,
  tags: readonly string[],
): Promise<void> => label(invocation, id, remove ? { removeTags: tags } : { addTags: tags });

const runSwitch = (
  invocation: Invocation,
  id: number,
  what: "pinned" | "unlisted",
  { remove = false }: Switch,
): Promise<void> => label(invocation, id, { [what]: !remove });

async function label(invocation: Invocation, conversationId: number, update: LabelUpdate): Promise<void> {
  const row = await invocation.withArchive("change", (engine) =>
    engine.labelConversation({ ...invocation.scope, conversationId, ...update }),
  );
  if (row === null)
    throw new EngineError("not_found", `cannot find conversation ${conversationId}`, {
      hint: "lcm conversations list shows every conversation",
    });
  const facts = [
    ...(row.tags.length === 0 ? [] : [`tags: ${toOneLine(row.tags.join(", "))}`]),
    ...(row.pinnedAt === null ? [] : ["pinned"]),
    ...(row.unlistedAt === null ? [] : ["hidden from lists"]),
  ];
  const said = facts.length === 0 ? "" : style.faint(` (${facts.join("; ")})`);
  await invocation.print({
    data: toConversationJson(row),
    text: () => `${style.name(String(conversationId))}  ${toOneLine(row.heading)}${said}`,
  });
}
