"use strict";

// Where a text is from: its title, the headings around it, and links to addresses.

// Return the address that a value links to, null if it is not one of http or https. A relative one begins at `folder`.
function toLink(value, folder) {
  if (typeof value !== "string" || !(folder ? value.trim() : /^https?:[/]{2}/i.test(value))) return null;
  try {
    const { href, protocol } = new URL(value, folder);
    return /^https?:$/.test(protocol) ? href : null; // not javascript:, data: and the like
  } catch {
    return null;
  }
}

// Return an element with a text, a link if there is an address. It opens in the whole window, also from an iframe.
function link(address, text) {
  return address ? make("a", { href: address, rel: "noopener", target: "_top" }, text) : make("span", {}, text);
}

// Return the names of the metadata that drawSource shows.
function sourceNames({ title }) {
  if (typeof title !== "string" || !title.trim()) return [];
  return corpus.isDocuments ? OF_PASSAGES : ["title", "url"];
}

// Return the headings around a passage and its page, without the title of its document.
function placeOf({ title, headings, page }) {
  const inside = Array.isArray(headings) ? headings.slice(Number(headings[0] === title)) : [];
  return [...inside, ...(page ? [`page ${page}`] : [])].join(" > ");
}

// Return elements with the title, which links to `url`, and the headings; none for a text without a title.
function drawSource(metadata) {
  if (!sourceNames(metadata).length) return [];
  const title = make("h2", { class: "title" }, link(toLink(metadata.url, documents), metadata.title));
  const place = corpus.isDocuments && placeOf(metadata);
  return place ? [title, make("p", { class: "place" }, place)] : [title];
}

// Return the further passages of a document as a list, each in one line.
function drawOthers(passages) {
  return make("ul", { class: "others", "aria-label": "More passages of this document" }, ...passages.map(drawOther));
}

function drawOther({ metadata, snippet }) {
  const place = link(toLink(metadata.url, documents), placeOf(metadata) || metadata.title || "Passage");
  const excerpt = make("span", { class: "excerpt" }, ...markRanges(snippet.text, snippet.highlights));
  return make("li", {}, place, " ", excerpt);
}
