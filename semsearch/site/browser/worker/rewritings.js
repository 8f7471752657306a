// What a query also finds, as in semsearch/engine/keyword/rewritings.py, which explains the rules.

/** @import { Correction, Lexicon, Postings, Rewriting } from "./types.js" */
/** @typedef {import("./keywords.js").Keywords} Keywords */
import { IN_HEADING, IN_TEXT, isAlphabetic, isAlphanumeric, isDecimal, plainName } from "./analyzer.js";
import { rowsOf } from "./arrays.js";
import { findCorrections } from "./corrections.js";

const [COMPLETION, JOINED_WEIGHT, HYPHENATED_WEIGHT, CORRECTED_WEIGHT] = [0.5, 0.7, 1, 0.5];
const [SHORTEST_DIVIDED, LONGEST_DIVIDED, MOST_DIVIDED] = [4, 64, 16]; // letters, and words of a query
const [NAME_IN_HEADING, NAME_IN_TEXT] = [2, 0.7];
const LARGEST_IMPACT = 255;

/** A query, and what its rewritings have added so far. */
export class RewrittenQuery {
  /**
   * @param {string} text @param {Map<string, number>} counts of its own terms @param {Set<string>} required terms
   * @param {boolean} isUnfinished @param {(() => Promise<Lexicon>) | null} openLexicon null corrects no word
   * @param {number} rows of the corpus
   */
  constructor(text, counts, required, isUnfinished, openLexicon, rows) {
    this.text = text;
    this.counts = counts;
    this.required = required;
    this.isUnfinished = isUnfinished;
    this.openLexicon = openLexicon;
    this.scores = new Float32Array(rows);
    /** @type {Set<string>} terms that few texts have */
    this.rare = new Set();
    /** @type {Set<string>} terms that nothing was found for */
    this.unknown = new Set();
    /** @type {string[]} terms beside its own */
    this.added = [];
    /** @type {Map<string, Correction>} */
    this.corrected = new Map();
    this.attainable = 0;
    this.found = 0; // postings
  }

  /**
   * Add the best of some postings to the score of each row, for terms that are then known; return their bound.
   * @type {(found: Postings[], added: Iterable<string>, replaced: string[]) => number}
   */
  add(found, added, replaced) {
    const best = new Float32Array(this.scores.length);
    for (const { rows, impacts, weight } of found) {
      for (let i = 0; i < rows.length; i++) best[rows[i]] = Math.max(best[rows[i]], Math.fround(impacts[i] * weight));
      this.found += rows.length;
    }
    for (let row = 0; row < best.length; row++) this.scores[row] += best[row];
    this.added.push(...added);
    for (const term of replaced) this.unknown.delete(term);
    return LARGEST_IMPACT * Math.max(...found.map(({ weight }) => weight));
  }
}

/** @type {(rows: Postings["rows"], weight: number) => Postings} */
const alike = (rows, weight) => {
  return { rows, impacts: new Uint8Array(rows.length).fill(LARGEST_IMPACT), weight: Math.fround(weight) };
};

/** @type {Rewriting} */
function joinWords(keywords, query) {
  const { analyzer } = keywords;
  const codes = analyzer.joinedCodes(query.text).map((each) => ({ ...each, weight: HYPHENATED_WEIGHT }));
  const neighbours = analyzer.joinedNeighbours(query.text).map((each) => ({ ...each, weight: JOINED_WEIGHT }));
  for (const { parts, whole, weight } of [...codes, ...neighbours]) {
    const apart = parts.join(" ");
    /** @type {Map<string, Postings>} */
    const found = new Map();
    for (const term of analyzer.terms(whole)) {
      const postings = query.counts.has(term) ? null : keywords.postings(term, weight);
      const kept = postings && keywords.without(postings, apart);
      if (kept?.rows.length) found.set(term, kept);
    }
    if (found.size) query.add([...found.values()], found.keys(), analyzer.terms(apart));
  }
}

/** @type {Rewriting} */
function completeWord(keywords, query) {
  for (const beginning of query.isUnfinished ? keywords.analyzer.unfinishedWords(query.text) : []) {
    const own = [beginning, ...keywords.analyzer.termsByLanguage(beginning).flatMap((terms) => terms.slice(0, 1))];
    const isKnown = own.some((term) => query.counts.has(term) && !query.unknown.has(term));
    const completions = keywords.completions(beginning, own, COMPLETION);
    if (!completions.size) continue;
    const bound = query.add([...completions.values()], completions.keys(), own);
    if (!isKnown) query.attainable += bound;
  }
}

/** @type {Rewriting} */
function divideWords(keywords, query) {
  const { analyzer } = keywords;
  const isFew = (/** @type {string} */ term) =>
    (query.unknown.has(term) || query.rare.has(term)) && !query.required.has(term);
  const candidates = [...new Set(analyzer.words(query.text))].filter(canBeDivided);
  for (const word of candidates.filter((each) => analyzer.terms(each).every(isFew)).slice(0, MOST_DIVIDED)) {
    const own = analyzer.terms(word);
    const parts = mostFrequentParts(keywords, word, query.counts);
    if (!parts) continue;
    const isKnown = own.every((term) => !query.unknown.has(term));
    const most = Math.max(...(isKnown ? own : parts).map((term) => keywords.weight(term, 1)));
    const postings = alike(rowsOf(keywords.rowsWith(parts), keywords.rows), isKnown ? JOINED_WEIGHT * most : most);
    const found = keywords.without(postings, word);
    if (!found.rows.length) continue;
    const bound = query.add([found], parts, own);
    if (!isKnown) query.attainable += bound;
  }
}

/** @type {(word: string) => boolean} */
function canBeDivided(word) {
  const { length } = [...word];
  const shortest = isAlphabetic(word) ? SHORTEST_DIVIDED : 2;
  return length >= shortest && length <= LONGEST_DIVIDED && isAlphanumeric(word) && !isDecimal(word);
}

/**
 * Return the terms of the two words that make a word and that the most texts have, null if no text has two such.
 * @type {(keywords: Keywords, word: string, counts: Map<string, number>) => string[] | null}
 */
function mostFrequentParts(keywords, word, counts) {
  const letters = [...word];
  /** @type {string[] | null} */
  let found = null;
  let most = 0;
  for (let place = 1; place < letters.length; place++) {
    const parts = [letters.slice(0, place), letters.slice(place)].map((part) => part.join(""));
    if (parts.some((part) => keywords.analyzer.stopWords.has(part))) continue;
    const [left, right] = parts.map((part) => keywords.analyzer.termsByLanguage(part));
    for (const terms of left.map((own, language) => [...own, ...right[language]])) {
      if (!terms.every((term) => keywords.count(term)) || terms.every((term) => counts.has(term))) continue;
      const { length } = rowsOf(keywords.rowsWith(terms), keywords.rows);
      if (length > most) [found, most] = [terms, length];
    }
  }
  return found;
}

/** @type {Rewriting} */
async function replaceMisspelled(keywords, query) {
  const unknown = new Set([...query.unknown].filter((term) => !query.required.has(term)));
  if (!query.openLexicon || !unknown.size) return;
  const lexicon = await query.openLexicon();
  for (const [word, repeats, correction] of findCorrections(query.text, unknown, query.found, keywords, lexicon)) {
    const terms = [...correction.values()].flat();
    const weight = repeats * CORRECTED_WEIGHT;
    const synonyms = new Map(terms.flatMap((term) => [...keywords.synonymsOf(term, weight, new Map())]));
    const found = [...terms.flatMap((term) => keywords.postings(term, weight) ?? []), ...synonyms.values()];
    query.corrected.set(word, correction);
    query.attainable += query.add(found, synonyms.keys(), keywords.analyzer.terms(word));
  }
}

/** @type {Rewriting} */
function findNamed(keywords, query) {
  const name = keywords.analyzer.findName(query.text);
  const heading = name ?? keywords.analyzer.findHeading(query.text);
  const attainable = keywords.attainable(query);
  /** @type {[string, string | null, number][]} */
  const sought = [
    [IN_HEADING, heading, NAME_IN_HEADING],
    [IN_TEXT, name, NAME_IN_TEXT],
  ];
  const found = sought.flatMap(([mark, own, factor]) => {
    if (!own) return [];
    const postings = keywords.postings(mark + plainName(own)) ?? keywords.postings(mark + own);
    return postings ? alike(postings.rows, (factor * attainable) / LARGEST_IMPACT) : [];
  });
  if (found.length) query.add(found, [], []);
}

export const REWRITINGS = [joinWords, completeWord, divideWords, replaceMisspelled, findNamed];
