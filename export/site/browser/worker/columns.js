// The metadata that filters compare. A column is stored as function/engine/metadata/columns.py describes.

/** @import { Mask, Tensors, Test, Value } from "./types.js" */
import { countOne, maskOf } from "./arrays.js";

const MOST_VALUES = 100; // maximum values of a facet

/** One column: its type, the corpus's number of rows, and a value for each code or row. */
export class Column {
  /** @param {string} kind @param {number} count @param {Tensors} tensors */
  constructor(kind, count, { values, offsets, codes, rows, present }) {
    this.kind = kind;
    this.count = count;
    this.codes = codes;
    this.rows = rows; // of a list: the row of each code
    this.present = present;
    const string = (/** @type {number} */ i) => new TextDecoder().decode(values.subarray(offsets[i], offsets[i + 1]));
    /** @type {ArrayLike<Value>} */
    this.values = values;
    if (offsets) this.values = Array.from({ length: offsets.length - 1 }, (_, i) => string(i));
    if (kind === "boolean") this.values = Array.from(values, Boolean);
  }

  /** Return whether a row has a value. @param {number} row */
  has(row) {
    return !this.present || ((this.present[row >> 3] >> (7 - (row & 7))) & 1) === 1;
  }

  /** Return the rows whose value passes a test; of a list, one of its strings must. @type {(test: Test) => Uint8Array} */
  where(test) {
    const passing = this.codes && Array.from(this.values, test);
    const passes = (/** @type {number} */ i) => (passing ? passing[this.codes[i]] : test(this.values[i]));
    if (!this.rows) return maskOf(this.count, (row) => this.has(row) && passes(row));
    const mask = new Uint8Array(this.count);
    for (let i = 0; i < this.rows.length; i++) if (passes(i)) mask[this.rows[i]] = 1;
    return mask;
  }

  /** Return what orders the rows as their values do. @param {number} row @returns {any} */
  order(row) {
    return (this.codes ?? this.values)[row];
  }
}

/** Return the most frequent values among some rows. @type {(c: Column, m: Mask) => {value: Value, count: number}[]} */
export function countValues(column, allowed) {
  /** @type {Map<any, number>} */
  const counts = new Map();
  const seen = new Set(); // a list counts once for each of its strings
  for (let i = 0; i < (column.rows?.length ?? column.count); i++) {
    const row = column.rows ? column.rows[i] : i;
    const value = column.order(i);
    const pair = column.rows ? row * column.values.length + value : row;
    if ((!allowed || allowed[row]) && column.has(row) && !seen.has(pair)) countOne(counts, value);
    if (column.rows) seen.add(pair);
  }
  const ordered = [...counts].sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1)).slice(0, MOST_VALUES);
  return ordered.map(([key, count]) => {
    const value = column.codes ? column.values[key] : key;
    if (typeof value !== "bigint") return { value, count };
    return { value: column.kind === "date" ? isoDate(value) : Number(value), count };
  });
}

/**
 * Return a moment, in microseconds since 1970, as ISO 8601 in UTC, without a time if it is midnight. If UTC's year is
 * not in 1 to 9999, it is in another zone.
 * @type {(moment: bigint) => string}
 */
function isoDate(moment) {
  const fraction = ((moment % 1_000_000n) + 1_000_000n) % 1_000_000n;
  const date = new Date(Number((moment - fraction) / 1000n));
  const year = date.getUTCFullYear();
  const sign = year < 1 ? "+" : year > 9999 ? "-" : "";
  if (sign) date.setUTCMinutes(date.getUTCMinutes() + Number(`${sign}1439`));
  const decimals = fraction ? `.${String(fraction).padStart(6, "0")}` : "";
  const text = date.toISOString().slice(0, 19) + decimals + (sign ? `${sign}23:59` : "Z");
  return text.replace("T00:00:00Z", "");
}

/**
 * Return rows ordered by columns, each ascending (false) or descending. Rows without a value come last.
 * @type {(rows: Iterable<number>, columns: [Column, boolean][]) => number[]}
 */
export function sortRows(rows, columns) {
  return [...rows].sort((one, other) => {
    for (const [column, isDescending] of columns) {
      const missing = Number(column.has(other)) - Number(column.has(one));
      if (missing) return missing;
      const [a, b] = [column.order(one), column.order(other)];
      if (a !== b && column.has(one)) return a < b === isDescending ? 1 : -1;
    }
    return 0;
  });
}
