/** What of a user's message the user wrote. */
import { expect, test } from "vitest";
import { readUserText } from "../../src/summarize/injected.ts";

test.each([
  "<USER_REQUEST>\nList the files\n</USER_REQUEST>",
  "<user_query>List the files</user_query>",
  "<command-name>List</command-name><command-args>the files</command-args>",
])("a frame around what the user typed is not part of it: %s", (raw) => {
  expect(readUserText(raw)).toEqual({ text: "List the files", isNotice: false });
});
