"use strict";

import { make } from "./elements.js";

// Links to where a text is from.

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

// Return an element with these children, a link if there is an address. It opens in the whole window, also from an iframe.
function link(address, ...children) {
  if (!address) return make("span", {}, ...children);
  return make("a", { href: address, rel: "noopener", target: "_top" }, ...children);
}
