// The dialog of <semantic-search>: a field, and the results below it, grouped by document.

import { make } from "./elements.js";
import { excerptOf, placeOf, toLink } from "./sources.js";
import { fill, megabytes } from "./texts.js";

const PAUSE = 100; // milliseconds without a key before a search
const folder = new URL("../../../", import.meta.url).href; // where relative links begin: around the site's folder

// Return whether the visitor is spared the megabytes of the search by meaning until he asks for it.
const isSpared = ({ saveData, effectiveType } = {}) => saveData || (effectiveType ?? "4g") !== "4g";

// Make the dialog of an element. Returns the function that shows it; it takes the function that opens the search.
export function makeBox(element) {
  const { texts } = element;
  const read = (name, value) => element.getAttribute(name) ?? value;
  const placeholder = read("placeholder", texts.search);
  const field = { role: "combobox", "aria-controls": "hits", "aria-expanded": "false", "aria-autocomplete": "list" };
  const typing = { autocomplete: "off", autocapitalize: "off", spellcheck: "false", enterkeyhint: "search" };
  const listeners = { input: () => searchSoon(), keydown: (event) => press(event) };
  const input = make("input", {
    part: "input",
    "aria-label": placeholder,
    placeholder,
    ...field,
    ...typing,
    ...listeners,
  });
  const close = make(
    "button",
    { part: "close", type: "button", "aria-label": texts.close, click: () => dialog.close() },
    "Esc",
  );
  const status = make("p", { part: "status", role: "status" }, texts.help);
  const note = make("p", { part: "note", hidden: true });
  const ask = make("button", { part: "load", type: "button", hidden: true, click: () => load() });
  const hits = make("div", { part: "hits", id: "hits", role: "listbox", "aria-label": texts.results, hidden: true });
  const dialog = make("dialog", { part: "dialog", "aria-label": texts.search });
  dialog.append(make("div", { part: "field" }, input, close), status, note, ask, hits);
  dialog.addEventListener("click", ({ target }) => target === dialog && dialog.close()); // beside the box
  element.shadowRoot.append(dialog);

  let source = null; // the search, once it is opened
  let isGrouped = true; // whether the texts are passages of documents
  let isAsked = false; // whether the search by meaning has been asked for
  let timer = 0;
  let running = new AbortController();
  const options = () => [...hits.querySelectorAll("[role=option]")];
  const active = () => hits.querySelector("[aria-selected=true]");

  function show(state) {
    note.textContent = fill(texts.loading, megabytes(state.loaded), megabytes(state.total));
    ask.textContent = fill(texts.load, megabytes(state.total - state.loaded));
    note.hidden = !isAsked || source.hasMeaning();
    ask.hidden = isAsked || source.hasMeaning() || !input.value || read("mode") === "keyword";
  }

  async function load() {
    isAsked = true;
    show(source.state);
    await source.load().then(() => active() || search(), fail);
    show(source.state);
  }

  function fail({ message }) {
    status.textContent = message;
    isAsked = false;
  }

  function searchSoon() {
    clearTimeout(timer);
    timer = setTimeout(search, PAUSE);
    if (!source) return;
    if (!isAsked && !source.hasMeaning() && read("mode") !== "keyword" && !isSpared(navigator.connection)) load();
    else show(source.state);
  }

  async function search() {
    running.abort();
    running = new AbortController();
    const { signal } = running;
    const text = input.value.trim();
    if (!text || !source) return draw([], texts.help);
    const mode = read("mode");
    const body = { num_results: Number(read("limit", 8)), highlights: true, signal };
    if (mode && (mode === "keyword" || source.hasMeaning())) body.mode = mode;
    if (mode !== "semantic") body.prefix = true;
    if (read("filter")) body.filter = JSON.parse(read("filter"));
    try {
      const reply = await find(text, body);
      if (signal.aborted) return;
      const { length } = reply.results;
      draw(reply.results, length ? fill(texts.found, length) : texts.nothing);
      element.dispatchEvent(new CustomEvent("search", { detail: { text, ...reply }, bubbles: true, composed: true }));
    } catch (error) {
      if (!signal.aborted) draw([], error.message);
    }
  }

  // Search for documents, and for texts if the corpus is a table.
  async function find(text, body) {
    if (!isGrouped) return source.search(text, body);
    return source.search(text, { ...body, group_by: "path" }).catch((error) => {
      if (!/\bpath\b/.test(error.message)) throw error;
      isGrouped = false;
      return find(text, body);
    });
  }

  function draw(results, said) {
    status.textContent = said;
    hits.replaceChildren(...results.map(drawGroup));
    options().forEach((hit, i) => (hit.id = `hit-${i}`));
    hits.hidden = !results.length;
    input.ariaExpanded = String(!hits.hidden);
    activate(null);
  }

  function drawGroup(result, i) {
    const title = make(
      "p",
      { part: "title", id: `title-${i}`, role: "presentation" },
      result.metadata?.title ?? result.id,
    );
    const passages = [result, ...(result.other_passages ?? [])];
    return make("div", { part: "group", role: "group", "aria-labelledby": title.id }, title, ...passages.map(drawHit));
  }

  function drawHit(result) {
    const { metadata = {}, snippet } = result;
    const href = toLink(metadata.url, folder);
    const click = (event) => choose(event, { result, url: href });
    const option = { part: "hit", role: "option", tabindex: "-1", "aria-selected": "false", href, click };
    const place = make("span", { part: "place" }, placeOf(metadata, texts.page));
    return make("a", { ...option, target: read("target", null) }, place, excerptOf(snippet));
  }

  function choose(event, detail) {
    const isOurs = element.dispatchEvent(
      new CustomEvent("select", { detail, bubbles: true, composed: true, cancelable: true }),
    );
    if (!isOurs) event.preventDefault();
    if (!event.ctrlKey && !event.metaKey) dialog.close();
  }

  function activate(option) {
    active()?.setAttribute("aria-selected", "false");
    option?.setAttribute("aria-selected", "true");
    option?.scrollIntoView({ block: "nearest" });
    input.setAttribute("aria-activedescendant", option?.id ?? "");
  }

  function press(event) {
    const all = options();
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.isComposing || !all.length || !(step || event.key === "Enter")) return;
    event.preventDefault();
    const place = all.indexOf(active());
    if (step) activate(all.at((place + step + (place < 0 && step < 0 ? 1 : 0)) % all.length));
    else
      (active() ?? all[0]).dispatchEvent(
        new MouseEvent("click", { bubbles: true, cancelable: true, ctrlKey: event.ctrlKey, metaKey: event.metaKey }),
      );
  }

  return async (open) => {
    if (!dialog.open) dialog.showModal();
    input.select();
    try {
      source = await open();
      source.watch(show);
      if (input.value) searchSoon();
    } catch (error) {
      fail(error);
    }
  };
}
