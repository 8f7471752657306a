// Tensors of a safetensors file, masks of rows, and the best of many values.

/** @import { Mask, Numbers, Tensors } from "./types.js" */

const [I8, U8, U16, U32] = [Int8Array, Uint8Array, Uint16Array, Uint32Array];
/** @type {Record<string, any>} */
const TYPES = { I8, U8, U16, U32, F32: Float32Array, F64: Float64Array, I64: BigInt64Array, U64: BigUint64Array };

/** Return the tensors of a safetensors file by name, as flat arrays. @type {(buffer: ArrayBuffer) => Tensors} */
export function readTensors(buffer) {
  const begin = 8 + new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, begin - 8)));
  const tensors = Object.entries(header).map(([name, { dtype, data_offsets: at }]) => {
    return [name, new TYPES[dtype](buffer, begin + at[0], (at[1] - at[0]) / TYPES[dtype].BYTES_PER_ELEMENT)];
  });
  return Object.fromEntries(tensors);
}

/**
 * Return the places of the `count` largest values, largest first. Equal values are in the order of `rows`, or of their
 * places without it.
 * @type {(values: Numbers, count: number, rows?: Numbers) => number[]}
 */
export function best(values, count, rows) {
  const least = count < values.length ? values.slice().sort()[values.length - count] : -Infinity;
  const kept = [];
  for (let place = 0; place < values.length; place++) if (values[place] >= least) kept.push(place);
  return kept.sort((a, b) => values[b] - values[a] || (rows ? rows[a] - rows[b] : a - b)).slice(0, count);
}

/** Return a number without decimals; halves go to the even neighbour, as in NumPy. @type {(value: number) => number} */
export function roundEven(value) {
  const rounded = Math.round(value);
  return rounded - value === 0.5 && rounded % 2 ? rounded - 1 : rounded;
}

/** Return a score to six decimals. @type {(value: number) => number} */
export const round6 = (value) => roundEven(value * 1e6) / 1e6;

/** Return a mask of `count` rows. @type {(count: number, test: (row: number) => unknown) => Uint8Array} */
export function maskOf(count, test) {
  const mask = new Uint8Array(count);
  for (let row = 0; row < count; row++) if (test(row)) mask[row] = 1;
  return mask;
}

/** Return the allowed rows of `count`. @type {(mask: Mask, count: number) => Int32Array} */
export function rowsOf(mask, count) {
  const rows = new Int32Array(count);
  let found = 0;
  for (let row = 0; row < count; row++) if (!mask || mask[row]) rows[found++] = row;
  return rows.subarray(0, found);
}

/** Return the rows that both masks allow. @type {(one: Uint8Array, other: Mask) => Uint8Array} */
export const both = (one, other) => (other ? one.map((is, row) => is & other[row]) : one);

/** Count one more of a key. @type {<T>(counts: Map<T, number>, key: T) => void} */
export const countOne = (counts, key) => void counts.set(key, (counts.get(key) ?? 0) + 1);
