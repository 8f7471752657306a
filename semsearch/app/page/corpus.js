"use strict";

// What the bundle contains, from GET /info, and what the page therefore offers.

// columns of documents that are no choice for readers: their values are of one passage, or repeat the path
const OF_PASSAGES = ["title", "url", "headings", "page", "start", "end", "passage", "table"];
const MOST_FACETS = 10; // columns that one request can count

const corpus = {
  columns: new Map(), // type of each column, by name
  keywords: null, // how words are scored; null if the bundle has no keywords
  hasModel: true, // whether a text can be searched by meaning
  hasReranker: false, // whether a slower model can score the best results again
  isDocuments: false, // whether the texts are passages of documents
  isRemote: false, // whether the texts are in S3 Vectors, which only compares embeddings
  facets: [], // columns whose values are counted
  sorts: [], // columns by which results can be ordered
};

function readCorpus({ columns: types, keywords, vectors }, rerank, hasModel = true) {
  // sorted as in the bundle: an object has names that are whole numbers before all others
  const columns = new Map(
    Object.keys(types)
      .sort()
      .map((name) => [name, types[name]]),
  );
  const isDocuments = columns.get("path") === "string" && (columns.has("url") || columns.has("headings"));
  const isRemote = Boolean(vectors);
  const shown = [...columns.keys()].filter((name) => !isDocuments || !OF_PASSAGES.includes(name));
  const ofType = (...wanted) => (isRemote ? [] : shown.filter((name) => wanted.includes(columns.get(name))));
  const facets = ofType("string", "list", "boolean").slice(0, MOST_FACETS);
  const sorts = ofType("number", "date");
  const hasReranker = Boolean(rerank);
  Object.assign(corpus, { columns, keywords, hasModel, hasReranker, isDocuments, isRemote, facets, sorts });
}
