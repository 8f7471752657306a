// Meaning and words together, as function/engine/hybrid.py adds them.

import { best, round6 } from "./arrays.js";

const CANDIDATES = 200; // rows that each search adds at least
const RRF_RANK = 60;

/**
 * Return the best rows by both scores.
 * @param {import("./semantic.js").Index} index
 * @param {Float32Array} query
 * @param {import("./keywords.js").Matches} matches
 * @param {{fusion: string, fusion_weight: number}} info
 * @param {number} count
 * @param {import("./arrays.js").Mask} allowed
 * @returns {import("./arrays.js").Hit[]}
 */
export function fuse(index, query, matches, { fusion, fusion_weight: weight }, count, allowed) {
  const within = allowed ? matches.within(allowed) : matches;
  const many = Math.max(CANDIDATES, 2 * count);
  const similar = index.search(query, many, within.allowed).map(({ row }) => row);
  const rows = Int32Array.from(new Set([...similar, ...within.bestRows(many)])).sort();
  const semantic = Float64Array.from(rows, (row) => index.scoreOf(query, row));
  const keyword = Float64Array.from(rows, (row) => within.scores[row]);
  const [byMeaning, byWords] = [ranks(semantic), ranks(keyword)];
  const scores = Float64Array.from(rows, (_, i) =>
    fusion === "convex"
      ? round6(weight * semantic[i] + ((1 - weight) * keyword[i]) / (matches.highest || 1))
      : round6(1 / (RRF_RANK + byMeaning[i]) + (keyword[i] > 0 ? 1 / (RRF_RANK + byWords[i]) : 0)),
  );
  return best(scores, count).map((i) => {
    return { row: rows[i], score: scores[i], scores: { semantic: semantic[i], keyword: round6(keyword[i]) } };
  });
}

/** @param {Float64Array} scores @returns {number[]} the rank of each, from 1 on; equal scores share the better rank */
function ranks(scores) {
  const sorted = Array.from(scores).sort((a, b) => b - a);
  const first = new Map(sorted.map((score, place) => /** @type {[number, number]} */ ([score, place])).reverse());
  return Array.from(scores, (score) => Number(first.get(score)) + 1);
}
