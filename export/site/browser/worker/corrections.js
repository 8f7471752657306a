// Misspelled words of a query: the nearest terms of the corpus, as function/engine/keyword/corrections.py finds them,
// which explains the rules. Left out: the limit of compared terms, which a corpus for a browser does not reach.

/** @import { Correction, Stem } from "./types.js" */
/** @import { Keywords } from "./keywords.js" */
import { isAlphabetic, isAscii } from "./analyzer.js";
import { countOne } from "./arrays.js";

const [SHORTEST, LONGEST, SHORTEST_STEM] = [4, 60, 3]; // letters
const TWO_ERRORS = 6; // letters from which a word can have two errors
const [MOST_NEAREST, MOST_CORRECTED] = [2, 16]; // terms that replace a word, and words of a query
const SUFFIX = 4; // last letters in which an error can hide the stem
const MOST_LETTERS = 48; // different letters that can replace one of these
const ASCII = [..."abcdefghijklmnopqrstuvwxyz"];

/**
 * Return each word of a text whose terms are all unknown, how often it occurs, and its nearest terms if it has any.
 * @type {(text: string, unknown: Set<string>, keywords: Keywords) => [string, number, Correction][]}
 */
export function findCorrections(text, unknown, keywords) {
  /** @type {Map<string, number>} */
  const words = new Map();
  for (const { code, words: parts } of keywords.analyzer.codes(text)) {
    for (const word of /\p{Nd}/u.test(code) ? [] : parts) {
      const isWord = isAlphabetic(word) && [...word].length >= SHORTEST && [...word].length <= LONGEST;
      if (isWord && keywords.analyzer.terms(word, false).every((term) => unknown.has(term))) countOne(words, word);
    }
  }
  const all = [...words].slice(0, MOST_CORRECTED).map(([word, repeats]) => {
    return /** @type {[string, number, Correction]} */ ([word, repeats, correct(word, keywords)]);
  });
  return all.filter(([, , correction]) => correction.size);
}

/** Return the terms at the smallest distance, the most frequent first. @type {(w: string, k: Keywords) => Correction} */
function correct(word, { terms, places, tensors, analyzer }) {
  const stem = analyzer.stemmer && ((/** @type {string} */ each) => analyzer.stem(each));
  const own = stem?.(word) ?? word;
  const letters = [...own];
  if (letters.length < SHORTEST_STEM || letters.length > LONGEST) return new Map();
  const near = terms.filter((term) => term.startsWith(letters[0]) || endOf(term) === endOf(own));
  const distances = near.map((term) => distance(letters, [...term]));
  const at = (/** @type {number} */ errors) => near.filter((term, i) => distances[i] === errors && isAlphabetic(term));
  /** @type {Map<string, string | null>} the word that has each term, for people */
  let nearest = new Map(at(1).map((term) => [term, null]));
  if (stem && (own === word || !nearest.size)) {
    const first = Math.max(1, [...word].length - SUFFIX);
    const begin = [...word].slice(0, Math.min(first, SHORTEST_STEM)).join("");
    for (const edit of edits(word, first, isAscii(word) ? ASCII : frequentLetters(near))) {
      const term = stem(edit);
      const isNew = term.length < edit.length && term.startsWith(begin) && places.has(term) && !nearest.get(term);
      if (isNew) nearest.set(term, edit);
    }
  }
  if (!nearest.size && [...word].length >= TWO_ERRORS) nearest = new Map(at(2).map((term) => [term, null]));
  const offsets = tensors["postings.offsets"];
  const uses = (/** @type {number} */ place) => offsets[place + 1] - offsets[place];
  const byUse = [...nearest].sort(([a], [b]) => uses(places.get(b) ?? 0) - uses(places.get(a) ?? 0));
  return new Map(byUse.slice(0, MOST_NEAREST).map(([term, edit]) => [term, edit ?? withEnding(term, word, own, stem)]));
}

/** Return the last two bytes of a word in UTF-8. @type {(word: string) => string} */
const endOf = (word) => (isAscii(word) ? word.slice(-2) : String(new TextEncoder().encode(word.slice(-2)).slice(-2)));

/** @type {(terms: string[]) => string[]} */
function frequentLetters(terms) {
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (const letter of terms.join("")) countOne(counts, letter);
  const order = [...counts].sort(([a, m], [b, n]) => n - m || Number(a.codePointAt(0)) - Number(b.codePointAt(0)));
  return order.flatMap(([letter], i) => (i < MOST_LETTERS && isAlphabetic(letter) ? [letter] : []));
}

/**
 * Return a word with this stem that is like a word with the stem `own`, or the term if none is found.
 * @type {(term: string, word: string, own: string, stem: Stem | null) => string}
 */
function withEnding(term, word, own, stem) {
  if (!stem) return term;
  const likely = [1, 0].map((cut) => term.slice(0, term.length - cut) + word.slice(own.length - cut));
  return [...likely, ...edits(word, 0, ASCII)].find((whole) => stem(whole) === term) ?? term;
}

/**
 * Return the words that have one error at the letter `first` or after it; those as long as the word come first.
 * @type {(word: string, first: number, letters: string[]) => string[]}
 */
function edits(word, first, letters) {
  const all = [...word];
  const places = [...all.keys(), all.length].slice(first);
  /** @type {(at: number, removed: number, ...added: string[]) => string} */
  const edit = (at, removed, ...added) => all.toSpliced(at, removed, ...added).join("");
  const inside = places.filter((at) => at < all.length);
  return [
    ...inside.flatMap((at) => (at + 1 < all.length ? [edit(at, 2, all[at + 1], all[at])] : [])),
    ...inside.flatMap((at) => letters.map((letter) => edit(at, 1, letter))),
    ...places.flatMap((at) => letters.map((letter) => edit(at, 0, letter))),
    ...inside.map((at) => edit(at, 1)),
  ];
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
