// Words to hits: BM25 over the bundle's postings, as semsearch/engine/keyword/keywords.py computes it.

/** @import { Correction, Hit, Lexicon, Mask, Postings, Tensors } from "./types.js" */
import { quotedParts } from "./analyzer.js";
import { best, both, countOne, maskOf, round6, rowsOf } from "./arrays.js";
import { REWRITINGS, RewrittenQuery } from "./rewritings.js";

const MOST_TERMS = 1000; // maximum terms of a query
const UNKNOWN = 1.5; // what a word that no text has would add to a score, in idf
const [SHORTEST_BEGINNING, MOST_COMPLETIONS] = [2, 32]; // letters, and terms
const CODE_MARKS = /[-_./:@&+#]/;
const SYNONYM_WEIGHT = 0.7;
const RARE_ROWS = 4; // a word that fewer texts have is divided too

/** Return how often each term occurs. @type {(terms: string[]) => Map<string, number>} */
function countTerms(terms) {
  const counts = new Map();
  for (const term of terms) countOne(counts, term);
  return counts;
}

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
    const quoted = quotedParts(text).join(" ");
    if (quoted) allowed = both(this.rowsWithWords(quoted), allowed);
    for (const words of without.filter((each) => this.analyzer.terms(each).length)) {
      const holds = this.rowsWithWords(words);
      const lacks = maskOf(this.rows, (row) => !holds[row]);
      allowed = both(lacks, allowed);
    }
    const languages = this.analyzer.termsByLanguage(text).map(countTerms);
    /** @type {Map<string, number>} how often the text has each term at most */
    const counts = new Map();
    for (const [term, count] of languages.flatMap((own) => [...own]))
      counts.set(term, Math.max(count, counts.get(term) ?? 0));
    const required = new Set(this.analyzer.terms(quoted));
    const query = new RewrittenQuery(text, counts, required, isPrefix, openLexicon, this.rows);
    const bounds = this.read(query);
    const attainableBy = (/** @type {Map<string, number>} */ own) =>
      [...own.keys()].reduce((sum, term) => sum + (bounds.get(term) ?? 0), 0);
    query.attainable = Math.max(...languages.map(attainableBy)); // a row has one language
    for (const rewrite of REWRITINGS) await rewrite(this, query);
    const [isTruncated, attainable] = [counts.size > MOST_TERMS, this.attainable(query)];
    const { scores, corrected, added: completed } = query;
    return new Matches(scores, allowed, { isTruncated, corrected, completed, attainable });
  }

  /**
   * Add the own terms of a query and their synonyms. Return what each term adds to a score at most.
   * @type {(query: RewrittenQuery) => Map<string, number>}
   */
  read(query) {
    const { counts, required, rare, unknown } = query;
    const bounds = new Map();
    for (const [term, repeats] of [...counts].slice(0, MOST_TERMS)) {
      const own = this.postings(term, repeats);
      const others = required.has(term) ? new Map() : this.synonymsOf(term, repeats, counts);
      if (own && own.rows.length < RARE_ROWS) rare.add(term);
      if (own || others.size)
        bounds.set(term, query.add([...(own ? [own] : []), ...others.values()], others.keys(), []));
      else unknown.add(term);
    }
    return bounds;
  }

  /** Return what a text with all words of a query could score. @param {RewrittenQuery} query */
  attainable({ text, unknown, attainable }) {
    const words = unknown.size ? this.analyzer.words(text) : [];
    const missing = words.filter((word) => this.analyzer.terms(word).every((term) => unknown.has(term))).length;
    return attainable + missing * UNKNOWN * Math.log1p((this.rows + 0.5) / 0.5);
  }

  /**
   * Return the postings of the synonyms of a term that are no terms of the query, which are `counts`.
   * @type {(term: string, repeats: number, counts: Map<string, number>) => Map<string, Postings>}
   */
  synonymsOf(term, repeats, counts) {
    const most = this.weight(term, 1) || Infinity;
    const others = (this.synonyms.get(term) ?? []).filter((other) => !counts.has(other));
    const found = new Map();
    for (const other of others) {
      const postings = this.postings(other, repeats * SYNONYM_WEIGHT, most);
      if (postings) found.set(other, postings);
    }
    return found;
  }

  /** Return the rows that have all of some terms. @param {string[]} terms */
  rowsWith(terms) {
    /** @type {Uint8Array} */
    let mask = new Uint8Array(this.rows).fill(1);
    for (const term of terms) {
      const holds = new Uint8Array(this.rows);
      for (const row of this.postings(term)?.rows ?? []) holds[row] = 1;
      mask = both(holds, mask);
    }
    return mask;
  }

  /** Return the rows that have all words of a text in one language of the corpus. @type {(text: string) => Uint8Array} */
  rowsWithWords(text) {
    const held = this.analyzer.termsByLanguage(text).map((terms) => this.rowsWith(terms));
    return held[0].map((_, row) => Number(held.some((holds) => holds[row])));
  }

  /** Return postings without those of the rows that have all words of a text. @type {(postings: Postings, text: string) => Postings} */
  without({ rows, impacts, weight }, text) {
    const holds = this.rowsWithWords(text);
    const lacks = (/** @type {number} */ _, /** @type {number} */ i) => !holds[rows[i]];
    return { rows: rows.filter(lacks), impacts: impacts.filter(lacks), weight };
  }

  /**
   * Return the postings of the most frequent terms that begin with a word, without its own.
   * @type {(beginning: string, whole: string[], factor: number) => Map<string, Postings>}
   */
  completions(beginning, whole, factor) {
    const { scales } = this.tensors;
    const isCode = CODE_MARKS.test(beginning);
    /** @type {number[]} */
    const places = [];
    for (let place = 0; place < this.terms.length && [...beginning].length >= SHORTEST_BEGINNING; place++) {
      const term = this.terms[place];
      const isLonger = term.startsWith(beginning) && !whole.includes(term);
      if (isLonger && (isCode || !CODE_MARKS.test(term))) places.push(place);
    }
    const uses = Float64Array.from(places, (place) => this.count(this.terms[place]));
    const chosen = best(uses, MOST_COMPLETIONS).map((i) => places[i]);
    const own = whole.flatMap((term) => this.places.get(term) ?? []);
    const most = Math.max(...(own.length ? own : chosen.slice(0, 1)).map((place) => scales[place]));
    const found = chosen.flatMap((place) => this.postings(this.terms[place], factor, most) ?? []);
    return new Map(found.map((postings, i) => [this.terms[chosen[i]], postings]));
  }

  /** Return what an impact of a term is multiplied by, 0 if there is no such term. @type {(term: string, repeats: number, most?: number) => number} */
  weight(term, repeats, most = Infinity) {
    const place = this.places.get(term);
    return place === undefined ? 0 : Math.fround(Math.min(this.tensors.scales[place], most) * repeats);
  }

  /** Return how many rows have a term. @param {string} term */
  count(term) {
    return this.postings(term)?.rows.length ?? 0;
  }

  /** Return the postings of a term, null if there is no such term. @type {(term: string, repeats?: number, most?: number) => Postings | null} */
  postings(term, repeats = 1, most = Infinity) {
    const place = this.places.get(term);
    if (place === undefined) return null;
    const { rows, impacts, "postings.offsets": offsets } = this.tensors;
    const part = [offsets[place], offsets[place + 1]];
    return {
      rows: rows.subarray(...part),
      impacts: impacts.subarray(...part),
      weight: this.weight(term, repeats, most),
    };
  }
}
