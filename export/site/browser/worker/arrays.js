// Tensors of a safetensors file, and the best of many values.

/** @typedef {Int8Array | Uint8Array | Uint16Array | Uint32Array | Int32Array | Float32Array | Float64Array} Numbers */
/** @typedef {Uint8Array | null} Mask (rows,), 1 for the rows that can be found; null allows every row */
/** @typedef {{row: number, score: number, scores?: {semantic: number, keyword: number}}} Hit */

const TYPES = {
  I8: Int8Array,
  U8: Uint8Array,
  U16: Uint16Array,
  U32: Uint32Array,
  F32: Float32Array,
  F64: Float64Array,
  I64: BigInt64Array,
  U64: BigUint64Array,
};

/**
 * Return the tensors of a safetensors file by name, as flat arrays.
 * @param {ArrayBuffer} buffer
 * @returns {Record<string, any>}
 */
export function readTensors(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length)));
  return Object.fromEntries(
    Object.entries(header).map(([name, { dtype, data_offsets: [begin, end] }]) => {
      const Type = TYPES[/** @type {keyof typeof TYPES} */ (dtype)];
      return [name, new Type(buffer, 8 + length + begin, (end - begin) / Type.BYTES_PER_ELEMENT)];
    }),
  );
}

/**
 * Return the places of the `count` largest values, largest first. Equal values are in the order of `rows`, or of their
 * places without it.
 * @param {Numbers} values
 * @param {number} count
 * @param {Numbers | null} rows
 * @returns {number[]}
 */
export function best(values, count, rows = null) {
  const least = count < values.length ? values.slice().sort()[values.length - count] : -Infinity;
  /** @type {number[]} */
  const kept = [];
  for (let place = 0; place < values.length; place++) if (values[place] >= least) kept.push(place);
  const order = rows ? (/** @type {number} */ place) => rows[place] : (/** @type {number} */ place) => place;
  return kept.sort((a, b) => values[b] - values[a] || order(a) - order(b)).slice(0, count);
}

/**
 * Return a number to six decimals, as NumPy rounds it: halves go to the even neighbour.
 * @param {number} value
 */
export function round6(value) {
  const scaled = value * 1e6;
  const down = Math.floor(scaled);
  const rest = scaled - down;
  return (rest > 0.5 || (rest === 0.5 && down % 2) ? down + 1 : down) / 1e6;
}

/**
 * Return the rows of a mask.
 * @param {Mask} mask
 * @param {number} count number of all rows
 */
export function rowsOf(mask, count) {
  const rows = new Int32Array(count);
  let found = 0;
  for (let row = 0; row < count; row++) if (!mask || mask[row]) rows[found++] = row;
  return rows.subarray(0, found);
}

/**
 * Return the rows that both masks allow.
 * @param {Mask} one
 * @param {Mask} other
 */
export const both = (one, other) => (one && other ? one.map((is, row) => is & other[row]) : (one ?? other));
