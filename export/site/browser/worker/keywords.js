// Words to hits: BM25 over the bundle's postings, as function/engine/keyword/keywords.py computes it.

/** @import { Correction, Hit, Lexicon, Mask, Tensors } from "./types.js" */
import { quotedParts } from "./analyzer.js";
import { best, both, countOne, maskOf, round6, rowsOf } from "./arrays.js";
import { findCorrections } from "./corrections.js";

const MOST_TERMS = 1000; // maximum terms of a query
const CORRECTED_WEIGHT = 0.5; // of a term that replaces a misspelled word

/** The BM25 score of every row for one query: 0 where no term occurs, or where `allowed` is 0. */
export class Matches {
  /** @param {Float32Array} scores @param {Mask} allowed @param {Map<string, Correction>} corrected by misspelled word */
  constructor(scores, allowed, isTruncated = false, corrected = new Map()) {
    this.scores = allowed ? scores.map((score, row) => (allowed[row] ? score : 0)) : scores;
    this.allowed = allowed;
    this.isTruncated = isTruncated;
    this.corrected = corrected;
    this.highest = this.scores.reduce((most, score) => Math.max(most, score), 0);
  }

  /** Return these matches among some rows alone, or all of them. @param {Mask} allowed */
  within(allowed) {
    return allowed ? new Matches(this.scores, allowed) : this;
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
  /** @param {Tensors} tensors @param {import("./analyzer.js").Analyzer} analyzer @param {number} rows of the corpus */
  constructor(tensors, analyzer, rows) {
    this.tensors = tensors;
    this.analyzer = analyzer;
    this.rows = rows;
    this.terms = new TextDecoder().decode(tensors.terms).split("\n");
    this.places = new Map(this.terms.map((term, place) => [term, place]));
  }

  /**
   * Return the scores of all rows for the terms of a text. Every word between quotation marks must occur in a row.
   * openLexicon is called if a word may be misspelled; null corrects none.
   * @type {(text: string, allowed: Mask, openLexicon: (() => Promise<Lexicon>) | null) => Promise<Matches>}
   */
  async match(text, allowed, openLexicon) {
    const required = new Set(quotedParts(text).flatMap((part) => this.analyzer.terms(part)));
    const counts = new Map();
    for (const term of this.analyzer.terms(text)) countOne(counts, term);
    const scores = new Float32Array(this.rows);
    const unknown = new Set();
    let found = 0; // postings
    for (const [term, repeats] of [...counts].slice(0, MOST_TERMS)) {
      this.eachPosting(term, repeats, (row, score) => (scores[row] += score));
      found += this.count(term);
      if (required.has(term)) {
        const holds = new Uint8Array(this.rows);
        this.eachPosting(term, repeats, (row) => (holds[row] = 1));
        allowed = both(holds, allowed);
      } else if (!this.places.has(term)) unknown.add(term);
    }
    const lexicon = unknown.size && openLexicon ? await openLexicon() : null;
    const corrected = lexicon ? findCorrections(text, unknown, found, this, lexicon) : [];
    for (const [, repeats, correction] of corrected) {
      const most = new Float32Array(this.rows); // of the terms of a word, a row counts the best
      for (const term of [...correction.values()].flat()) {
        this.eachPosting(term, repeats * CORRECTED_WEIGHT, (row, score) => (most[row] = Math.max(most[row], score)));
      }
      most.forEach((score, row) => (scores[row] += score));
    }
    const replaced = new Map(corrected.map(([word, , correction]) => [word, correction]));
    return new Matches(scores, allowed, counts.size > MOST_TERMS, replaced);
  }

  /** Return how many rows have a term. @param {string} term */
  count(term) {
    const place = this.places.get(term);
    const offsets = this.tensors["postings.offsets"];
    return place === undefined ? 0 : offsets[place + 1] - offsets[place];
  }

  /** @type {(term: string, repeats: number, use: (row: number, score: number) => void) => void} */
  eachPosting(term, repeats, use) {
    const place = this.places.get(term);
    if (place === undefined) return;
    const { rows, impacts, scales, "postings.offsets": offsets } = this.tensors;
    const scale = Math.fround(scales[place] * repeats);
    for (let i = offsets[place]; i < offsets[place + 1]; i++) use(rows[i], Math.fround(impacts[i] * scale));
  }
}
