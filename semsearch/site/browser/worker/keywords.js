// Words to hits: BM25 over the bundle's postings, as semsearch/engine/keyword/keywords.py computes it.

/** @import { Correction, Hit, Lexicon, Mask, Tensors } from "./types.js" */
import { quotedParts } from "./analyzer.js";
import { best, both, countOne, maskOf, round6, rowsOf } from "./arrays.js";
import { findCorrections } from "./corrections.js";

const MOST_TERMS = 1000; // maximum terms of a query
const UNKNOWN = 1.5; // what a word that no text has would add to a score, in idf
const LARGEST_IMPACT = 255;
const [SHORTEST_BEGINNING, MOST_COMPLETIONS, COMPLETION] = [2, 32, 0.5]; // letters, terms, and their weight
const CODE_MARKS = /[-_./:@&+#]/;
const CORRECTED_WEIGHT = 0.5; // of a term that replaces a misspelled word
const SYNONYM_WEIGHT = 0.7;

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
   * Return the scores of all rows for the terms of a text. Every word between quotation marks must occur in a row.
   * isPrefix: rows with words that begin with the last word are found too.
   * openLexicon is called if a word may be misspelled; null corrects none.
   * @type {(text: string, allowed: Mask, isPrefix: boolean, openLexicon: (() => Promise<Lexicon>) | null) => Promise<Matches>}
   */
  async match(text, allowed, isPrefix, openLexicon) {
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
      if (required.has(term)) {
        const holds = new Uint8Array(this.rows);
        this.eachPosting(term, repeats, (row) => (holds[row] = 1));
        allowed = both(holds, allowed);
      } else if (!known.has(term)) unknown.add(term);
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
    const lexicon = unknown.size && openLexicon ? await openLexicon() : null;
    const corrections = lexicon ? findCorrections(text, unknown, found, this, lexicon) : [];
    const corrected = new Map(corrections.map(([word, , correction]) => [word, correction]));
    for (const [, repeats, correction] of corrections) {
      const terms = [...correction.values()].flat();
      addBest(terms, repeats * CORRECTED_WEIGHT);
      attainable += highest(terms, repeats * CORRECTED_WEIGHT);
    }
    const words = unknown.size ? this.analyzer.codes(text).flatMap(({ words }) => words) : [];
    const isMissing = (/** @type {string} */ word) => this.analyzer.terms(word).every((term) => unknown.has(term));
    const missing = words.filter((word) => !corrected.has(word) && isMissing(word)).length;
    attainable += missing * UNKNOWN * Math.log1p((this.rows + 0.5) / 0.5);
    return new Matches(scores, allowed, { isTruncated: counts.size > MOST_TERMS, corrected, completed, attainable });
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
