/** Finds the known word that was most likely meant by a misspelt one, so that an error can suggest it. Pure. */

/** The closest candidate, ignoring case, or null when nothing is close enough to be worth suggesting. */
export function findNearest(word: string, candidates: Iterable<string>): string | null {
  let best: string | null = null;
  let bestDistance = Math.max(2, Math.floor(word.length / 2)) + 1;
  for (const candidate of candidates) {
    const distance = distanceForPeople(word.toLowerCase(), candidate.toLowerCase());
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

/** A word that is the beginning of another is near to it, however much is missing. */
function distanceForPeople(word: string, candidate: string): number {
  const distance = editDistance(word, candidate);
  return word.length >= 4 && candidate.startsWith(word) ? Math.min(distance, 2) : distance;
}

/** How many single letters have to be added, removed or replaced to turn one word into the other. */
export function editDistance(from: string, to: string): number {
  let previous = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let row = 1; row <= from.length; row++) {
    const current = [row];
    for (let column = 1; column <= to.length; column++) {
      const replaced = previous[column - 1]! + (from[row - 1] === to[column - 1] ? 0 : 1);
      current.push(Math.min(replaced, previous[column]! + 1, current[column - 1]! + 1));
    }
    previous = current;
  }
  return previous[to.length]!;
}
