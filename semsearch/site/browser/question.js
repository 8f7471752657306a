// The request for the text in the field of the box, with what the attributes of its element say.

import { scopeFilters } from "./scope.js";
import { splitWithout } from "./without.js";

const EXAMPLES = {
  filter: '{"path": "guide.html"}',
  boost: '{"section": {"equals": "guide", "weight": 0.1}}',
  versions: '{"current": "5.x"}',
};

const KIND_BOOST = 0.15; // what a page gets that is neither a changelog nor a post
const VERSION = /\d\.\d/; // in a text that asks for a version, which its changelog answers

// Return the body of a request. literal has words that are neither corrected nor left out, scope is the version and the
// language to search, state says what of the search is loaded, and index has the columns and the boost of the corpus.
export function readBody(element, value, { literal, scope, state, index }) {
  const read = (name) => element.getAttribute(name);
  const mode = read("mode");
  const { text, without } = mode === "semantic" ? { text: value, without: [] } : splitWithout(value, literal);
  const body = { text, without, num_results: Number(read("limit") || 8), highlights: true };
  if (mode && (mode === "keyword" || state.hasMeaning)) body.mode = mode;
  if (mode !== "semantic") body.prefix = true;
  if (literal.has(value.trim())) body.correct = false;
  const boost = boostOf(element, index, value);
  if (boost) body.boost = boost;
  const filters = [readObject(element, "filter"), ...scopeFilters(scope)].filter(Boolean);
  if (filters.length) body.filter = filters.length > 1 ? { $and: filters } : filters[0];
  return body;
}

// Return the boost of the element, or that of the corpus, with the one of pages. Without one for pages, return that of the
// element alone: the search adds that of the corpus.
function boostOf(element, { columns, boost }, text) {
  const own = readObject(element, "boost");
  const stated = element.getAttribute("kind-boost") || KIND_BOOST;
  const weight = Number(stated);
  if (!(weight >= 0)) throw new Error(`kind-boost: expected a number of 0 or more, such as 0.15, found ${stated}`);
  if (!weight || columns.kind !== "string" || VERSION.test(text)) return own;
  return { kind: { equals: "page", weight }, ...(own ?? boost) };
}

// Return the value of an attribute that is JSON, undefined if the element does not have it.
export function readObject(element, name) {
  const text = element.getAttribute(name);
  if (!text) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    throw new Error(`${name}: expected JSON, such as ${EXAMPLES[name]}, found ${text}; use JSON.stringify`);
  }
}
