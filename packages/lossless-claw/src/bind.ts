/** Binds the library's way of opening archives to the verbs of core. Calls are marked as pure, so that a bundle leaves out unused ones. */

/** The verb without its last parameter. */
export function bind<Request extends readonly unknown[], Last, Result>(
  verb: (...request: [...Request, last: Last]) => Result,
  last: Last,
): (...request: Request) => Result {
  return (...request) => verb(...request, last);
}
