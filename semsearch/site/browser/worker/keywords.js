// Words to hits: BM25 over the bundle's postings, as semsearch/engine/keyword/keywords.py computes it.

/** @import { Correction, Hit, Lexicon, Mask, Tensors } from "./types.js" */
import { IN_HEADING, IN_TEXT, isAlphanumeric, quotedParts } from "./analyzer.js";
import { best, both, countOne, maskOf, round6, rowsOf } from "./arrays.js";
import { findCorrections } from "./corrections.js";

const MOST_TERMS = 1000; // maximum terms of a query
const UNKNOWN = 1.5; // what a word that no text has would add to a score, in idf
const LARGEST_IMPACT = 255;
const [SHORTEST_BEGINNING, MOST_COMPLETIONS, COMPLETION] = [2, 32, 0.5]; // letters, terms, and their weight
const CODE_MARKS = /[-_./:@&+#]/;
const CORRECTED_WEIGHT = 0.5; // of a term that replaces a misspelled word
const [SYNONYM_WEIGHT, JOINED_WEIGHT] = [0.7, 0.7];
const [SHORTEST_DIVIDED, LONGEST_DIVIDED, MOST_DIVIDED] = [4, 64, 16]; // characters, and words of a query
// what a text with the name that a query is adds to its score, as a multiple of the score of a text with all words
const NAMED = Object.entries({ [IN_HEADING]: 2, [IN_TEXT]: 0.7 });

/** The BM25 score of every row for one query: 0 where no term occurs, or where `allowed` is 0. */
export class Matches {
  /**
   * @param {Float32Array} scores of all rows @param {Mask} allowed
   * @param {{isTruncated: boolean, corrected: Map<string, Correction>, completed: string[], attainable: number}} about
   */
  constructor(scores, allowed, about) {
    this.all = scores;
    this.scores = allowed ? scores.map((score, row) => (allowed[row] ? score : 0)) : scores;
    this.allowed = allowed;
    this.about = about;
    this.attainable = about.attainable;
    this.highest = scores.reduce((most, score) => Math.max(most, score), 0);
  }

  /** Return these matches among some rows alone, or all of them. @param {Mask} allowed */
  within(allowed) {
    return allowed ? new Matches(this.all, allowed, this.about) : this;
  }

  matching() {
    return maskOf(this.scores.length, (row) => this.scores[row] > 0);
  }

  /** Return the rows with the highest scores above 0, best first. @type {(count: number) => number[]} */
  bestRows(count) {
    const rows = rowsOf(this.matching(), this.scores.length);
    const scores = new Float32Array(rows.length);
    for (let i = 0; i < rows.length; i++) scores[i] = this.scores[rows[i]];
    return best(scores, count).map((place) => rows[place]);
  }

  /** @type {(count: number) => Hit[]} */
  best(count) {
    return this.bestRows(count).map((row) => ({ row, score: round6(this.scores[row]) }));
  }
}

export class Keywords {
  /**
   * @param {Tensors} tensors @param {import("./analyzer.js").Analyzer} analyzer @param {number} rows of the corpus
   * @param {Record<string, string[]>} synonyms of terms
   */
  constructor(tensors, analyzer, rows, synonyms) {
    this.synonyms = new Map(Object.entries(synonyms));
    this.tensors = tensors;
    this.analyzer = analyzer;
    this.rows = rows;
    this.terms = new TextDecoder().decode(tensors.terms).split("\n");
    this.places = new Map(this.terms.map((term, place) => [term, place]));
  }

  /**
   * Return the scores of all rows for the terms of a text. Every word between quotation marks must occur in a row, and
   * no row has all words of one of `without`.
   * isPrefix: rows with words that begin with the last word are found too.
   * openLexicon is called if a word may be misspelled; null corrects none.
   * @type {(text: string, allowed: Mask, isPrefix: boolean, openLexicon: (() => Promise<Lexicon>) | null,
   *   without?: string[]) => Promise<Matches>}
   */
  async match(text, allowed, isPrefix, openLexicon, without = []) {
    const required = new Set(quotedParts(text).flatMap((part) => this.analyzer.terms(part)));
    const counts = new Map();
    for (const term of this.analyzer.terms(text)) countOne(counts, term);
    const scores = new Float32Array(this.rows);
    const unknown = new Set();
    let attainable = 0;
    let found = 0; // postings
    const completed = [];
    const known = new Set();
    /** Add the best of some terms to the score of each row. @type {(terms: string[], repeats: number, most?: number, best?: Float32Array) => void} */
    const addBest = (terms, repeats, most, best = new Float32Array(this.rows)) => {
      for (const term of terms) {
        this.eachPosting(term, repeats, (row, score) => (best[row] = Math.max(best[row], score)), most);
      }
      best.forEach((score, row) => (scores[row] += score));
    };
    /** @type {(terms: string[], repeats: number, most?: number) => number} */
    const highest = (terms, repeats, most) =>
      LARGEST_IMPACT * Math.max(0, ...terms.map((term) => this.weight(term, repeats, most)));
    for (const [term, repeats] of [...counts].slice(0, MOST_TERMS)) {
      const all = required.has(term) ? [] : (this.synonyms.get(term) ?? []);
      const others = all.filter((other) => !counts.has(other));
      const own = this.weight(term, 1);
      if (own || others.length) known.add(term);
      attainable += own ? LARGEST_IMPACT * this.weight(term, repeats) : highest(others, repeats * SYNONYM_WEIGHT);
      const best = others.length ? new Float32Array(this.rows) : scores;
      this.eachPosting(term, repeats, (row, score) => (best[row] += score));
      if (others.length) addBest(others, repeats * SYNONYM_WEIGHT, own || Infinity, best);
      completed.push(...others);
      found += [term, ...others].reduce((sum, each) => sum + this.count(each), 0);
      if (!required.has(term) && !known.has(term)) unknown.add(term);
    }
    if (required.size) allowed = both(this.rowsWith([...required]), allowed);
    for (const words of without) {
      const holds = this.rowsWith(this.analyzer.terms(words));
      const lacks = maskOf(this.rows, (row) => !holds[row]);
      allowed = both(lacks, allowed);
    }
    for (const { left, right, whole } of this.analyzer.joinedNeighbours(text)) {
      const own = [...new Set(this.analyzer.terms(whole))].filter((term) => !counts.has(term) && this.count(term));
      if (!own.length) continue;
      addBest(own, JOINED_WEIGHT);
      completed.push(...own);
      found += own.reduce((sum, term) => sum + this.count(term), 0);
      for (const term of [left, right].flatMap((word) => this.analyzer.terms(word))) unknown.delete(term);
    }
    for (const beginning of isPrefix ? this.analyzer.unfinishedWords(text) : []) {
      const whole = [beginning, ...this.analyzer.terms(beginning).slice(0, 1)];
      const { terms, most } = this.completions(beginning, whole);
      if (!terms.length) continue;
      addBest(terms, COMPLETION, most);
      if (!whole.some((term) => known.has(term))) attainable += highest(terms, COMPLETION, most);
      completed.push(...terms);
      found += terms.reduce((sum, term) => sum + this.count(term), 0);
      whole.forEach((term) => unknown.delete(term));
    }
    const undivided = [...counts.keys()].filter((term) => unknown.has(term)).slice(0, MOST_DIVIDED);
    for (const word of undivided) {
      const divided = this.divide(word, counts);
      if (!divided) continue;
      const score = Math.fround(LARGEST_IMPACT * divided.weight);
      divided.rows.forEach((row) => (scores[row] += score));
      attainable += LARGEST_IMPACT * divided.weight;
      completed.push(...divided.terms);
      found += divided.rows.length;
      unknown.delete(word);
    }
    const lexicon = unknown.size && openLexicon ? await openLexicon() : null;
    const corrections = lexicon ? findCorrections(text, unknown, found, this, lexicon) : [];
    const corrected = new Map(corrections.map(([word, , correction]) => [word, correction]));
    for (const [, repeats, correction] of corrections) {
      const terms = [...correction.values()].flat();
      const weight = repeats * CORRECTED_WEIGHT;
      const best = new Float32Array(this.rows);
      const keep = (/** @type {number} */ row, /** @type {number} */ score) => (best[row] = Math.max(best[row], score));
      let most = 0;
      for (const term of terms) {
        this.eachPosting(term, weight, keep);
        most = Math.max(most, highest([term], weight));
        const others = (this.synonyms.get(term) ?? []).filter((other) => this.count(other));
        const limit = this.weight(term, 1) || Infinity;
        for (const other of others) this.eachPosting(other, weight * SYNONYM_WEIGHT, keep, limit);
        most = Math.max(most, highest(others, weight * SYNONYM_WEIGHT, limit));
        completed.push(...others);
      }
      best.forEach((score, row) => (scores[row] += score));
      attainable += most;
    }
    const words = unknown.size ? this.analyzer.codes(text).flatMap(({ words }) => words) : [];
    const isMissing = (/** @type {string} */ word) => this.analyzer.terms(word).every((term) => unknown.has(term));
    const missing = words.filter((word) => !corrected.has(word) && isMissing(word)).length;
    attainable += missing * UNKNOWN * Math.log1p((this.rows + 0.5) / 0.5);
    const name = this.analyzer.findName(text);
    const heading = name ?? this.analyzer.findHeading(text);
    if (heading) {
      const best = new Float32Array(this.rows);
      for (const [mark, factor] of name ? NAMED : NAMED.slice(0, 1)) {
        const score = Math.fround(LARGEST_IMPACT * Math.fround((factor * attainable) / LARGEST_IMPACT));
        this.eachPosting(mark + heading, 1, (row) => (best[row] = Math.max(best[row], score)));
      }
      best.forEach((score, row) => (scores[row] += score));
    }
    return new Matches(scores, allowed, { isTruncated: counts.size > MOST_TERMS, corrected, completed, attainable });
  }

  /** Return the rows that have all of some terms. @param {string[]} terms */
  rowsWith(terms) {
    /** @type {Uint8Array} */
    let mask = new Uint8Array(this.rows).fill(1);
    for (const term of terms) {
      const holds = new Uint8Array(this.rows);
      this.eachPosting(term, 1, (row) => (holds[row] = 1));
      mask = both(holds, mask);
    }
    return mask;
  }

  /**
   * Return the terms of two known words that make an unknown one, the rows that have both, and their weight; null if
   * there are none. Of several, the two words that the most rows have are taken.
   * @type {(word: string, counts: Map<string, number>) => {terms: string[], rows: Int32Array, weight: number} | null}
   */
  divide(word, counts) {
    const letters = [...word];
    let best = null;
    if (!isAlphanumeric(word) || letters.length < SHORTEST_DIVIDED || letters.length > LONGEST_DIVIDED) return null;
    for (let place = 1; place < letters.length; place++) {
      const parts = [letters.slice(0, place), letters.slice(place)].map((part) => part.join(""));
      if (parts.some((part) => this.analyzer.stopWords.has(part))) continue;
      const terms = [...new Set(parts.flatMap((part) => this.analyzer.terms(part)))];
      if (!terms.every((term) => this.count(term)) || terms.every((term) => counts.has(term))) continue;
      const rows = rowsOf(this.rowsWith(terms), this.rows);
      const weight = Math.max(...terms.map((term) => this.weight(term, 1)));
      if (rows.length > (best?.rows.length ?? 0)) best = { terms, rows, weight };
    }
    return best;
  }

  /**
   * Return the most frequent terms that begin with a word, without its own, and the largest scale that counts.
   * @type {(beginning: string, whole: string[]) => {terms: string[], most: number}}
   */
  completions(beginning, whole) {
    const { scales, "postings.offsets": offsets } = this.tensors;
    const isCode = CODE_MARKS.test(beginning);
    /** @type {number[]} */
    const places = [];
    for (let place = 0; place < this.terms.length && [...beginning].length >= SHORTEST_BEGINNING; place++) {
      const term = this.terms[place];
      const isLonger = term.startsWith(beginning) && !whole.includes(term);
      if (isLonger && (isCode || !CODE_MARKS.test(term))) places.push(place);
    }
    const uses = Float64Array.from(places, (place) => offsets[place + 1] - offsets[place]);
    const chosen = best(uses, MOST_COMPLETIONS).map((i) => places[i]);
    const own = whole.flatMap((term) => this.places.get(term) ?? []);
    const most = Math.max(...(own.length ? own : chosen.slice(0, 1)).map((place) => scales[place]));
    return { terms: chosen.map((place) => this.terms[place]), most };
  }

  /** Return what an impact of a term is multiplied by, 0 if there is no such term. @type {(term: string, repeats: number, most?: number) => number} */
  weight(term, repeats, most = Infinity) {
    const place = this.places.get(term);
    return place === undefined ? 0 : Math.fround(Math.min(this.tensors.scales[place], most) * repeats);
  }

  /** Return how many rows have a term. @param {string} term */
  count(term) {
    const place = this.places.get(term);
    const offsets = this.tensors["postings.offsets"];
    return place === undefined ? 0 : offsets[place + 1] - offsets[place];
  }

  /** @type {(term: string, repeats: number, use: (row: number, score: number) => void, most?: number) => void} */
  eachPosting(term, repeats, use, most) {
    const place = this.places.get(term);
    if (place === undefined) return;
    const { rows, impacts, "postings.offsets": offsets } = this.tensors;
    const weight = this.weight(term, repeats, most);
    for (let i = offsets[place]; i < offsets[place + 1]; i++) use(rows[i], Math.fround(impacts[i] * weight));
  }
}
