/** A problem of the protocol in one line: for a message that does not match its schema, the library lists every kind it could have been. */
export function describeProblem({ name, message }: Error): string {
  if (name === "ZodError" || /^\s*[[{]/u.test(message))
    return "input that is not a JSON-RPC message was ignored";
  return message.split("\n", 1)[0] ?? "";
}
