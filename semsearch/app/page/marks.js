"use strict";

import { make } from "./elements.js";

// The parts of a text that answer the query, marked. The server counts Unicode code points, and a JavaScript string has
// UTF-16 units: an emoji is one of the former and two of the latter.

// Return a text as nodes, its ranges [start, end] of code points marked. Ranges ascend.
export function markRanges(text, ranges = []) {
  const characters = ranges.length ? [...text] : [];
  const nodes = [];
  let last = 0;
  for (const [from, to] of ranges) {
    nodes.push(characters.slice(last, from).join(""), make("mark", {}, characters.slice(from, to).join("")));
    last = to;
  }
  return [...nodes, last ? characters.slice(last).join("") : text];
}
