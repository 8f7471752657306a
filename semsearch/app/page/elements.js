"use strict";

export const byId = (id) => document.getElementById(id);

// Return a new element. Texts of others become text nodes: nothing on this page is ever parsed as HTML.
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

// Return an element for the eye alone: its length says what a number beside it says too.
function bar(className, share, offset = 0) {
  const element = make("span", { class: className, "aria-hidden": "true" });
  element.style.width = `${(100 * share).toFixed(2)}%`;
  if (offset) element.style.marginLeft = `${(100 * offset).toFixed(2)}%`;
  return element;
}

// Return a small square in the colour of a bar, for the eye alone.
const swatch = (className) => make("span", { class: `swatch ${className}`, "aria-hidden": "true" });
