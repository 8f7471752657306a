// The parts of texts that answer a query, and snippets, as function/engine/keyword/highlights.py chooses them.
// Places are code points of a text, so a text is an array of characters here.

import { PAIR, SPACE, WORD } from "./analyzer.js";

const SNIPPET = 240; // maximum characters of a snippet
const FULL_STOP = "\\u3002\\uff01\\uff1f";
const CLOSING = "[\"'\\u201d\\u2019\\u00bb)\\]]*";
const MARK = "[.!?\\u2026]";
const SENTENCE = new RegExp(
  `(?=[^${SPACE}])(?:[^\\n.!?\\u2026${FULL_STOP}]+|${MARK}(?!${CLOSING}(?:[${SPACE}]|$)))*(?:${MARK}${CLOSING}|[${FULL_STOP}])?`,
  "gu",
);
const BLANK = new RegExp(`[${SPACE}]`, "u");

/** @typedef {[number, number]} Range start and end */

/**
 * Return the ranges of each text that answer the query, and where its snippet is. marksWords: the ranges are the words
 * of the query; otherwise, or if there are none, the best sentence.
 * @param {string[]} texts
 * @param {string} query
 * @param {import("./analyzer.js").Analyzer} analyzer
 * @param {string[]} corrected the terms that replace misspelled words
 * @param {boolean} marksWords
 * @returns {{ranges: Range[], snippet: Range}[]}
 */
export function highlight(texts, query, analyzer, corrected, marksWords) {
  const wanted = new Set([...analyzer.terms(query), ...corrected]);
  /** @type {Map<string, string[]>} */
  const known = new Map();
  const termsOf = (/** @type {string} */ word) => {
    const terms = known.get(word) ?? analyzer.terms(word).filter((term) => wanted.has(term));
    known.set(word, terms);
    return terms;
  };
  const divided = texts.map((text) => divide(text, termsOf, analyzer.version));
  /** @type {Map<string, number>} */
  const counts = new Map();
  const all = divided.flatMap(({ shared }) => shared);
  for (const found of all) for (const term of found) counts.set(term, (counts.get(term) ?? 0) + 1);
  const weight = (/** @type {string} */ term) => Math.log1p(all.length / Number(counts.get(term)));
  return divided.map(({ characters, sentences, shared, words }) => {
    const scores = shared.map((found) => [...found].map(weight).sort((a, b) => a - b).reduce((sum, one) => sum + one, 0));
    const best = sentences[scores.indexOf(Math.max(...scores))];
    const first = words.find(([start]) => start >= best[0])?.[0] ?? best[0];
    return { ranges: marksWords && words.length ? words : [best], snippet: findSnippet(characters, best, first) };
  });
}

/**
 * Return the sentences of a text, the terms of the query in each, and the words that have one.
 * @param {string} text
 * @param {(word: string) => string[]} termsOf
 * @param {number} version
 */
function divide(text, termsOf, version) {
  const characters = [...text];
  const isPlain = characters.length === text.length;
  /** @type {number[]} the code point at each unit of the string */
  const points = isPlain ? [] : characters.flatMap((one, i) => (one.length > 1 ? [i, i] : [i])).concat(characters.length);
  const at = (/** @type {number} */ unit) => (isPlain ? unit : points[unit]);
  /** @type {(match: any, part: string) => Range} */
  const range = (match, part) => [at(match.index), at(match.index + part.length)];
  const sentences = Array.from(text.matchAll(SENTENCE), (match) => range(match, match[0]));
  if (!sentences.length) sentences.push([0, characters.length]);
  /** @type {Set<string>[]} */
  const shared = sentences.map(() => new Set());
  const found = Array.from(text.matchAll(WORD), (match) => range(match, match[0]));
  if (version > 1) found.push(...Array.from(text.matchAll(PAIR), (match) => range(match, match[1])));
  /** @type {Range[]} */
  const words = [];
  for (const [start, end] of found.sort(([a, b], [c, d]) => a - c || b - d)) {
    const terms = termsOf(characters.slice(start, end).join(""));
    if (!terms.length) continue;
    const last = words.at(-1);
    if (last && start < last[1]) last[1] = end;
    else words.push([start, end]);
    for (const term of terms) shared[sentences.findIndex(([, stop]) => stop > start)].add(term);
  }
  return { characters, sentences, shared, words };
}

/**
 * Return at most SNIPPET characters from the sentence on; if it is longer, its part with the word at `word`.
 * @param {string[]} text
 * @param {Range} sentence
 * @param {number} word
 * @returns {Range}
 */
function findSnippet(text, [start, stop], word) {
  const isBlank = (/** @type {string} */ one) => BLANK.test(one);
  const nextWord = (/** @type {number} */ place) => {
    if (place === 0 || isBlank(text[place - 1])) return place;
    const part = text.slice(place, place + SNIPPET / 4);
    const blank = part.findIndex(isBlank);
    const after = part.findIndex((one, i) => i > blank && !isBlank(one));
    return blank < 0 ? place : place + (after < 0 ? part.length : after);
  };
  const lastWord = text.findLastIndex((one) => !isBlank(one)) + 1;
  if (word - start > SNIPPET / 2 && stop - start > SNIPPET) start = nextWord(word - SNIPPET / 3);
  let end = Math.min(start + SNIPPET, lastWord);
  if (end < text.length && !isBlank(text[end])) {
    const cut = start + text.slice(start, end).findLastIndex((one) => one === " " || one === "\n");
    if (cut > start + SNIPPET / 2) end = cut;
  }
  if (text.length - start < SNIPPET) start = Math.min(start, nextWord(Math.max(0, end - SNIPPET)));
  return [start, start + text.slice(start, end).findLastIndex((one) => !isBlank(one)) + 1];
}
