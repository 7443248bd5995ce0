/** Verbs of core are told how archives are opened; the library fills that in. Calls are marked as pure, so that a bundle leaves out what it does not use. */

/** The verb without its last parameter. */
export function bind<Request extends readonly unknown[], Last, Result>(
  verb: (...request: [...Request, last: Last]) => Result,
  last: Last,
): (...request: Request) => Result {
  return (...request) => verb(...request, last);
}
