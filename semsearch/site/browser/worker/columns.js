// The metadata that filters compare. A column is stored as semsearch/engine/metadata/columns.py describes.

/** @import { Mask, Tensors, Test, Value } from "./types.js" */
import { countOne, maskOf } from "./arrays.js";

const MOST_VALUES = 100; // maximum values of a facet
const MOST_RANGES = 10; // maximum ranges of a facet
const DAY = 86_400_000; // milliseconds
const YEARS = [1 / 12, 1 / 4, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000];
const DATE_STEPS = [
  ...[1, 7].map((days) => ({ days, months: 0 })),
  ...YEARS.map((year) => ({ days: 0, months: 12 * year })),
];

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

  /** Return the rows whose value passes a test; of a list, one of its values must. @type {(test: Test) => Uint8Array} */
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

/** Return the most frequent values among some rows, or ranges. @type {(c: Column, m: Mask) => Record<string, any>[]} */
export function countValues(column, allowed) {
  /** @type {Map<any, number>} */
  const counts = new Map();
  const seen = new Set(); // a list counts once for each of its values
  for (let i = 0; i < (column.rows?.length ?? column.count); i++) {
    const row = column.rows ? column.rows[i] : i;
    const value = column.order(i);
    const pair = column.rows ? row * column.values.length + value : row;
    if ((!allowed || allowed[row]) && column.has(row) && !seen.has(pair)) countOne(counts, value);
    if (column.rows) seen.add(pair);
  }
  if (["number", "date"].includes(column.kind) && counts.size > MOST_VALUES) return countRanges(column, counts);
  const ordered = [...counts].sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1)).slice(0, MOST_VALUES);
  return ordered.map(([key, count]) => {
    const value = column.codes ? column.values[key] : key;
    if (typeof value !== "bigint") return { value, count };
    return { value: column.kind === "date" ? isoDate(value) : Number(value), count };
  });
}

/** Return ranges as semsearch/engine/metadata/facets.py does. @type {(c: Column, m: Map<any, number>) => object[]} */
function countRanges({ kind, codes, values }, counts) {
  const isDate = kind === "date";
  const milliseconds = (/** @type {bigint} */ moment) => (moment - (((moment % 1000n) + 1000n) % 1000n)) / 1000n;
  const number = (/** @type {any} */ value) => Number(isDate ? milliseconds(value) : value);
  const pairs = Array.from(counts, ([key, count]) => [number(codes ? values[key] : key), count]);
  pairs.sort(([a], [b]) => a - b);
  const least = isDate ? -719_162 * DAY : -Number.MAX_VALUE; // the year 1
  const most = isDate ? 2_932_897 * DAY : Number.MAX_VALUE; // the year 10000, in another zone
  const show = (/** @type {number} */ end) => (isDate ? isoDate(BigInt(end) * 1000n) : end);
  for (const borders of (isDate ? dateBorders : numberBorders)(pairs[0][0], pairs[pairs.length - 1][0])) {
    const below = borders.map((end) => pairs.reduce((sum, [value, count]) => sum + (value < end ? count : 0), 0));
    const shown = borders.map((end) => (end >= least && end <= most ? show(end) : undefined));
    const ranges = below.slice(1).map((sum, i) => ({ from: shown[i], to: shown[i + 1], count: sum - below[i] }));
    const few = ranges.filter(({ count }) => count);
    if (few.length <= MOST_RANGES) return few;
  }
  return [];
}

/** @param {number} low @param {number} high */
function* numberBorders(low, high) {
  for (let exponent = Number((high / 10 - low / 10).toExponential(16).split("e")[1]); ; exponent++) {
    for (const digit of [1, 2, 5]) {
      const [first, last] = [low, high].map((value) => Math.floor(value / Number(`${digit}e${exponent}`)));
      yield Array.from({ length: last - first + 4 }, (_, i) => Number(`${(first - 1 + i) * digit}e${exponent}`));
    }
  }
}

/** @param {number} low @param {number} high */
function* dateBorders(low, high) {
  for (const { days, months } of DATE_STEPS) {
    const [first, last] = [new Date(low), new Date(high)].map((date) => {
      if (days) return Math.floor((date.getTime() / DAY + 3) / days); // from a Monday
      return Math.floor((12 * date.getUTCFullYear() + date.getUTCMonth()) / months);
    });
    const border = (/** @type {number} */ i) => (days ? (i * days - 3) * DAY : Date.UTC(1970, i * months - 12 * 1970));
    if (last - first < MOST_RANGES) yield Array.from({ length: last - first + 2 }, (_, i) => border(first + i));
  }
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
