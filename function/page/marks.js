"use strict";

// The parts of a text that answer the query, marked. The server counts Unicode code points, and a JavaScript string has
// UTF-16 units: an emoji is one of the former and two of the latter.

// Return a text as nodes, its ranges [start, end] marked. Ranges ascend. They are code points of the whole text, in
// which this part of it begins at `offset`.
function markRanges(text, ranges = [], offset = 0) {
  const characters = ranges.length ? [...text] : [];
  const nodes = [];
  let last = 0;
  for (const range of ranges) {
    const [from, to] = range.map((place) => Math.min(Math.max(place - offset, last), characters.length));
    if (from === to) continue;
    nodes.push(characters.slice(last, from).join(""), make("mark", {}, characters.slice(from, to).join("")));
    last = to;
  }
  return [...nodes, last ? characters.slice(last).join("") : text];
}
