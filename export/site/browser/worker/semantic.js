// Embedding to hits, as function/engine/semantic/index.py finds them, which explains the stages and the numbers.

import { best, round6, rowsOf } from "./arrays.js";

/** @typedef {import("./arrays.js").Mask} Mask */
/** @typedef {import("./arrays.js").Hit} Hit */
/** @typedef {{lists: number, probed: number, candidates: number, rescored: number}} Stages */

const EXHAUSTIVE_ROWS = 8192;
const MOST_HITS = 100;
const FEW_HITS = 25;
const ROWS_PER_TAKEN = 16;

export class Index {
  /**
   * @param {Record<string, any>} tensors
   * @param {Stages | null} stages
   */
  constructor(tensors, stages) {
    this.codes = /** @type {Int8Array} */ (tensors.codes);
    this.scales = /** @type {Float32Array} */ (tensors.scales);
    this.rows = this.scales.length;
    this.dim = this.codes.length / this.rows;
    this.stages = stages;
    this.lists = stages && stages.lists > 1 ? tensors : null;
    this.words = Math.ceil(this.dim / 32);
    this.bits = stages && new Uint32Array(this.rows * this.words);
    for (let row = 0; this.bits && row < this.rows; row++) this.bits.set(this.signs(this.row(row)), row * this.words);
  }

  /** @param {number} place */
  row(place) {
    return this.codes.subarray(place * this.dim, (place + 1) * this.dim);
  }

  /** @param {Int8Array | Float32Array} values @returns {Uint32Array} a bit for each value, set where it is positive */
  signs(values) {
    const bits = new Uint32Array(this.words);
    for (let i = 0; i < this.dim; i++) if (values[i] > 0) bits[i >> 5] |= 1 << (i & 31);
    return bits;
  }

  /**
   * Return the rows most like the query, best first. Equal rows are in the order of the corpus.
   * @param {Float32Array} query
   * @param {number} count
   * @param {Mask} allowed
   * @returns {Hit[]}
   */
  search(query, count, allowed) {
    const places = this.places(query, count, allowed);
    const rows = this.lists ? places.map((place) => this.lists?.["lists.rows"][place]) : places;
    const scores = Float64Array.from(places, (place) => this.score(query, place));
    return best(scores, count, rows).map((i) => ({ row: rows[i], score: scores[i] }));
  }

  /** @param {Float32Array} query @param {number} row */
  scoreOf(query, row) {
    return this.score(query, this.place(row));
  }

  /** @param {number} row */
  place(row) {
    return this.lists ? this.lists["lists.places"][row] : row;
  }

  /** @param {Float32Array} query @param {number} place */
  score(query, place) {
    const { codes, dim } = this;
    let sum = 0;
    for (let i = 0, at = place * dim; i < dim; i++, at++) sum += codes[at] * query[i];
    return Math.min(1, Math.max(-1, round6(sum * this.scales[place])));
  }

  /** @param {number} row @returns {Float32Array} its stored embedding, of unit length */
  embedding(row) {
    const place = this.place(row);
    const values = Float32Array.from(this.row(place), (code) => code * this.scales[place]);
    const length = Math.hypot(...values) || 1;
    return values.map((value) => value / length);
  }

  /**
   * Return the places of the rows to score, ascending.
   * @param {Float32Array} query
   * @param {number} count
   * @param {Mask} allowed
   */
  places(query, count, allowed) {
    const { stages, lists, rows } = this;
    const taken = rowsOf(allowed, rows);
    const isFew = allowed && taken.length <= Math.max(EXHAUSTIVE_ROWS, rows / ROWS_PER_TAKEN);
    const places = lists ? taken.map((row) => this.place(row)).sort() : taken;
    if (!stages || (isFew && taken.length <= EXHAUSTIVE_ROWS)) return places;
    return this.nearest(query, count, stages, !lists || isFew ? places : this.probe(query, count, stages, allowed));
  }

  /**
   * Return the places whose signs are most like the query, ascending.
   * @param {Float32Array} query
   * @param {number} count
   * @param {Stages} stages
   * @param {Int32Array} places
   */
  nearest(query, count, stages, places) {
    const { bits, words, dim } = this;
    if (!bits) return places;
    const width = Math.ceil(count / FEW_HITS);
    const signs = this.signs(query);
    const same = Int32Array.from(places, (place) => {
      let sum = dim;
      for (let i = 0, at = place * words; i < words; i++) sum -= countBits(signs[i] ^ bits[at + i]);
      return sum;
    });
    const kept = Int32Array.from(best(same, width * stages.candidates), (i) => places[i]).sort();
    const codes = quantize(query);
    const products = Int32Array.from(kept, (place) => {
      let sum = 0;
      for (let i = 0, at = place * words; i < dim; i++) if ((bits[at + (i >> 5)] >> (i & 31)) & 1) sum += codes[i];
      return sum;
    });
    return Int32Array.from(best(products, width * stages.rescored), (i) => kept[i]).sort();
  }

  /**
   * Return the allowed places in the lists nearest to the query, ascending.
   * @param {Float32Array} query
   * @param {number} count
   * @param {Stages} stages
   * @param {Mask} allowed
   */
  probe(query, count, stages, allowed) {
    const { axes, centroids, "centroids.scales": scales, "lists.offsets": offsets, "lists.rows": rows } = this.lists ?? {};
    const width = axes.length / this.dim;
    const turned = new Float32Array(width);
    query.forEach((value, i) => turned.forEach((_, j) => (turned[j] += value * axes[i * width + j])));
    const codes = quantize(turned);
    const products = Float32Array.from(scales, (scale, list) => {
      return codes.reduce((sum, code, j) => sum + code * centroids[list * width + j], 0) * scale;
    });
    const top = Math.ceil(count / FEW_HITS) * FEW_HITS;
    const total = rowsOf(allowed, this.rows).length;
    const share = Math.floor(Math.floor((total * stages.probed) / stages.lists) / 2);
    const least = allowed ? Math.min(total, Math.max(top, share)) : Math.min(top, this.rows);
    const order = best(products, scales.length);
    let probed = Math.min(stages.probed * Math.ceil(top / (2 * MOST_HITS)), stages.lists);
    for (; ; probed = Math.min(2 * probed, stages.lists)) {
      /** @type {number[]} */
      const places = [];
      for (const list of order.slice(0, probed)) {
        for (let place = offsets[list]; place < offsets[list + 1]; place++) {
          if (!allowed || allowed[rows[place]]) places.push(place);
        }
      }
      if (places.length >= least || probed === stages.lists) return Int32Array.from(places).sort();
    }
  }
}

/** @param {Float32Array} query @returns {number[]} its values as whole numbers from -127 to 127 */
function quantize(query) {
  const step = Math.fround(query.reduce((most, value) => Math.max(most, Math.abs(value)), 0)) / 127 || 1;
  return Array.from(query, (value) => roundEven(Math.fround(value / Math.fround(step))));
}

/** @param {number} value */
const roundEven = (value) => round6(value / 1e6) * 1e6;

/** @param {number} bits 32 of them @returns {number} how many are set */
function countBits(bits) {
  bits -= (bits >>> 1) & 0x55555555;
  bits = (bits & 0x33333333) + ((bits >>> 2) & 0x33333333);
  return (((bits + (bits >>> 4)) & 0x0f0f0f0f) * 0x01010101) >>> 24;
}
