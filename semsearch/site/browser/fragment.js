// The address of a result with a text fragment, which names a sentence: the browser scrolls to it and marks it.
// https://wicg.github.io/scroll-to-text-fragment/ has the syntax. If the page does not have the sentence, the anchor is used.

/** @typedef {{text: string, highlights: [number, number][]}} Snippet highlights are ranges of code points */

const LEAST = 20; // characters of a sentence: a shorter one can be in a menu of the page too
const LONGEST = 120; // characters of a sentence that is named as a whole
const EDGE = 8; // words at the begin and at the end of a longer one, which name it
const BETWEEN = /^- | \| /gm; // the mark of an item of a list, and between the cells of a table: not on the page

/**
 * Return the address with the sentence of the snippet that has most of the highlights, the first of equal ones. Return
 * the address alone if only shorter sentences than LEAST have one.
 * @type {(url: string, snippet: Snippet) => string}
 */
export function addSentence(url, { text, highlights }) {
  const characters = [...text];
  const unitsTo = (/** @type {number} */ place) => characters.slice(0, place).join("").length;
  const ranges = highlights.map(([from, to]) => [unitsTo(from), unitsTo(to)]);
  const countMarked = (/** @type {number} */ start, /** @type {number} */ end) =>
    ranges.reduce((sum, [from, to]) => sum + Math.max(0, Math.min(to, end) - Math.max(from, start)), 0);
  const lines = text.replace(BETWEEN, (found) => "\n".repeat(found.length)); // a new line ends a sentence
  const sentences = Array.from(new Intl.Segmenter([], { granularity: "sentence" }).segment(lines));
  let [best, most] = ["", ranges.length ? 0 : -1];
  for (const { segment, index } of sentences) {
    const marked = countMarked(index, index + segment.length);
    if (segment.trim().length >= LEAST && marked > most) [best, most] = [segment.trim(), marked];
  }
  if (!best) return url;
  return `${url}${url.includes("#") ? "" : "#"}:~:text=${partsOf(best).map(encode).join(",")}`;
}

/** Return a sentence, or the words that begin and end a long one. @type {(sentence: string) => string[]} */
function partsOf(sentence) {
  const words = sentence.split(/\s+/);
  if (sentence.length <= LONGEST || words.length < 2 * EDGE) return [sentence];
  return [words.slice(0, EDGE), words.slice(-EDGE)].map((part) => part.join(" "));
}

/** Escape what has a meaning in a text fragment: - , & and what no address has. @type {(text: string) => string} */
const encode = (text) => encodeURIComponent(text).replaceAll("-", "%2D");
