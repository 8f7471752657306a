// The metadata that filters compare. A column is stored as function/engine/metadata/columns.py describes.

/** @typedef {string | number | bigint | boolean} Value of a row; of a date, microseconds since 1970 */

/** One column: its type, the corpus's number of rows, and a value for each code or row. */
export class Column {
  /**
   * @param {string} kind
   * @param {number} count
   * @param {Record<string, any>} tensors
   */
  constructor(kind, count, { values, offsets, codes = null, rows = null, present = null }) {
    this.kind = kind;
    this.count = count;
    this.codes = codes;
    this.rows = rows; // of a list: the row of each code
    this.present = present;
    const decoder = new TextDecoder();
    const strings = offsets && Array.from(offsets.subarray(1), (end, i) => decoder.decode(values.subarray(offsets[i], end)));
    /** @type {ArrayLike<Value>} */
    this.values = strings ?? (kind === "boolean" ? Array.from(values, Boolean) : values);
  }

  /** @param {number} row */
  has(row) {
    return !this.present || (this.present[row >> 3] >> (7 - (row & 7))) & 1;
  }

  /** Return the rows that have a value. */
  exists() {
    return Uint8Array.from({ length: this.count }, (_, row) => Number(Boolean(this.has(row))));
  }

  /**
   * Return the rows whose value passes a test; of a list, one of its strings must.
   * @param {(value: Value) => boolean} test
   */
  where(test) {
    const { codes, rows, values } = this;
    const passes = codes && Uint8Array.from(values, (value) => Number(test(value)));
    const mask = new Uint8Array(this.count);
    const entries = rows ? rows.length : this.count;
    for (let i = 0; i < entries; i++) {
      if (passes ? passes[codes[i]] : test(values[i])) mask[rows ? rows[i] : i] = 1;
    }
    return rows || !this.present ? mask : mask.map((is, row) => is & Number(this.has(row)));
  }

  /**
   * Return a number that orders the rows as their values do.
   * @param {number} row
   */
  order(row) {
    return this.codes ? this.codes[row] : this.values[row];
  }
}

/**
 * Return the column of the ids.
 * @param {string[]} ids
 */
export function idColumn(ids) {
  const column = new Column("string", ids.length, { values: ids });
  return column;
}

/**
 * Return the most frequent values of a column among the allowed rows, each with the number of rows that have it.
 * @param {Column} column
 * @param {import("./arrays.js").Mask} allowed
 * @param {number} most
 */
export function countValues(column, allowed, most = 100) {
  /** @type {Map<any, number>} */
  const counts = new Map();
  const seen = new Set();
  for (let i = 0; i < (column.rows ?? { length: column.count }).length; i++) {
    const row = column.rows ? column.rows[i] : i;
    if ((allowed && !allowed[row]) || !column.has(row)) continue;
    const value = column.order(i);
    const pair = column.rows && row * column.values.length + value; // a string of a list counts once
    if (!pair || !seen.has(pair)) counts.set(value, (counts.get(value) ?? 0) + 1);
    if (pair) seen.add(pair);
  }
  const ordered = [...counts].sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1)).slice(0, most);
  return ordered.map(([value, count]) => ({ value: column.codes ? column.values[value] : value, count }));
}

/**
 * Return rows ordered by columns, each ascending or descending. Rows without a value come last.
 * @param {number[]} rows
 * @param {[Column, boolean][]} columns
 */
export function sortRows(rows, columns) {
  return [...rows].sort((one, other) => {
    for (const [column, isDescending] of columns) {
      const missing = Number(!column.has(one)) - Number(!column.has(other));
      if (missing) return missing;
      const [a, b] = [column.order(one), column.order(other)];
      if (a !== b && column.has(one)) return a < b === isDescending ? 1 : -1;
    }
    return 0;
  });
}
