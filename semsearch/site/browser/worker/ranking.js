// Further pages of a ranking, and groups such as documents, as semsearch/engine/pages.py finds them.

/** @import { Find, Hit, Mask } from "./types.js" */
import { maskOf } from "./arrays.js";

const HITS_PER_GROUP = 4; // hits that the first search finds for each group

/** Return `count` hits after the first `offset`. @type {(find: Find, offset: number, count: number) => Hit[]} */
export function findPage(find, offset, count) {
  /** @type {Map<number, Hit>} */
  const found = new Map();
  for (let depth = count; ; depth *= 2) {
    const hits = find(depth, null);
    for (const hit of hits) if (!found.has(hit.row)) found.set(hit.row, hit);
    if (found.size >= offset + count || hits.length < depth) return [...found.values()].slice(offset, offset + count);
  }
}

/**
 * Return `count` groups of rows with the same string, in the order of their best hits, each with its best `size` hits.
 * @param {Find} find
 * @param {import("./columns.js").Column} column
 * @param {Mask} allowed
 * @param {number} offset
 * @param {number} count
 * @param {number} size
 */
export function findGroups(find, column, allowed, offset, count, size) {
  const numberOf = (/** @type {number} */ row) => (column.has(row) ? Number(column.order(row)) : -1 - row);
  /** @type {(test: (row: number) => boolean) => Uint8Array} */
  const mask = (test) => maskOf(column.count, (row) => (!allowed || allowed[row]) && test(row));
  /** @type {Map<number, Hit>} */
  const best = new Map();
  for (let depth = HITS_PER_GROUP * count, rest = allowed; ; depth *= 2) {
    const hits = find(depth, rest);
    for (const hit of hits) if (!best.has(numberOf(hit.row))) best.set(numberOf(hit.row), hit);
    if (best.size >= offset + count || hits.length < depth) break;
    rest = mask((row) => !best.has(numberOf(row)));
  }
  const groups = new Map([...best].slice(offset, offset + count).map(([number, hit]) => [number, [hit]]));
  const seen = new Set([...groups.values()].map(([hit]) => hit.row));
  const isOpen = (/** @type {number} */ number) => number >= 0 && Number(groups.get(number)?.length) < size;
  for (let depth = HITS_PER_GROUP * size * groups.size; [...groups.keys()].some(isOpen); depth *= 2) {
    const rest = mask((row) => isOpen(numberOf(row)) && !seen.has(row));
    const hits = rest.includes(1) ? find(depth, rest) : [];
    for (const hit of hits) if (isOpen(numberOf(hit.row))) groups.get(numberOf(hit.row))?.push(hit);
    for (const { row } of hits) seen.add(row);
    if (hits.length < depth) break;
  }
  return [...groups].map(([number, hits]) => ({ group: number < 0 ? null : column.values[number], hits }));
}
