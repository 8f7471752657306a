// Filters over metadata: a JSON object becomes a mask of rows, as in function/engine/metadata/filters.py.

/** @typedef {import("./columns.js").Column} Column */
/** @typedef {import("./columns.js").Value} Value */

const OPERATORS = ["$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$in", "$nin", "$startsWith", "$exists"];
const DATE = /^(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,6}))?)?(Z|[+-]\d\d:?\d\d)?)?$/;
const EXPECTED = {
  string: "a string",
  number: "a number",
  boolean: "true or false",
  date: "an ISO 8601 date or time, such as 2024-05-31 or 2024-05-31T12:00:00Z",
  list: "a string",
};

/** A filter that cannot be used. */
export class FilterError extends Error {
  /**
   * @param {string} where
   * @param {string} expected
   * @param {unknown} found
   */
  constructor(where, expected, found) {
    super(`${where}: expected ${expected}, found ${JSON.stringify(found)?.slice(0, 60)}`);
  }
}

/**
 * Return the names of the columns that a filter compares.
 * @param {any} condition
 * @returns {string[]}
 */
export const namesIn = (condition) =>
  Object.entries(condition ?? {}).flatMap(([name, value]) =>
    name === "$and" || name === "$or" ? [value].flat().flatMap(namesIn) : [name],
  );

/**
 * Return the rows for which all members of a filter hold.
 * @param {any} condition
 * @param {Record<string, Column>} columns
 * @param {number} count number of rows
 * @returns {Uint8Array}
 */
export function allowedRows(condition, columns, count, where = "filter") {
  if (!isObject(condition)) throw new FilterError(where, "an object", condition);
  const masks = Object.entries(condition).map(([name, value]) => {
    const place = `${where}.${name}`;
    if (name === "$and" || name === "$or") {
      const parts = listOf(place, value, "filters").map((each, i) => allowedRows(each, columns, count, `${place}.${i}`));
      return parts.reduce((one, other) => one.map((is, row) => (name === "$and" ? is & other[row] : is | other[row])));
    }
    if (!Object.hasOwn(columns, name)) throw new FilterError(where, "the name of a column, $and or $or", name);
    const operators = isObject(value) ? value : { $eq: value };
    if (!Object.keys(operators).length) throw new FilterError(place, `at least one of ${OPERATORS.join(", ")}`, value);
    return Object.entries(operators)
      .map(([operator, operand]) => compare(place, operator, operand, columns[name]))
      .reduce((one, other) => one.map((is, row) => is & other[row]));
  });
  return masks.reduce((one, other) => one.map((is, row) => is & other[row]), new Uint8Array(count).fill(1));
}

/**
 * Return the rows whose value passes one operator.
 * @param {string} where
 * @param {string} operator
 * @param {any} operand
 * @param {Column} column
 * @returns {Uint8Array}
 */
function compare(where, operator, operand, column) {
  const place = `${where}.${operator}`;
  const stored = (/** @type {unknown} */ value, at = place) => storedValue(at, column.kind, value);
  const any = (/** @type {Value[]} */ wanted) => column.where((value) => wanted.some((one) => one == value));
  const not = (/** @type {Uint8Array} */ mask) => mask.map((is) => 1 - is);
  const several = () => listOf(place, operand, "values").map((value, i) => stored(value, `${place}.${i}`));
  const than = (/** @type {(order: number) => boolean} */ test) => {
    const limit = stored(operand);
    return column.where((value) => test(order(value, limit)));
  };
  switch (operator) {
    case "$eq":
      return any([stored(operand)]);
    case "$ne":
      return not(any([stored(operand)]));
    case "$in":
      return any(several());
    case "$nin":
      return not(any(several()));
    case "$gt":
      return than((order) => order > 0);
    case "$gte":
      return than((order) => order >= 0);
    case "$lt":
      return than((order) => order < 0);
    case "$lte":
      return than((order) => order <= 0);
    case "$startsWith": {
      const isText = column.kind === "string" || column.kind === "list";
      if (!isText) throw new FilterError(place, "a column of strings or lists", column.kind);
      const start = String(stored(operand));
      return column.where((value) => String(value).startsWith(start));
    }
    case "$exists":
      if (typeof operand !== "boolean") throw new FilterError(place, "true or false", operand);
      return operand ? existing(column) : not(existing(column));
    default:
      throw new FilterError(where, `one of ${OPERATORS.join(", ")}`, operator);
  }
}

/** @param {Column} column */
const existing = (column) => column.exists();

/** @param {unknown} value */
const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

/**
 * Return the order of two values, below 0 if the first is smaller. Strings are in the order of their code points.
 * @param {Value} one
 * @param {Value} other
 */
function order(one, other) {
  if (typeof one !== "string" || typeof other !== "string") return one < other ? -1 : Number(one > other);
  const [a, b] = [[...one], [...other]];
  const place = a.findIndex((letter, i) => letter !== b[i]);
  if (place < 0) return a.length - b.length;
  return place < b.length ? Number(a[place].codePointAt(0)) - Number(b[place].codePointAt(0)) : 1;
}

/**
 * @param {string} where
 * @param {any} values
 * @param {string} content
 * @returns {any[]}
 */
function listOf(where, values, content) {
  if (Array.isArray(values) && values.length) return values;
  throw new FilterError(where, `a list of ${content}, not an empty one`, values);
}

/**
 * Return a value as columns of this type hold it. A time without a zone is in UTC.
 * @param {string} where
 * @param {string} kind
 * @param {any} value
 * @returns {Value}
 */
function storedValue(where, kind, value) {
  const type = kind === "list" || kind === "date" ? "string" : kind;
  if (typeof value === type && kind !== "date") return value;
  const date = typeof value === type && DATE.exec(value);
  if (date) {
    const [, year, month, day, hour = 0, minute = 0, second = 0, fraction = "", zone = "Z"] = date;
    const offset = zone === "Z" ? 0 : Number(zone.slice(1, 3)) * 60 + Number(zone.slice(-2));
    const moment = new Date(0);
    moment.setUTCFullYear(Number(year), Number(month) - 1, Number(day));
    const isDay = moment.getUTCDate() === Number(day) && moment.getUTCMonth() === Number(month) - 1;
    moment.setUTCHours(Number(hour), Number(minute) - (zone[0] === "-" ? -offset : offset), Number(second));
    if (isDay) return BigInt(moment.getTime()) * 1000n + BigInt(fraction.padEnd(6, "0"));
  }
  throw new FilterError(where, EXPECTED[/** @type {keyof typeof EXPECTED} */ (kind)], value);
}
