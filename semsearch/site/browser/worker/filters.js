// Filters over metadata: a JSON object becomes a mask of rows, as in semsearch/engine/metadata/filters.py.

/** @import { Value } from "./types.js" */
/** @import { Column } from "./columns.js" */
import { both, maskOf } from "./arrays.js";

const DATE = /^(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,6}))?)?(Z|[+-]\d\d:?\d\d)?)?$/;
/** @type {Record<string, string>} */
const JSON_TYPES = { list: "string", date: "string", numbers: "number" }; // of a value in JSON, by the type of the column
const EXPECTED = "a date or time, such as 2024-05-31 or 2024-05-31T12:00:00Z";

/** Whether a value passes an operator, by the order of the two. @type {Record<string, (order: number) => boolean>} */
const COMPARED = {
  $eq: (order) => order === 0,
  $gt: (order) => order > 0,
  $gte: (order) => order >= 0,
  $lt: (order) => order < 0,
  $lte: (order) => order <= 0,
};

/** Return the names of the columns that a filter compares. @type {(condition: any) => string[]} */
export const namesIn = (condition) =>
  Object.entries(condition ?? {}).flatMap(([name, value]) => {
    return ["$and", "$or", "$not"].includes(name) ? [value].flat().flatMap(namesIn) : [name];
  });

/** @type {(where: string, expected: string, found: unknown) => never} */
function refuse(where, expected, found) {
  throw new Error(`${where}: expected ${expected}, found ${JSON.stringify(found)?.slice(0, 60)}`);
}

/**
 * Return the rows for which all members of a filter hold. Throws an Error that names the wrong member.
 * @type {(condition: any, columns: Record<string, Column>, count: number, where?: string) => Uint8Array}
 */
export function allowedRows(condition, columns, count, where = "filter") {
  if (Object.prototype.toString.call(condition) !== "[object Object]") refuse(where, "an object", condition);
  return Object.entries(condition).reduce(
    (mask, [name, value]) => {
      const place = `${where}.${name}`;
      if (name === "$and" || name === "$or") {
        const several = listOf(place, value);
        if (!several.length) refuse(place, "a list of filters, not an empty one", value);
        const masks = several.map((each, i) => allowedRows(each, columns, count, `${place}.${i}`));
        const either = maskOf(count, (row) => masks.some((one) => one[row]));
        return name === "$and" ? masks.reduce(both, mask) : both(either, mask);
      }
      if (name === "$not") return both(not(allowedRows(value, columns, count, place)), mask);
      if (!Object.hasOwn(columns, name)) refuse(where, "the name of a column, $and, $or or $not", name);
      const operators = Object.entries(typeof value === "object" && value ? value : { $eq: value });
      if (!operators.length) refuse(place, "an operator, such as $eq", value);
      return operators.map((each) => compare(place, each, columns[name])).reduce(both, mask);
    },
    maskOf(count, () => true),
  );
}

const not = (/** @type {Uint8Array} */ mask) => mask.map((is) => 1 - is);

/** Return the rows whose value passes one operator. @type {(w: string, each: [string, any], c: Column) => Uint8Array} */
function compare(where, [operator, operand], column) {
  const place = `${where}.${operator}`;
  if (operator === "$ne") return not(compare(where, ["$eq", operand], column));
  if (operator === "$nin") return not(compare(where, ["$in", operand], column));
  if (operator === "$exists") {
    if (typeof operand !== "boolean") refuse(place, "true or false", operand);
    const exists = maskOf(column.count, (row) => column.has(row));
    return operand ? exists : not(exists);
  }
  if (operator === "$in") {
    const wanted = listOf(place, operand).map((value, i) => stored(`${place}.${i}`, column.kind, value));
    return column.where((value) => wanted.some((one) => one == value)); // a bigint can equal a number
  }
  const limit = stored(place, column.kind, operand);
  if (operator === "$startsWith" && typeof limit === "string" && column.kind !== "date") {
    return column.where((value) => String(value).startsWith(limit));
  }
  if (!Object.hasOwn(COMPARED, operator)) refuse(where, "another operator for this column", operator);
  const passes = COMPARED[operator];
  return column.where((value) => passes(order(value, limit)));
}

/** Return the order of two values; strings are in that of their code points. @type {(one: Value, other: Value) => number} */
function order(one, other) {
  if (typeof one !== "string" || typeof other !== "string" || one === other)
    return one < other ? -1 : Number(one > other);
  const [a, b] = [[...one], [...other]];
  const place = a.findIndex((letter, i) => letter !== b[i]);
  return place < 0 || place >= b.length
    ? a.length - b.length
    : Number(a[place].codePointAt(0)) - Number(b[place].codePointAt(0));
}

/** @type {(where: string, values: any) => any[]} */
const listOf = (where, values) => (Array.isArray(values) ? values : refuse(where, "a list", values));

/** Return a value as columns of this type hold it. @type {(where: string, kind: string, value: any) => Value} */
function stored(where, kind, value) {
  const type = JSON_TYPES[kind] ?? kind;
  if (typeof value !== type) refuse(where, `a ${type}`, value);
  return kind === "date" ? (toMicroseconds(value) ?? refuse(where, EXPECTED, value)) : value;
}

/** Return the time since 1970; without a zone it is in UTC. @type {(text: string) => bigint | null} */
function toMicroseconds(text) {
  const [, year, month, day, hour = "0", minute = "0", second = "0", fraction = "", zone = "Z"] = DATE.exec(text) ?? [];
  const date = new Date(0);
  date.setUTCFullYear(Number(year), Number(month) - 1, Number(day));
  if (date.getUTCDate() !== Number(day)) return null; // no date, or 31 June
  const offset = zone === "Z" ? 0 : Number(`${zone[0]}1`) * (Number(zone.slice(1, 3)) * 60 + Number(zone.slice(-2)));
  date.setUTCHours(Number(hour), Number(minute) - offset, Number(second));
  return BigInt(date.getTime()) * 1000n + BigInt(fraction.padEnd(6, "0"));
}
