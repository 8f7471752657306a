"use strict";

// The request: what the page's fields ask for.

const query = byId("query");
const literal = new Set(); // words that are searched, although they are written as words to leave out
let like = null; // {id, label} of the text to which the results are similar; null if the field has the query

const chosenMode = () => document.querySelector("input[name=mode]:checked").value;
const readMode = () => availableMode(chosenMode());
const hasModes = () => Boolean(corpus.keywords && corpus.hasModel);

function defaultMode() {
  if (!corpus.hasModel) return "keyword";
  return corpus.keywords ? "hybrid" : "semantic";
}

const filledConditions = () => readConditions().filter((condition) => toFilter([condition]));

// Return the request for what the page's fields say, null if they ask for nothing.
function readRequest() {
  const num_results = Number(byId("count").value);
  const conditions = filledConditions();
  const [, way, column] = byId("sort").value.match(/^(asc|desc) (.*)$/s) ?? [];
  const typed = splitWithout(query.value, literal);
  const what = like ? { id: like.id } : query.value.trim() ? { text: typed.text } : null;
  const mode = like ? "semantic" : readMode(); // a whole text shares words with nearly every other
  const request = { ...(what && { ...what, mode }), num_results, highlights: true };
  if (what && !like && mode !== "semantic") request.prefix = true; // the last word may still be typed
  if (!corpus.hasModel && !corpus.keywords && !like) delete request.mode; // the server says what it lacks
  if (request.prefix && typed.without.length) request.without = typed.without;
  if (conditions.length) request.filter = toFilter(conditions);
  if (column) request.sort = { [column]: way };
  if (what && corpus.hasReranker && !column && byId("rerank").checked) request.rerank = {};
  // a filter by one document is for all of its passages
  const isOfOne = conditions.some(([name]) => name === "path");
  if (what && corpus.isDocuments && !column && !isOfOne) request.group_by = "path";
  if (!byId("filters").hidden && corpus.facets.length) request.facets = corpus.facets;
  const lists = !corpus.isRemote && (request.filter || request.sort || request.facets);
  return what || lists ? request : null;
}
