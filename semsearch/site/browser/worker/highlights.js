// The parts of texts that answer a query, and snippets, as semsearch/engine/keyword/highlights.py chooses them.
// Places are code points of a text, so a text is an array of characters here.

/** @import { Range } from "./types.js" */
/** @typedef {import("./analyzer.js").Analyzer} Analyzer */
import { LETTER, PAIR, SPACE, WORD } from "./analyzer.js";
import { countOne } from "./arrays.js";

const SNIPPET = 240; // maximum characters of a snippet
const LONGEST_LABEL = 20; // characters of a label of a note or a file, with which no snippet should begin
const [MARK, STOP, CLOSING] = ["[.!?\\u2026]", "\\u3002\\uff01\\uff1f", "[\"'\\u201d\\u2019\\u00bb)\\]]*"];
const INSIDE = `(?:[^\\n.!?\\u2026${STOP}]+|${MARK}(?!${CLOSING}(?:[${SPACE}]|$)))*`;
const SENTENCE = new RegExp(`(?=[^${SPACE}])${INSIDE}(?:${MARK}${CLOSING}|[${STOP}])?`, "gu");
// the words of this can be one word of the query
const HYPHENATED = new RegExp(`(?<!${LETTER})${LETTER}+(?:[-_]${LETTER}+){1,2}`, "gu");
const HYPHENS = /[-_]/;
const BLANK = new RegExp(`[${SPACE}]`, "u");

/** @type {(character: string) => boolean} */
const isBlank = (character) => BLANK.test(character);
/** @type {(character: string) => boolean} */
const isShown = (character) => !BLANK.test(character);

/**
 * Return the ranges of each text that answer the query, and its snippet. With marksWords, the ranges are the words of
 * the query; otherwise the best sentence. corrected are terms that replace misspelled words.
 * @type {(texts: string[], query: string, analyzer: Analyzer, corrected: string[],
 *   marksWords: boolean) =>
 *   {highlights: Range[], snippet: {start: number, end: number, text: string, highlights: Range[]}}[]}
 */
export function highlight(texts, query, analyzer, corrected, marksWords) {
  const content = query.replace(WORD, (word) => (analyzer.stopWords.has(word.toLowerCase()) ? " " : word));
  const terms = analyzer.terms(content);
  const wanted = new Set([...(terms.length ? terms : analyzer.terms(query)), ...corrected]);
  /** @type {Map<string, string[]>} */
  const known = new Map();
  const termsOf = (/** @type {string} */ word) => {
    const own = () => (HYPHENS.test(word) ? analyzer.joinedCodes(word).map(({ whole }) => whole) : [word]);
    const terms =
      known.get(word) ??
      own()
        .flatMap((each) => analyzer.terms(each))
        .filter((term) => wanted.has(term));
    known.set(word, terms);
    return terms;
  };
  const divided = texts.map((text) => divide(text, termsOf));
  /** @type {Map<string, number>} */
  const counts = new Map();
  const sentences = divided.flatMap(({ shared }) => shared);
  for (const found of sentences) for (const term of found) countOne(counts, term);
  const weight = (/** @type {string} */ term) => Math.log1p(sentences.length / Number(counts.get(term)));
  return divided.map(({ characters, sentences, shared, words }) => {
    const scores = shared.map((found) =>
      Array.from(found, weight)
        .sort()
        .reduce((sum, one) => sum + one, 0),
    );
    const most = Math.max(...scores);
    const equal = sentences.filter((_, i) => scores[i] === most);
    const best = equal.find(([start, end]) => end - start > LONGEST_LABEL) ?? equal[0];
    const [start, end] = findSnippet(characters, best, words.find(([start]) => start >= best[0])?.[0] ?? best[0]);
    const ranges = query ? (marksWords ? words : [best]).filter(([from, to]) => from < to) : [];
    const inside = ranges.map(([from, to]) => /** @type {Range} */ ([Math.max(from, start), Math.min(to, end)]));
    return {
      highlights: ranges,
      snippet: {
        start,
        end,
        text: characters.slice(start, end).join(""),
        highlights: inside.filter(([from, to]) => from < to).map(([from, to]) => [from - start, to - start]),
      },
    };
  });
}

/**
 * Return the sentences of a text, the terms of the query in each, and the words that have one.
 * @type {(text: string, termsOf: (word: string) => string[]) =>
 *   {characters: string[], sentences: Range[], shared: Set<string>[], words: Range[]}}
 */
function divide(text, termsOf) {
  const characters = [...text];
  /** @type {number[]} the code point at each unit of the string */
  const points = characters.flatMap((one, i) => (one.length > 1 ? [i, i] : [i])).concat(characters.length);
  /** @type {(match: any, part: string) => Range} */
  const range = ({ index }, part) => [points[index], points[index + part.length]];
  const sentences = Array.from(text.matchAll(SENTENCE), (match) => range(match, match[0]));
  if (!sentences.length) sentences.push([0, characters.length]);
  const shared = sentences.map(() => new Set());
  const found = Array.from(text.matchAll(WORD), (match) => range(match, match[0]));
  found.push(...Array.from(text.matchAll(HYPHENATED), (match) => range(match, match[0])));
  found.push(...Array.from(text.matchAll(PAIR), (match) => range(match, match[1])));
  /** @type {Range[]} */
  const words = [];
  for (const [start, end] of found.sort(([a, b], [c, d]) => a - c || b - d)) {
    const terms = termsOf(characters.slice(start, end).join(""));
    const last = words.at(-1);
    if (terms.length && last && start < last[1]) last[1] = Math.max(last[1], end);
    else if (terms.length) words.push([start, end]);
    for (const term of terms) shared[sentences.findIndex(([, stop]) => stop > start)].add(term);
  }
  return { characters, sentences, shared, words };
}

/**
 * Return at most SNIPPET characters from the sentence on; if it is longer, its part with the word at `word`.
 * @type {(text: string[], sentence: Range, word: number) => Range}
 */
function findSnippet(text, [start, stop], word) {
  const nextWord = (/** @type {number} */ place) => {
    const part = text.slice(place, place + SNIPPET / 4);
    const blank = part.findIndex(isBlank);
    if (place === 0 || isBlank(text[place - 1]) || blank < 0) return place;
    const after = part.findIndex((one, i) => i > blank && isShown(one));
    return place + (after < 0 ? part.length : after);
  };
  if (word - start > SNIPPET / 2 && stop - start > SNIPPET) start = nextWord(word - SNIPPET / 3);
  let end = Math.min(start + SNIPPET, text.findLastIndex(isShown) + 1);
  if (end < text.length && isShown(text[end])) {
    const cut = start + text.slice(start, end).findLastIndex((one) => one === " " || one === "\n");
    if (cut > start + SNIPPET / 2) end = cut;
  }
  if (text.length - start < SNIPPET) start = Math.min(start, nextWord(Math.max(0, end - SNIPPET)));
  return [start, start + text.slice(start, end).findLastIndex(isShown) + 1];
}
