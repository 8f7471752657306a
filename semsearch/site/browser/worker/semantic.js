// Embedding to hits, as semsearch/engine/semantic/index.py finds them, which explains the stages and the numbers.

/** @import { Mask, Stages, Tensors } from "./types.js" */
import { best, round6, roundEven, rowsOf } from "./arrays.js";

const EXHAUSTIVE_ROWS = 8192;
const ROWS_PER_TAKEN = 16;
export const FEW_HITS = 25;
const MOST_EXCLUDED = 1.1;

export class Index {
  /** @param {Tensors} tensors @param {Stages | null} stages */
  constructor(tensors, stages) {
    this.codes = /** @type {Int8Array} */ (tensors.codes);
    this.scales = /** @type {Float32Array} */ (tensors.scales);
    this.rows = this.scales.length;
    this.dim = this.codes.length / this.rows;
    this.stages = stages;
    this.bits = new Uint8Array(stages ? this.rows * Math.ceil(this.dim / 8) : 0); // of a row, a bit for each value
    for (let row = 0; stages && row < this.rows; row++) {
      const bytes = signs(this.codes.subarray(row * this.dim, (row + 1) * this.dim));
      this.bits.set(bytes, row * bytes.length);
    }
  }

  /**
   * Return the rows most like the query, best first. Equal rows are in the order of the corpus.
   * @type {(query: Float32Array, count: number, allowed: Mask, rough?: boolean) => {row: number, score: number}[]}
   */
  search(query, count, allowed, rough = false) {
    const rows = this.candidates(query, count, rowsOf(allowed, this.rows), rough);
    const scores = new Float64Array(rows.length);
    for (let i = 0; i < rows.length; i++) scores[i] = this.score(query, rows[i]);
    return best(scores, count, rows).map((i) => ({ row: rows[i], score: scores[i] }));
  }

  /** @type {(query: Float32Array, row: number) => number} */
  score(query, row) {
    let sum = 0;
    for (let i = 0, at = row * this.dim; i < this.dim; i++, at++) sum += this.codes[at] * query[i];
    return Math.min(1, Math.max(-1, round6(sum * this.scales[row])));
  }

  /** Return the stored embedding of a row, of unit length. @param {number} row */
  embedding(row) {
    const begin = row * this.dim;
    const values = Float32Array.from(this.codes.subarray(begin, begin + this.dim));
    const length = Math.hypot(...values) || 1;
    return values.map((value) => value / length);
  }

  /**
   * Return the rows to score, of those that are allowed.
   * @type {(query: Float32Array, count: number, allowed: Int32Array, rough: boolean) => Int32Array}
   */
  candidates(query, count, allowed, rough) {
    const { stages, rows } = this;
    if (!stages || (allowed.length < rows && allowed.length <= EXHAUSTIVE_ROWS)) return allowed;
    const width = Math.ceil(count / (rough ? Math.max(FEW_HITS, Math.floor(stages.rescored / 2)) : FEW_HITS));
    const own = signs(query);
    const same = sums(this.bits, allowed, own.length, (byte, i) => -countBits(byte ^ own[i]));
    if (allowed.length < rows && allowed.length > rows / ROWS_PER_TAKEN) {
      const least = Math.min(...best(same, FEW_HITS).map((i) => same[i]));
      const all = sums(this.bits, rowsOf(null, rows), own.length, (byte, i) => -countBits(byte ^ own[i]));
      const before = all.reduce((sum, each) => sum + Number(each > least), 0);
      if (before * allowed.length > MOST_EXCLUDED * FEW_HITS * rows) return allowed;
    }
    const kept = Int32Array.from(best(same, width * stages.candidates), (i) => allowed[i]).sort();
    const codes = quantize(query);
    const isSet = (/** @type {number} */ byte, /** @type {number} */ bit) => (byte >> (7 - bit)) & 1;
    const products = sums(this.bits, kept, own.length, (byte, i) => {
      return codes.slice(8 * i, 8 * i + 8).reduce((sum, code, bit) => sum + code * isSet(byte, bit), 0);
    });
    return Int32Array.from(best(products, width * stages.rescored), (i) => kept[i]).sort();
  }
}

/** Return a bit for each value, set where it is positive, as NumPy packs them. @type {(v: Int8Array | Float32Array) => Uint8Array} */
function signs(values) {
  const bits = new Uint8Array(Math.ceil(values.length / 8));
  for (let i = 0; i < values.length; i++) if (values[i] > 0) bits[i >> 3] |= 128 >> (i & 7);
  return bits;
}

/**
 * Return for each row the sum of what its bytes are worth: `worth` returns that of a byte as the i-th of a row.
 * @type {(bits: Uint8Array, rows: Int32Array, bytes: number, worth: (byte: number, i: number) => number) => Int32Array}
 */
function sums(bits, rows, bytes, worth) {
  const table = new Int32Array(256 * bytes).map((_, at) => worth(at & 255, at >> 8));
  const found = new Int32Array(rows.length);
  for (let n = 0; n < rows.length; n++) {
    let sum = 0;
    for (let i = 0, at = rows[n] * bytes; i < bytes; i++, at++) sum += table[(i << 8) | bits[at]];
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
