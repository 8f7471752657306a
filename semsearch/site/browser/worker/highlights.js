// The parts of texts that answer a query, and snippets, as semsearch/engine/keyword/highlights.py chooses them.
// Places are code points of a text, so a text is an array of characters here.

/** @import { Range } from "./types.js" */
/** @typedef {{end: number, length: number, total: number, isBoth: boolean}} Run of marks that can begin an emphasis */
/** @typedef {import("./analyzer.js").Analyzer} Analyzer */
import { PAIR, SPACE, WORD } from "./analyzer.js";
import { countOne } from "./arrays.js";

const SNIPPET = 240; // maximum characters of a snippet
const [MARK, STOP, CLOSING] = ["[.!?\\u2026]", "\\u3002\\uff01\\uff1f", "[\"'\\u201d\\u2019\\u00bb)\\]]*"];
const INSIDE = `(?:[^\\n.!?\\u2026${STOP}]+|${MARK}(?!${CLOSING}(?:[${SPACE}]|$)))*`;
const SENTENCE = new RegExp(`(?=[^${SPACE}])${INSIDE}(?:${MARK}${CLOSING}|[${STOP}])?`, "gu");
const BLANK = new RegExp(`[${SPACE}]`, "u");
const TICKS = /(?<![\\`])`+/g;
const MARKUP = new RegExp(
  [
    "(?<escape>\\\\)[!-/:-@\\[-`{-~]",
    "(?<line>(?<![^\\n])[ \\t]*(?:(?:>[ \\t]?)+(?:#{1,6}[ \\t]+)?|#{1,6}[ \\t]+" +
      "|[|:=*_\\-][|:=*_ \\t\\-]{2,}(?![^\\n])|\\[[^\\^\\[\\]\\n][^\\[\\]\\n]*\\]:[ \\t][^\\n]*))",
    "(?<open>!?\\[)",
    "(?<link>\\]\\((?:<[^<>\\n]*>|[^() \\t\\n]*(?:\\([^() \\t\\n]*\\)[^() \\t\\n]*)*)" +
      "(?:[ \\t]+(?:\"[^\"\\n]*\"|'[^'\\n]*'))?\\))",
    "(?<close>\\](?:\\[[^\\[\\]\\n]*\\])?)",
    "(?<address><(?:https?:|mailto:)[^<> \\t\\n]*>)",
    "(?<run>\\*+|_+|~~)",
    "(?<gap>\\n[ \\t]*(?=\\n))",
  ].join("|"),
  "gu",
);

/** @type {(character: string) => boolean} */
const isBlank = (character) => BLANK.test(character);
/** @type {(character: string) => boolean} */
const isShown = (character) => !BLANK.test(character);

/**
 * Return the ranges of each text that answer the query, and its snippet. With marksWords, the ranges are the words of
 * the query; otherwise, or if there are none, the best sentence. corrected are terms that replace misspelled words.
 * @type {(texts: {text: string, isMarkdown: boolean}[], query: string, analyzer: Analyzer, corrected: string[],
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
    const terms = known.get(word) ?? analyzer.terms(word).filter((term) => wanted.has(term));
    known.set(word, terms);
    return terms;
  };
  const shown = texts.map(({ text, isMarkdown }) => (isMarkdown ? plainText(text) : { text, places: null }));
  const divided = shown.map(({ text }) => divide(text, termsOf));
  /** @type {Map<string, number>} */
  const counts = new Map();
  const sentences = divided.flatMap(({ shared }) => shared);
  for (const found of sentences) for (const term of found) countOne(counts, term);
  const weight = (/** @type {string} */ term) => Math.log1p(sentences.length / Number(counts.get(term)));
  return divided.map(({ characters, sentences, shared, words }, i) => {
    const place = (/** @type {number} */ at) => shown[i].places?.[at] ?? at;
    const scores = shared.map((found) =>
      Array.from(found, weight)
        .sort()
        .reduce((sum, one) => sum + one, 0),
    );
    const best = sentences[scores.indexOf(Math.max(...scores))];
    const [start, end] = findSnippet(characters, best, words.find(([start]) => start >= best[0])?.[0] ?? best[0]);
    const ranges = query ? (marksWords && words.length ? words : [best]).filter(([from, to]) => from < to) : [];
    const inside = ranges.map(([from, to]) => /** @type {Range} */ ([Math.max(from, start), Math.min(to, end)]));
    return {
      highlights: ranges.map(([from, to]) => [place(from), place(to - 1) + 1]),
      snippet: {
        start: start && place(start),
        end: end && place(end - 1) + 1,
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
  found.push(...Array.from(text.matchAll(PAIR), (match) => range(match, match[1])));
  /** @type {Range[]} */
  const words = [];
  for (const [start, end] of found.sort(([a, b], [c, d]) => a - c || b - d)) {
    const terms = termsOf(characters.slice(start, end).join(""));
    const last = words.at(-1);
    if (terms.length && last && start < last[1]) last[1] = end;
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

/**
 * Return the text of a passage of Markdown as a page shows it, and the place in the Markdown of each character.
 * @type {(markdown: string) => {text: string, places: number[]}}
 */
export function plainText(markdown) {
  const hidden = new Uint8Array(markdown.length); // units of the string
  for (const [start, end] of findMarkup(markdown)) hidden.fill(1, start, end);
  /** @type {number[]} */
  const places = [];
  let [unit, text] = [0, ""];
  [...markdown].forEach((character, place) => {
    if (!hidden[unit]) {
      text += character;
      places.push(place);
    }
    unit += character.length;
  });
  return { text, places };
}

/** Yield the ranges that are syntax, in units of the string. @param {string} text @returns {Generator<Range>} */
function* findMarkup(text) {
  const runs = Array.from(text.matchAll(TICKS), ({ index, 0: ticks }) => ({ start: index, end: index + ticks.length }));
  /** @type {Map<number, number>} the next run of each length */
  const later = new Map();
  /** @type {Map<number, number>} the run that can end the code which a run begins */
  const closing = new Map();
  for (const [number, { start, end }] of [...runs.entries()].reverse()) {
    const next = later.get(end - start);
    if (next !== undefined) closing.set(number, next);
    later.set(end - start, number);
  }
  let [masked, done] = ["", 0]; // the text with back ticks instead of code
  for (const [number, { start, end: after }] of runs.entries()) {
    if (start < done) continue; // in code
    const isBlock = after - start > 2 && /^[ \t]*$/.test(text.slice(text.lastIndexOf("\n", start) + 1, start));
    const begin = isBlock ? text.indexOf("\n", after) + 1 || text.length : after;
    const last = runs[closing.get(number) ?? -1] ?? { start: 0, end: 0 };
    if (last.start >= begin && (isBlock || !text.slice(begin, last.start).includes("\n\n"))) {
      yield [start, begin];
      yield [last.start, last.end];
      masked += text.slice(done, start) + "`".repeat(last.end - start);
      done = last.end;
    } else if (isBlock) yield [start, begin];
  }
  masked += text.slice(done);
  /** @type {Range[]} */
  let brackets = [];
  /** @type {Record<string, Run[]>} by their mark */
  let opened = {};
  for (const { index: start, 0: found, groups = {} } of masked.matchAll(MARKUP)) {
    const end = start + found.length;
    if (groups.escape) yield [start, start + 1];
    else if (groups.line) yield [start, end];
    else if (groups.address) yield* [/** @type {Range} */ ([start, start + 1]), /** @type {Range} */ ([end - 1, end])];
    else if (groups.run) yield* pair(masked, start, end, (opened[found[0]] ??= []));
    else if (groups.open) brackets.push([start, end]);
    else if (groups.gap) [brackets, opened] = [[], {}];
    else {
      const first = brackets.pop();
      if (first && (groups.link || (found.length > 1 && !isLetter(characterBefore(masked, first[0])))))
        yield* [first, /** @type {Range} */ ([start, end])];
    }
  }
}

const isLetter = (/** @type {string} */ character) => /[\p{L}\p{N}]/u.test(character); // or a digit
const characterBefore = (/** @type {string} */ text, /** @type {number} */ place) =>
  [...text.slice(Math.max(0, place - 2), place)].pop() ?? "";

/**
 * Yield the parts of a run of marks that end an emphasis, each after the part of an earlier run that begins it.
 * @param {string} text @param {number} start @param {number} end @param {Run[]} opened @returns {Generator<Range>}
 */
function* pair(text, start, end, opened) {
  const [before, after] = [characterBefore(text, start), String.fromCodePoint(text.codePointAt(end) ?? 32)];
  const [isAfterLetter, isBeforeLetter] = [isLetter(before), isLetter(after)];
  const isCode = text[start] === "_"; // no emphasis in snake_case
  const isAfterText = before !== "" && isShown(before);
  const closes = isAfterText && (isAfterLetter || !isBeforeLetter) && !(isCode && isBeforeLetter);
  const opens = isShown(after) && (isBeforeLetter || !isAfterLetter) && !(isCode && isAfterLetter);
  const total = end - start;
  while (closes && opened.length && start < end) {
    const first = opened[opened.length - 1];
    if ((first.isBoth || opens) && (first.total + total) % 3 === 0 && total % 3) break; // as in src/**/*.js
    const count = Math.min(first.length, end - start);
    yield [first.end - count, first.end];
    yield [start, start + count];
    start += count;
    first.end -= count;
    first.length -= count;
    if (!first.length) opened.pop();
  }
  if (opens && start < end) opened.push({ end, length: end - start, total, isBoth: closes });
}
