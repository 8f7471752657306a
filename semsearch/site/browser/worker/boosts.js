// What columns add to the scores of the best hits, as semsearch/engine/metadata/boosts.py adds it.

/** @import { Boosts, Find, Hit } from "./types.js" */
/** @import { Column } from "./columns.js" */
import { allowedRows } from "./filters.js";

const MOST_BOOSTED = 200; // best hits that get a boost
/** @type {Record<string, number>} */
const SECONDS = { h: 3_600, d: 86_400, w: 604_800 }; // of the units of a half-life

const round = (/** @type {number} */ score) => Math.round(score * 1e6) / 1e6;

/**
 * Return the function that returns what boosts add to the score of a row; `now` is in seconds since 1970.
 * @type {(boosts: Boosts, columns: Record<string, Column>, now: number) => (row: number) => number}
 */
export function boostOf(boosts, columns, now) {
  const parts = Object.entries(boosts).map(([name, { weight, half_life: halfLife, equals }]) => {
    const column = columns[name];
    if (equals !== undefined) {
      const mask = allowedRows({ [name]: equals }, columns, column.count);
      return (/** @type {number} */ row) => weight * mask[row];
    }
    const half = halfLife && parseFloat(halfLife) * SECONDS[halfLife.slice(-1)];
    return (/** @type {number} */ row) => {
      if (!column.has(row)) return 0;
      const number = Number(column.codes ? column.values[column.codes[row]] : column.values[row]);
      return weight * (half ? 0.5 ** (Math.max(now - number / 1e6, 0) / half) : Math.log1p(Math.max(number, 0)));
    };
  });
  return (row) => round(parts.reduce((sum, part) => sum + part(row), 0));
}

/**
 * Return what finds the first hits when the best ones are ordered with their boosts. `mode` is the name of the ranking's
 * score in the `scores` of a hit.
 * @type {(find: Find, boostOf: (row: number) => number, mode: string) => Find}
 */
export function boosted(find, boostOf, mode) {
  const best = find(MOST_BOOSTED, null, true).map(({ row, score, scores }) => {
    const boost = boostOf(row);
    return { row, score: round(Number(score) + boost), scores: { ...scores, [mode]: Number(score), boost } };
  });
  best.sort((one, other) => other.score - one.score);
  const known = new Set(best.map(({ row }) => row));
  return (count, mask) => {
    /** @type {Hit[]} */
    const first = best.filter(({ row }) => !mask || mask[row]);
    const others = first.length < count && best.length === MOST_BOOSTED ? find(count, mask) : [];
    return [...first, ...others.filter(({ row }) => !known.has(row))].slice(0, count);
  };
}
