// What the box offers besides results: recent searches and links of the owner before typing, and other ways to search.

import { icon } from "./cards.js";
import { make } from "./elements.js";
import { fill } from "./texts.js";

// Return an option that does something else than opening a result.
export function drawChoice(click, children, part = "choice") {
  return make("div", { part, role: "option", "aria-selected": "false", click }, ...children);
}

// Return the lists to start with. `search` takes a recent search, `forget` removes it.
export function drawStart(recent, links, texts, { search, forget }) {
  const searches = recent.map((text) => {
    const label = fill(texts.forget, text);
    const button = { part: "forget", role: "option", "aria-label": label, click: () => forget(text) };
    const choice = drawChoice(() => search(text), [icon("recent"), text]);
    choice.dataset.recent = text;
    return make("div", { part: "row", role: "presentation" }, choice, make("span", button, icon("close")));
  });
  const pages = links.map(({ href, textContent }) => {
    const option = { part: "choice", role: "option", tabindex: "-1", "aria-selected": "false", href };
    return make("a", option, icon("page"), textContent);
  });
  return [...drawList(texts.recent, searches), ...drawList(texts.pages, pages)];
}

function drawList(label, items) {
  const heading = make("p", { part: "label", role: "presentation" }, label);
  return items.length ? [make("div", { part: "group", role: "group", "aria-label": label }, heading, ...items)] : [];
}
