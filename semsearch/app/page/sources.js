"use strict";

import { make } from "./elements.js";
import { markRanges } from "./marks.js";

// Where a text is from: its title, the headings around it, and links to addresses.

// Return the address that a value links to, null if it is not one of http or https. A relative one begins at `folder`.
export function toLink(value, folder) {
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

// Return the headings around a passage and its page, without the title of its document.
export function placeOf({ title, headings, page }, word = "page") {
  const inside = Array.isArray(headings) ? headings.slice(Number(headings[0] === title)) : [];
  return [...inside, ...(page ? [`${word} ${page}`] : [])].join(" > ");
}

// Return the best part of a text, its highlights marked.
export function excerptOf({ text, highlights }) {
  return make("span", { class: "excerpt", part: "excerpt" }, ...markRanges(text, highlights));
}
