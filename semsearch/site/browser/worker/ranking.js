// Further pages of a ranking, and groups such as documents, as semsearch/engine/pages.py finds them.

/** @import { Find, Hit, Mask } from "./types.js" */
import { maskOf, rowsOf } from "./arrays.js";

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
 * Return `count` groups of rows with the same string, in the order of their best hits, each with its best `size` hits of
 * different sections. sections is the number of each row's section, null if each row is one.
 * @param {Find} find
 * @param {import("./columns.js").Column} column
 * @param {import("./types.js").Numbers | null} sections
 * @param {Mask} allowed
 * @param {number} offset
 * @param {number} count
 * @param {number} size
 */
export function findGroups(find, column, sections, allowed, offset, count, size) {
  const numbers = Array.from({ length: column.count }, (_, row) =>
    column.has(row) ? Number(column.order(row)) : -1 - row,
  );
  const sectionOf = (/** @type {number} */ row) => Number(sections ? sections[row] : row);
  /** @type {(test: (row: number) => boolean) => Uint8Array} */
  const mask = (test) => maskOf(column.count, (row) => (!allowed || allowed[row]) && test(row));
  /** Return the hit, or the one of a section with an equal text and score whose group has a shorter string. @type {(hit: Hit) => Hit} */
  const shortestCopy = (hit) => {
    const copies = mask((row) => sectionOf(row) === sectionOf(hit.row));
    const rows = rowsOf(copies, column.count);
    if (rows.every((row) => numbers[row] === numbers[hit.row])) return hit;
    const lengthOf = (/** @type {Hit} */ { row }) =>
      numbers[row] < 0 ? 0 : [...String(column.values[numbers[row]])].length;
    const equal = find(rows.length, copies).filter(({ score }) => score === hit.score);
    return equal.reduce((shortest, each) => (lengthOf(each) < lengthOf(shortest) ? each : shortest), equal[0] ?? hit);
  };
  /** @type {Map<number, number>} the number of the group that each section belongs to */
  const owners = new Map();
  /** @type {Map<number, Hit>} */
  const best = new Map();
  for (let depth = HITS_PER_GROUP * count, rest = allowed; ; depth *= 2) {
    const hits = find(depth, rest);
    for (const first of hits) {
      if (best.size >= offset + count) break;
      if (owners.has(sectionOf(first.row))) continue;
      const hit = shortestCopy(first);
      const own = numbers[hit.row];
      best.set(own, hit);
      numbers.forEach((number, row) => {
        if (number === own && !owners.has(sectionOf(row))) owners.set(sectionOf(row), own);
      });
    }
    if (best.size >= offset + count || hits.length < depth) break;
    rest = mask((row) => !owners.has(sectionOf(row)));
  }
  const groups = new Map([...best].slice(offset, offset + count).map(([number, hit]) => [number, [hit]]));
  const seen = new Set(Array.from(groups.values(), ([hit]) => sectionOf(hit.row)));
  const isOpen = (/** @type {number} */ number) => number >= 0 && Number(groups.get(number)?.length) < size;
  const isWanted = (/** @type {number} */ row) =>
    isOpen(numbers[row]) && owners.get(sectionOf(row)) === numbers[row] && !seen.has(sectionOf(row));
  for (let depth = HITS_PER_GROUP * size * groups.size; [...groups.keys()].some(isOpen); depth *= 2) {
    const rest = mask(isWanted);
    const hits = rest.includes(1) ? find(depth, rest) : [];
    for (const hit of hits) {
      if (!isWanted(hit.row)) continue;
      groups.get(numbers[hit.row])?.push(hit);
      seen.add(sectionOf(hit.row));
    }
    if (hits.length < depth) break;
  }
  return [...groups].map(([number, hits]) => ({ group: number < 0 ? null : column.values[number], hits }));
}
