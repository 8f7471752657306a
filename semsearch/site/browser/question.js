// The request for the text in the field of the box, with what the attributes of its element say.

import { scopeFilters } from "./scope.js";
import { splitWithout } from "./without.js";

const EXAMPLES = {
  filter: '{"path": "guide.html"}',
  boost: '{"section": {"equals": "guide", "weight": 0.1}}',
  versions: '{"current": "5.x"}',
};

// Return the body of a request. literal has words that are neither corrected nor left out, scope is the version and the
// language to search, and state says what of the search is loaded.
export function readBody(element, value, { literal, scope, state }) {
  const read = (name) => element.getAttribute(name);
  const mode = read("mode");
  const { text, without } = mode === "semantic" ? { text: value, without: [] } : splitWithout(value, literal);
  const body = { text, without, num_results: Number(read("limit") || 8), highlights: true };
  if (mode && (mode === "keyword" || state.hasMeaning)) body.mode = mode;
  if (mode !== "semantic") body.prefix = true;
  if (literal.has(value.trim())) body.correct = false;
  const boost = readObject(element, "boost");
  if (boost) body.boost = boost;
  const filters = [readObject(element, "filter"), ...scopeFilters(scope)].filter(Boolean);
  if (filters.length) body.filter = filters.length > 1 ? { $and: filters } : filters[0];
  return body;
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
