// Words to hits: BM25 over the bundle's postings, as function/engine/keyword/keywords.py computes it.

import { Analyzer, quotedParts } from "./analyzer.js";
import { best, both, round6 } from "./arrays.js";
import { findCorrections } from "./corrections.js";

/** @typedef {import("./arrays.js").Mask} Mask */
const MOST_TERMS = 1000; // maximum terms of a query

/** The BM25 score of every row for one query: 0 where no term occurs, or where `allowed` is 0. */
export class Matches {
  /**
   * @param {Float32Array} scores
   * @param {Mask} allowed
   * @param {boolean} isTruncated
   * @param {Map<string, Map<string, string>>} corrected the terms that replace each misspelled word
   */
  constructor(scores, allowed, isTruncated, corrected) {
    this.scores = allowed ? scores.map((score, row) => (allowed[row] ? score : 0)) : scores;
    this.allowed = allowed;
    this.isTruncated = isTruncated;
    this.corrected = corrected;
    this.highest = this.scores.reduce((most, score) => Math.max(most, score), 0);
  }

  /** @param {Uint8Array} allowed */
  within(allowed) {
    return new Matches(this.scores, allowed, this.isTruncated, this.corrected);
  }

  /**
   * Return the rows with the highest scores above 0, best first.
   * @param {number} count
   */
  bestRows(count) {
    const rows = Array.from(this.scores.keys()).filter((row) => this.scores[row]);
    return best(Float32Array.from(rows, (row) => this.scores[row]), count).map((place) => rows[place]);
  }

  /**
   * @param {number} count
   * @param {Mask} allowed null for the rows that `match` allowed
   * @returns {import("./arrays.js").Hit[]}
   */
  best(count, allowed) {
    if (allowed) return this.within(allowed).best(count, null);
    return this.bestRows(count).map((row) => ({ row, score: round6(this.scores[row]) }));
  }
}

export class Keywords {
  /**
   * @param {Record<string, any>} tensors
   * @param {Analyzer} analyzer
   * @param {number} rows number of rows of the corpus
   */
  constructor(tensors, analyzer, rows) {
    this.tensors = tensors;
    this.analyzer = analyzer;
    this.rows = rows;
    this.terms = new TextDecoder().decode(tensors.terms).split("\n");
    this.places = new Map(this.terms.map((term, place) => [term, place]));
  }

  /**
   * Return the scores of all rows for the terms of a text. Every word between quotation marks must occur in a row.
   * @param {string} text
   * @param {Mask} allowed
   */
  match(text, allowed) {
    const required = new Set(quotedParts(text).flatMap((part) => this.analyzer.terms(part)));
    /** @type {Map<string, number>} */
    const counts = new Map();
    for (const term of this.analyzer.terms(text)) counts.set(term, (counts.get(term) ?? 0) + 1);
    const terms = [...counts].sort(([one], [other]) => Number(required.has(other)) - Number(required.has(one)));
    const scores = new Float32Array(this.rows);
    const unknown = new Set();
    for (const [term, repeats] of terms.slice(0, MOST_TERMS)) {
      const holds = new Uint8Array(this.rows);
      const isFound = this.eachPosting(term, repeats, (row, score) => {
        scores[row] += score;
        holds[row] = 1;
      });
      if (required.has(term)) allowed = both(holds, allowed);
      else if (!isFound) unknown.add(term);
    }
    const corrected = unknown.size ? this.correct(text, unknown, scores) : new Map();
    return new Matches(scores, allowed, terms.length > MOST_TERMS, corrected);
  }

  /**
   * Add the scores of the terms nearest to misspelled words. Of the terms of a word, a row counts the best.
   * @param {string} text
   * @param {Set<string>} unknown
   * @param {Float32Array} scores
   */
  correct(text, unknown, scores) {
    const corrected = new Map();
    for (const [word, repeats, correction] of findCorrections(text, unknown, this)) {
      const most = new Float32Array(this.rows);
      for (const term of correction.keys()) {
        this.eachPosting(term, repeats, (row, score) => (most[row] = Math.max(most[row], score)));
      }
      most.forEach((score, row) => (scores[row] += score));
      corrected.set(word, correction);
    }
    return corrected;
  }

  /**
   * Call a function with each row that has a term and with its score; return whether there is one.
   * @param {string} term
   * @param {number} repeats
   * @param {(row: number, score: number) => void} use
   */
  eachPosting(term, repeats, use) {
    const place = this.places.get(term);
    if (place === undefined) return false;
    const { rows, impacts, scales, "postings.offsets": offsets } = this.tensors;
    const scale = Math.fround(scales[place] * repeats);
    for (let i = offsets[place]; i < offsets[place + 1]; i++) use(rows[i], Math.fround(impacts[i] * scale));
    return true;
  }
}
