// Embedding to hits, as function/engine/semantic/index.py finds them, which explains the stages and the numbers.

/** @import { Mask, Stages, Tensors } from "./types.js" */
import { best, round6, roundEven, rowsOf } from "./arrays.js";

const EXHAUSTIVE_ROWS = 8192;
const [MOST_HITS, FEW_HITS] = [100, 25];
const [ROWS_PER_TAKEN, ROWS_PER_HIT] = [16, 4];

export class Index {
  /** @param {Tensors} tensors @param {Stages | null} stages */
  constructor(tensors, stages) {
    this.codes = /** @type {Int8Array} */ (tensors.codes);
    this.scales = /** @type {Float32Array} */ (tensors.scales);
    this.rows = this.scales.length;
    this.dim = this.codes.length / this.rows;
    this.stages = stages;
    this.lists = stages && stages.lists > 1 ? tensors : null; // with lists, the rows are in the order of the lists
    this.bits = new Uint8Array(stages ? this.rows * Math.ceil(this.dim / 8) : 0); // of a row, a bit for each value
    for (let place = 0; stages && place < this.rows; place++) {
      const bytes = signs(this.codes.subarray(place * this.dim, (place + 1) * this.dim));
      this.bits.set(bytes, place * bytes.length);
    }
  }

  /**
   * Return the rows most like the query, best first. Equal rows are in the order of the corpus.
   * @type {(query: Float32Array, count: number, allowed: Mask) => {row: number, score: number}[]}
   */
  search(query, count, allowed) {
    const places = this.places(query, count, allowed);
    const rows = this.lists ? places.map((place) => this.lists?.["lists.rows"][place]) : places;
    const scores = new Float64Array(rows.length);
    for (let i = 0; i < rows.length; i++) scores[i] = this.score(query, places[i]);
    return best(scores, count, rows).map((i) => ({ row: rows[i], score: scores[i] }));
  }

  /** Return where a row is. @param {number} row */
  place(row) {
    return this.lists ? this.lists["lists.places"][row] : row;
  }

  /** @type {(query: Float32Array, place: number) => number} */
  score(query, place) {
    let sum = 0;
    for (let i = 0, at = place * this.dim; i < this.dim; i++, at++) sum += this.codes[at] * query[i];
    return Math.min(1, Math.max(-1, round6(sum * this.scales[place])));
  }

  /** Return the stored embedding of a row, of unit length. @param {number} row */
  embedding(row) {
    const begin = this.place(row) * this.dim;
    const values = Float32Array.from(this.codes.subarray(begin, begin + this.dim));
    const length = Math.hypot(...values) || 1;
    return values.map((value) => value / length);
  }

  /** Return the places of the rows to score. @type {(query: Float32Array, count: number, allowed: Mask) => Int32Array} */
  places(query, count, allowed) {
    const { stages, lists, rows } = this;
    const taken = rowsOf(allowed, rows);
    const isFew = allowed && taken.length <= Math.max(EXHAUSTIVE_ROWS, rows / ROWS_PER_TAKEN);
    const isExact = !stages || (isFew && taken.length <= EXHAUSTIVE_ROWS);
    if (lists && !isExact && !isFew)
      return this.nearest(query, count, stages, this.probe(query, count, stages, allowed));
    const places = lists ? taken.map((row) => this.place(row)).sort() : taken;
    return isExact ? places : this.nearest(query, count, stages, places);
  }

  /** Return the places most like the query by their signs. @type {(q: Float32Array, n: number, s: Stages, p: Int32Array) => Int32Array} */
  nearest(query, count, stages, places) {
    const width = Math.ceil(count / FEW_HITS);
    const own = signs(query);
    const same = sums(this.bits, places, own.length, (byte, i) => -countBits(byte ^ own[i]));
    const chosen = best(same, width * stages.candidates).map((i) => places[i]);
    const kept = Int32Array.from(new Set(chosen)).sort(); // a row can be in two of the lists
    const codes = quantize(query);
    const isSet = (/** @type {number} */ byte, /** @type {number} */ bit) => (byte >> (7 - bit)) & 1;
    const products = sums(this.bits, kept, own.length, (byte, i) => {
      return codes.slice(8 * i, 8 * i + 8).reduce((sum, code, bit) => sum + code * isSet(byte, bit), 0);
    });
    return Int32Array.from(best(products, width * stages.rescored), (i) => kept[i]).sort();
  }

  /** Return the allowed places in the nearest lists, list by list. @type {(q: Float32Array, n: number, s: Stages, a: Mask) => Int32Array} */
  probe(query, count, stages, allowed) {
    const { axes, centroids, "centroids.scales": scales, ...lists } = /** @type {Tensors} */ (this.lists);
    const width = axes.length / this.dim;
    const turned = new Float64Array(width).map((_, j) => query.reduce((sum, x, i) => sum + x * axes[i * width + j], 0));
    const codes = quantize(Float32Array.from(turned));
    const products = scales.map((/** @type {number} */ scale, /** @type {number} */ list) => {
      return scale * codes.reduce((sum, code, j) => sum + code * centroids[list * width + j], 0);
    });
    const top = Math.ceil(count / FEW_HITS) * FEW_HITS;
    const total = rowsOf(allowed, this.rows).length;
    const share = Math.floor(Math.floor((total * stages.probed) / stages.lists) / 2);
    const enough = Math.min(ROWS_PER_HIT * top, this.rows);
    const entryPlaces = lists["entries.places"]; // an older bundle lacks it: each row is in one list
    const least = Math.min(total, allowed ? Math.max(enough, share) : enough) * (entryPlaces ? 2 : 1);
    const order = best(products, stages.lists);
    for (let probed = stages.probed * Math.ceil(top / MOST_HITS); ; probed *= 2) {
      const places = [];
      for (const list of order.slice(0, probed).sort((a, b) => a - b)) {
        for (let entry = lists["lists.offsets"][list]; entry < lists["lists.offsets"][list + 1]; entry++) {
          const place = entryPlaces ? entryPlaces[entry] : entry;
          if (!allowed || allowed[lists["lists.rows"][place]]) places.push(place);
        }
      }
      if (places.length >= least || probed >= stages.lists) return Int32Array.from(places);
    }
  }
}

/** Return a bit for each value, set where it is positive, as NumPy packs them. @type {(v: Int8Array | Float32Array) => Uint8Array} */
function signs(values) {
  const bits = new Uint8Array(Math.ceil(values.length / 8));
  for (let i = 0; i < values.length; i++) if (values[i] > 0) bits[i >> 3] |= 128 >> (i & 7);
  return bits;
}

/**
 * Return for each place the sum of what its bytes are worth: `worth` returns that of a byte as the i-th of a row.
 * @type {(bits: Uint8Array, places: Int32Array, bytes: number, worth: (byte: number, i: number) => number) => Int32Array}
 */
function sums(bits, places, bytes, worth) {
  const table = new Int32Array(256 * bytes).map((_, at) => worth(at & 255, at >> 8));
  const found = new Int32Array(places.length);
  for (let n = 0; n < places.length; n++) {
    let sum = 0;
    for (let i = 0, at = places[n] * bytes; i < bytes; i++, at++) sum += table[(i << 8) | bits[at]];
    found[n] = sum;
  }
  return found;
}

/** @type {(byte: number) => number} */
const countBits = (byte) => (byte ? (byte & 1) + countBits(byte >> 1) : 0);

/** Return the values as whole numbers from -127 to 127. @type {(query: Float32Array) => number[]} */
function quantize(query) {
  const step = Math.fround(query.reduce((most, value) => Math.max(most, Math.abs(value)), 0) / 127) || 1;
  return Array.from(query, (value) => roundEven(Math.fround(value / step)));
}
