// Misspelled words of a query: the nearest terms of the corpus, as function/engine/keyword/corrections.py finds them,
// which explains the rules. Left out: the limit of compared terms, which a corpus for a browser does not reach.

import { isAlphabetic } from "./analyzer.js";

const SHORTEST = 4; // letters of a word that is corrected
const TWO_ERRORS = 6; // letters from which a word can have two errors
const LONGEST = 60;
const SHORTEST_STEM = 3;
const MOST_NEAREST = 2; // terms that replace a word
const MOST_CORRECTED = 16; // words of a query
const SUFFIX = 4; // last letters in which an error can hide the stem
const MOST_LETTERS = 48; // different letters that can replace one of these
const ASCII = [..."abcdefghijklmnopqrstuvwxyz"];

/** @typedef {import("./keywords.js").Keywords} Keywords */

/**
 * Return each word of a text whose terms are all unknown, how often it occurs, and its nearest terms if it has any.
 * @param {string} text
 * @param {Set<unknown>} unknown
 * @param {Keywords} keywords
 * @returns {[string, number, Map<string, string>][]}
 */
export function findCorrections(text, unknown, keywords) {
  /** @type {Map<string, number>} */
  const words = new Map();
  for (const { code, words: parts } of keywords.analyzer.codes(text)) {
    for (const word of /\p{Nd}/u.test(code) ? [] : parts) {
      const isWord = [...word].length >= SHORTEST && [...word].length <= LONGEST && isAlphabetic(word);
      const isUnknown = () => keywords.analyzer.terms(word, false).every((term) => unknown.has(term));
      if (isWord && isUnknown()) words.set(word, (words.get(word) ?? 0) + 1);
    }
  }
  const first = [...words].slice(0, MOST_CORRECTED);
  return first
    .map(([word, repeats]) => /** @type {any} */ ([word, repeats, correct(word, keywords)]))
    .filter(([, , terms]) => terms.size);
}

/**
 * Return the terms at the smallest distance from a word, the most frequent first, each with a word that has this stem.
 * @param {string} word
 * @param {Keywords} keywords
 * @returns {Map<string, string>}
 */
function correct(word, { terms, places, tensors, analyzer }) {
  const stem = analyzer.stemmer && ((/** @type {string} */ each) => analyzer.stem(each));
  const own = stem ? stem(word) : word;
  const length = [...own].length;
  if (length < SHORTEST_STEM || length > LONGEST) return new Map();
  const first = [...own][0];
  const near = terms.filter((term) => term.startsWith(first) || endOf(term) === endOf(own));
  const distances = near.map((term) => distance([...own], [...term]));
  /** @param {number} errors @returns {[string, string | null][]} */
  const at = (errors) => near.filter((term, i) => distances[i] === errors && isAlphabetic(term)).map((t) => [t, null]);
  let nearest = new Map(at(1));
  if (stem && (own === word || !nearest.size)) {
    const letters = /^[\0-\x7f]*$/.test(word) ? ASCII : frequentLetters(near);
    const begin = [...word].slice(0, Math.min(Math.max(1, [...word].length - SUFFIX), SHORTEST_STEM)).join("");
    const found = new Map();
    for (const edit of edits(word, Math.max(1, [...word].length - SUFFIX), letters)) {
      const term = stem(edit);
      if (term.length < edit.length && places.has(term) && term.startsWith(begin) && !found.has(term)) {
        found.set(term, edit);
      }
    }
    for (const [term, edit] of found) nearest.set(term, edit);
  }
  if (!nearest.size && [...word].length >= TWO_ERRORS) nearest = new Map(at(2));
  const offsets = tensors["postings.offsets"];
  const uses = (/** @type {string} */ term) => {
    const place = /** @type {number} */ (places.get(term));
    return offsets[place + 1] - offsets[place];
  };
  const byUse = [...nearest].sort(([one], [other]) => uses(other) - uses(one)).slice(0, MOST_NEAREST);
  return new Map(byUse.map(([term, edit]) => [term, edit ?? withEnding(term, word, own, stem)]));
}

/** @param {string} word its last two bytes in UTF-8 */
const endOf = (word) => String(new TextEncoder().encode(word.slice(-2)).slice(-2));

/** @param {string[]} terms @returns {string[]} the most frequent letters */
function frequentLetters(terms) {
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (const letter of terms.join("")) counts.set(letter, (counts.get(letter) ?? 0) + 1);
  const order = [...counts].sort(([a, m], [b, n]) => n - m || Number(a.codePointAt(0)) - Number(b.codePointAt(0)));
  return order.slice(0, MOST_LETTERS).map(([letter]) => letter).filter(isAlphabetic);
}

/**
 * Return a word with this stem that is like a word with the stem `own`, or the term if none is found.
 * @param {string} term
 * @param {string} word
 * @param {string} own
 * @param {((word: string) => string) | null} stem
 */
function withEnding(term, word, own, stem) {
  if (!stem) return term;
  const likely = [1, 0].map((cut) => term.slice(0, term.length - cut) + word.slice(own.length - cut));
  const has = (/** @type {string} */ whole) => stem(whole) === term;
  return likely.find(has) ?? [...edits(word, 0, ASCII)].find(has) ?? term;
}

/**
 * Yield the words that have one error at the letter `first` or after it; those as long as the word come first.
 * @param {string} word
 * @param {number} first
 * @param {string[]} letters
 */
function* edits(word, first, letters) {
  const all = [...word];
  const parts = all.concat("").map((_, place) => [all.slice(0, place).join(""), all.slice(place)]).slice(first);
  for (const [head, tail] of parts) if (tail.length > 1) yield head + tail[1] + tail[0] + [...tail].slice(2).join("");
  for (const [head, tail] of parts) if (tail.length) for (const x of letters) yield head + x + [...tail].slice(1).join("");
  for (const [head, tail] of parts) for (const letter of letters) yield head + letter + [...tail].join("");
  for (const [head, tail] of parts) if (tail.length) yield head + [...tail].slice(1).join("");
}

/**
 * Return the errors between two words: a letter added, left out or replaced, or two neighbours exchanged. Beyond two it
 * returns 3.
 * @param {string[]} one
 * @param {string[]} other
 */
function distance(one, other) {
  if (Math.abs(one.length - other.length) > 2) return 3;
  let [before, last] = [/** @type {number[]} */ ([]), Array.from({ length: other.length + 1 }, (_, j) => j)];
  for (let i = 1; i <= one.length; i++) {
    const row = [i];
    for (let j = 1; j <= other.length; j++) {
      const isSame = one[i - 1] === other[j - 1];
      row[j] = Math.min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (isSame ? 0 : 1));
      const isSwapped = i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1];
      if (isSwapped) row[j] = Math.min(row[j], before[j - 2] + 1);
    }
    [before, last] = [last, row];
  }
  return Math.min(last[other.length], 3);
}
