"use strict";

// What the bundle contains, from GET /info, and what the page therefore offers.

// columns of documents that are no choice for readers: their values are of one passage, or repeat the path
const OF_PASSAGES = ["title", "url", "headings", "page", "start", "end", "passage", "table"];
const MOST_FACETS = 10; // columns that one request can count

const corpus = {
  columns: {}, // type of each column, by name
  keywords: null, // how words are scored; null if the bundle has no keywords
  hasReranker: false, // whether a slower model can score the best results again
  isDocuments: false, // whether the texts are passages of documents
  isRemote: false, // whether the texts are in S3 Vectors, which only compares embeddings
  hasIndex: true, // whether the embeddings are in the bundle, so that a search can go deep
  facets: [], // columns whose values are counted
  sorts: [], // columns by which results can be ordered
};

function readCorpus({ columns, keywords, vectors }, rerank) {
  const isDocuments = columns.path === "string" && ("url" in columns || "headings" in columns);
  const hasIndex = !vectors;
  const isRemote = Boolean(vectors && !vectors.keeps_texts);
  const shown = Object.keys(columns).filter((name) => !isDocuments || !OF_PASSAGES.includes(name));
  const ofType = (...types) => (isRemote ? [] : shown.filter((name) => types.includes(columns[name])));
  const facets = ofType("string", "list", "boolean").slice(0, MOST_FACETS);
  const sorts = ofType("number", "date");
  const hasReranker = Boolean(rerank);
  Object.assign(corpus, { columns, keywords, hasReranker, isDocuments, isRemote, hasIndex, facets, sorts });
}
