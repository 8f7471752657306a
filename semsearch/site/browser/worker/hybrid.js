// Meaning and words together, as semsearch/engine/hybrid.py adds them.

/** @import { Hit, Mask } from "./types.js" */
import { best, round6 } from "./arrays.js";
import { FEW_HITS } from "./semantic.js";

const CANDIDATES = 200; // rows that each search adds at least
const FEW_RESULTS = 10; // for these, semantic search first adds FEW_HITS rows
const ATTAINABLE = 0.7; // share of the score of a text with all words of the query, by which BM25 scores are divided
/** @typedef {{fusion_weight: number}} Info */
/** @typedef {import("./semantic.js").Index} Index */
/** @typedef {import("./keywords.js").Matches} Matches */

/** @type {(index: Index, query: Float32Array, matches: Matches, info: Info, count: number, allowed: Mask, rough?: boolean) => Hit[]} */
export function fuse(index, query, matches, { fusion_weight: weight }, count, allowed, rough = false) {
  const within = matches.within(allowed);
  const many = Math.max(CANDIDATES, rough ? count : 2 * count);
  const byWords = within.bestRows(many);
  const divisor = Math.max(matches.highest, ATTAINABLE * matches.attainable) || 1;
  const add = (/** @type {number} */ depth) => {
    const similar = index.search(query, depth, within.allowed, rough);
    const rows = Int32Array.from(new Set([...similar.map(({ row }) => row), ...byWords])).sort();
    const semantic = Array.from(rows, (row) => index.score(query, row));
    const keyword = Array.from(rows, (row) => within.scores[row]);
    const scores = Float64Array.from(rows, (_, i) =>
      round6(weight * semantic[i] + ((1 - weight) * keyword[i]) / divisor),
    );
    return { similar, rows, semantic, keyword, scores };
  };
  const isFew = count <= FEW_RESULTS;
  let found = add(isFew ? FEW_HITS : many);
  if (isFew && found.similar.length === FEW_HITS) {
    const last = byWords.length === many ? within.scores[byWords[many - 1]] : 0;
    const bound = round6(weight * found.similar[FEW_HITS - 1].score + ((1 - weight) * last) / divisor);
    if (found.scores.filter((score) => score > bound).length < FEW_RESULTS) found = add(many);
  }
  const { rows, semantic, keyword, scores } = found;
  return best(scores, count).map((i) => {
    return { row: rows[i], score: scores[i], scores: { semantic: semantic[i], keyword: round6(keyword[i]) } };
  });
}
