// Misspelled words of a query: the nearest words of the corpus, as semsearch/engine/keyword/corrections.py finds them,
// which explains the rules. Left out: the limit of compared words, which a corpus for a browser does not reach.

/** @import { Correction, Lexicon } from "./types.js" */
/** @import { Keywords } from "./keywords.js" */
import { isAlphabetic, isAscii } from "./analyzer.js";
import { countOne } from "./arrays.js";

const [SHORTEST, LONGEST] = [4, 60]; // letters
const [TWO_ERRORS, MANY_TOKENS] = [8, 4]; // letters and tokens from which a word can have two errors
const [MOST_NEAREST, MOST_CORRECTED] = [2, 16]; // words that replace a word, and words of a query
const [LEAST_KNOWN, FEW_POSTINGS] = [0.5, 10];
/**
 * Return each word of a text whose terms are all unknown, how often it occurs, and the words that replace it if there
 * are any. found is how many postings the other terms have.
 * @type {(text: string, unknown: Set<string>, found: number, keywords: Keywords, lexicon: Lexicon) =>
 *   [string, number, Correction][]}
 */
export function findCorrections(text, unknown, found, keywords, lexicon) {
  if (lexicon.known < LEAST_KNOWN && found >= FEW_POSTINGS) return [];
  /** @type {Map<string, number>} */
  const misspelled = new Map();
  for (const { code } of keywords.analyzer.codes(text)) {
    const { length } = [...code];
    if (!isAlphabetic(code) || length < SHORTEST || length > LONGEST) continue;
    if (keywords.analyzer.terms(code).every((term) => unknown.has(term))) countOne(misspelled, code);
  }
  const wrong = [...misspelled].filter(([word]) => !isCorrect(word, keywords, lexicon)).slice(0, MOST_CORRECTED);
  const all = wrong.map(([word, repeats]) => {
    return /** @type {[string, number, Correction]} */ ([word, repeats, correct(word, keywords, lexicon)]);
  });
  return all.filter(([, , correction]) => correction.size);
}

/** @type {(word: string, keywords: Keywords, lexicon: Lexicon) => Correction} */
function correct(word, keywords, { words, tokenizer }) {
  const { analyzer } = keywords;
  const [letters, parts, last] = [[...word], tokenizer.split(word), endOf(word)];
  const near = words.filter((each) => each.startsWith(letters[0]) || endOf(each) === last);
  const distances = near.map((each) => distance(letters, [...each]));
  const at = (/** @type {number} */ errors) => near.filter((each, i) => distances[i] === errors);
  let candidates = at(1);
  const canBeTwo = !candidates.length && letters.length >= TWO_ERRORS && parts.length >= MANY_TOKENS;
  if (canBeTwo) candidates = at(2).filter((each) => each.startsWith(letters[0]));
  const terms = candidates.map((each) => analyzer.terms(each));
  const byStem = new Map(candidates.map((each, i) => [terms[i].at(-1), { each, terms: terms[i] }]));
  let found = Array.from(byStem.values(), (one) => ({
    ...one,
    rows: Math.max(...one.terms.map((term) => keywords.count(term))),
  }));
  if (found.length > 1) found = found.filter(({ rows }) => rows > 1);
  found.sort((a, b) => b.rows - a.rows);
  return new Map(found.slice(0, MOST_NEAREST).map(({ each, terms }) => [each, terms]));
}

/** Return whether the tokenizer has a word, or what its ending is added to, as one token. @type {(word: string, keywords: Keywords, lexicon: Lexicon) => boolean} */
const isCorrect = (word, { analyzer }, { tokenizer }) =>
  String(analyzer.terms(tokenizer.split(word)[0])) === String(analyzer.terms(word));

/** Return the last two bytes of a word in UTF-8. @type {(word: string) => string} */
function endOf(word) {
  const end = word.slice(-2);
  return isAscii(end) ? end : String(new TextEncoder().encode(end).slice(-2));
}

/**
 * Return the errors between two words, 3 if they are more than two: a letter added, left out or replaced, or two
 * neighbours exchanged.
 * @type {(one: string[], other: string[]) => number}
 */
function distance(one, other) {
  if (Math.abs(one.length - other.length) > 2) return 3;
  let [before, last] = [/** @type {number[]} */ ([]), [...other.keys(), other.length]];
  for (let i = 1; i <= one.length; i++) {
    const row = [i];
    for (let j = 1; j <= other.length; j++) {
      row[j] = Math.min(last[j] + 1, row[j - 1] + 1, last[j - 1] + Number(one[i - 1] !== other[j - 1]));
      const isSwapped = i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1];
      if (isSwapped) row[j] = Math.min(row[j], before[j - 2] + 1);
    }
    [before, last] = [last, row];
  }
  return Math.min(last[other.length], 3);
}
