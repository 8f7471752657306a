// The dialog of <semantic-search>: a field, and the results below it, grouped by document.

import { make } from "./elements.js";
import { excerptOf, placeOf, toLink } from "./sources.js";
import { fill, megabytes } from "./texts.js";

const PAUSE = 100; // milliseconds without input before a search starts
const folder = new URL("../../../", import.meta.url).href; // base of relative links: the parent of the site's folder

// Return whether the connection saves data or is slow, so that only a click on the button loads the search by meaning.
const isSpared = ({ saveData, effectiveType } = {}) => saveData || (effectiveType ?? "4g") !== "4g";

// Make the dialog of an element. `texts` returns the texts in the element's language. Return the function that shows the
// dialog, and takes a function that opens the search.
export function makeBox(element, texts) {
  const read = (name, value) => element.getAttribute(name) || value;
  const field = { part: "input", role: "combobox", "aria-controls": "hits", "aria-expanded": "false" };
  const typing = { autocomplete: "off", autocapitalize: "off", spellcheck: "false", enterkeyhint: "search" };
  const listeners = { input: () => searchSoon(), keydown: (event) => press(event) };
  const input = make("input", { ...field, ...typing, ...listeners });
  const close = make("button", { part: "close", type: "button", click: () => dialog.close() });
  const status = make("p", { part: "status", role: "status" });
  const ask = make("button", { part: "load", type: "button", hidden: true, click: () => load() });
  const hits = make("div", { part: "hits", id: "hits", role: "listbox", hidden: true });
  const dialog = make("dialog", { part: "dialog" });
  dialog.append(make("div", { part: "field" }, input, close), status, ask, hits);
  dialog.addEventListener("click", ({ target }) => target === dialog && dialog.close()); // a click beside the box
  dialog.addEventListener("close", stop);
  element.shadowRoot.append(dialog);

  let source = null; // the search, null until it is open
  let isGrouped = true; // whether results are grouped by document; false if the corpus is a table
  let loading = ""; // state of loading the search by meaning: "", "now" or "failed"
  let isEarly = false; // whether the last search came before the search by meaning was loaded
  let timer = 0;
  let running = new AbortController();
  let asked = ""; // the question of the last search
  let answered = ""; // the question that the results answer
  let searching = Promise.resolve(); // settles when the last search has ended
  const options = () => [...hits.querySelectorAll("[role=option]")];
  const active = () => hits.querySelector("[aria-selected=true]");
  // What a search depends on: the text and the attributes of the element.
  const question = () => JSON.stringify([input.value.trim(), ...Array.from(element.attributes, ({ value }) => value)]);

  function tell(name, detail) {
    return element.dispatchEvent(new CustomEvent(name, { detail, bubbles: true, composed: true, cancelable: true }));
  }

  function show({ loaded, total }) {
    ask.disabled = loading === "now";
    ask.textContent = fill(ask.disabled ? texts().loading : texts().load, megabytes(loaded), megabytes(total));
    ask.hidden = source.state.hasMeaning || !input.value || read("mode") === "keyword";
  }

  async function load() {
    loading = "now";
    show(source.state);
    await source.load().catch(fail);
    show(source.state);
  }

  // Show the bytes that have arrived; search again when meaning can be searched, which another page may have requested.
  function watch(state) {
    show(state);
    if (isEarly && state.hasMeaning && !active()) search();
  }

  function fail({ message }) {
    loading = "failed";
    status.textContent = message;
  }

  function searchSoon() {
    clearTimeout(timer);
    timer = setTimeout(search, PAUSE);
    if (!source) return;
    show(source.state);
    if (!loading && !ask.hidden && !isSpared(navigator.connection)) load();
  }

  function search() {
    clearTimeout(timer);
    running.abort();
    running = new AbortController();
    asked = question();
    searching = showAnswer(asked, input.value.trim(), running.signal);
  }

  // Stop a search that has not ended, so that an Enter that waits for it opens nothing.
  function stop() {
    clearTimeout(timer);
    running.abort();
    asked = answered;
  }

  async function showAnswer(about, text, signal) {
    if (!text || !source) return draw(about, [], texts().help);
    isEarly = !source.state.hasMeaning;
    try {
      const reply = await find(text, { ...readOptions(), signal });
      if (signal.aborted) return;
      const { length } = reply.results;
      draw(about, reply.results, length ? fill(texts().found, length) : texts().nothing);
      tell("search", { text, ...reply });
    } catch (error) {
      if (!signal.aborted) draw(about, [], error.message);
    }
  }

  // Return the options of a search that the attributes of the element state.
  function readOptions() {
    const [mode, filter] = [read("mode"), read("filter")];
    const options = { num_results: Number(read("limit", 8)), highlights: true };
    if (mode && (mode === "keyword" || source.state.hasMeaning)) options.mode = mode;
    if (mode !== "semantic") options.prefix = true;
    try {
      if (filter) options.filter = JSON.parse(filter);
    } catch {
      throw new Error(`filter: expected JSON, such as {"path": "guide.html"}, found ${filter}; use JSON.stringify`);
    }
    return options;
  }

  // Search, and group the results by document, unless the corpus is a table, which has no column path.
  async function find(text, body) {
    if (!isGrouped) return source.search(text, body);
    return source.search(text, { ...body, group_by: "path" }).catch((error) => {
      if (!/\bpath\b/.test(error.message)) throw error;
      isGrouped = false;
      return find(text, body);
    });
  }

  function draw(about, results, said) {
    answered = about;
    status.textContent = said;
    hits.replaceChildren(...results.map(drawGroup));
    options().forEach((hit, i) => (hit.id = `hit-${i}`));
    hits.hidden = !results.length;
    input.ariaExpanded = String(!hits.hidden);
    activate(null);
  }

  function drawGroup(result, i) {
    const { id, metadata, other_passages: others = [] } = result;
    const title = make("p", { part: "title", id: `title-${i}`, role: "presentation" }, metadata?.title ?? id);
    const list = [result, ...others].map(drawHit);
    return make("div", { part: "group", role: "group", "aria-labelledby": title.id }, title, ...list);
  }

  function drawHit(result) {
    const { metadata = {}, snippet } = result;
    const href = toLink(metadata.url, folder);
    const click = (event) => choose(event, { result, url: href });
    const option = { part: "hit", role: "option", tabindex: "-1", "aria-selected": "false", href, click };
    const place = make("span", { part: "place" }, placeOf(metadata, texts().page));
    return make("a", { ...option, target: read("target", null) }, place, excerptOf(snippet));
  }

  function choose(event, detail) {
    if (!tell("select", detail)) event.preventDefault();
    if (!event.ctrlKey && !event.metaKey) dialog.close();
  }

  function activate(option) {
    active()?.setAttribute("aria-selected", "false");
    option?.setAttribute("aria-selected", "true");
    option?.scrollIntoView({ block: "nearest" });
    input.setAttribute("aria-activedescendant", option?.id ?? "");
  }

  async function press(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.isComposing || !source || !(step || event.key === "Enter")) return;
    event.preventDefault();
    const about = question();
    await answerTo(about);
    if (!dialog.open || answered !== about || question() !== about) return; // the visitor closed the box or typed on
    const all = options();
    const place = all.indexOf(active());
    if (step) activate(all.at((place + step + (place < 0 && step < 0 ? 1 : 0)) % all.length));
    else (active() ?? all[0])?.click();
  }

  // Wait until the results answer this question of the field. Search at once if the pause has not ended.
  async function answerTo(about) {
    if (asked !== about) search();
    while (answered !== about && asked === about) await searching;
  }

  // Write the texts, which change with the attributes of the element.
  function label() {
    input.placeholder = input.ariaLabel = read("placeholder", texts().search);
    dialog.ariaLabel = texts().search;
    hits.ariaLabel = texts().results;
    close.textContent = texts().close;
  }

  return async (open) => {
    label();
    if (!source) status.textContent = texts().help;
    if (!dialog.open) dialog.showModal();
    input.select();
    try {
      source = await open();
      source.watch(watch);
      if (hits.hidden || answered !== question()) searchSoon();
    } catch (error) {
      fail(error);
    }
  };
}
