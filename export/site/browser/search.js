// <semantic-search>, a button that opens a search box, and `open`, the same search without a box.

import { texts } from "./texts.js";
export { texts };

const code = new URL(".", import.meta.url);
const home = new URL("../../", code);
const USED = `semantic-search ${home.pathname}`; // in the session: the part that the visitor has used on an earlier page
const isMac = /^(Mac|iP)/.test(navigator.platform);

// Read and keep the part. Where the browser keeps nothing for pages, or no files, each page begins by itself.
function used(part) {
  try {
    if (part) sessionStorage.setItem(USED, part);
    return "caches" in globalThis && sessionStorage.getItem(USED);
  } catch {
    return null;
  }
}

let site; // the search in the files of this folder, once for a page

async function openSite() {
  const { connect, hasMeaning } = await import("./client.js");
  const watching = new Set();
  const { ask, state } = connect(code, () => watching.forEach((watch) => watch(state)));
  const load = async () => {
    used("semantic");
    await ask("semantic");
  };
  if (used() === "semantic") load();
  else used("keyword");
  await ask("keyword");
  const search = async (text, { signal, ...options } = {}) => {
    const body = JSON.stringify({ text, num_results: 10, ...options });
    return (await ask("similar", { body, signal })).content;
  };
  return { search, load, state, hasMeaning: () => hasMeaning(state), watch: (call) => watching.add(call) };
}

async function openApi(base, key) {
  const { fetchRoute } = await import("./api.js");
  const search = async (text, { signal, ...options } = {}) =>
    (await fetchRoute(base, key, "similar", { body: JSON.stringify({ text, ...options }), signal })).content;
  return { search, load: async () => {}, state: {}, hasMeaning: () => true, watch: () => {} };
}

/**
 * Open the search in the files of this folder, or the API of a function or server at another address.
 * `search(text, options)` returns what POST /similar returns. Without a mode it searches words, until `load()` has loaded
 * the search by meaning.
 */
export function open(address = home, { key = "" } = {}) {
  const base = new URL(address, location.href).href.replace(/\/?$/, "/");
  if (base !== home.href) return openApi(base, key);
  site ??= openSite();
  site.catch(() => (site = undefined)); // the next time it is tried again
  return site;
}

class SemanticSearch extends HTMLElement {
  connectedCallback() {
    addEventListener("keydown", this, true); // before the keys of the page's own search
    if (!this.shadowRoot) this.draw();
    if (used() && !this.hasAttribute("api")) open();
  }

  disconnectedCallback() {
    removeEventListener("keydown", this, true);
  }

  get texts() {
    const { lang = "" } = this.closest("[lang]") ?? {};
    return { ...texts.en, ...texts[lang.split("-")[0]] };
  }

  get keys() {
    return (this.getAttribute("keys") ?? "ctrl+k /").toLowerCase().split(/\s+/).filter(Boolean);
  }

  draw() {
    const style = Object.assign(document.createElement("link"), {
      rel: "stylesheet",
      href: new URL("search.css", code),
    });
    const button = Object.assign(document.createElement("button"), { type: "button", part: "button" });
    const label = this.getAttribute("placeholder") ?? this.texts.search;
    const [first = ""] = this.keys;
    const shown = first.replace("ctrl+", isMac ? "⌘ " : "Ctrl ").replace(/\S$/, (letter) => letter.toUpperCase());
    const key = Object.assign(document.createElement("kbd"), {
      textContent: shown,
      hidden: !first,
      ariaHidden: "true",
    });
    const name = Object.assign(document.createElement("span"), { textContent: label, part: "label" });
    button.ariaHasPopup = "dialog";
    button.append(name, key);
    button.addEventListener("click", () => this.open());
    this.attachShadow({ mode: "open" }).append(style, button);
  }

  handleEvent(event) {
    const isTyped = event.composedPath()[0].matches?.("input, textarea, select, [contenteditable]");
    const isHeld = event.ctrlKey || event.metaKey;
    const isMeant = (name) =>
      event.key.toLowerCase() === name.split("+").at(-1) && name.includes("ctrl+") === isHeld && (isHeld || !isTyped);
    if (event.defaultPrevented || event.altKey || !this.keys.some(isMeant)) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    this.open();
  }

  async open() {
    this.box ??= import("./box.js").then(({ makeBox }) => makeBox(this));
    (await this.box)(() => open(this.getAttribute("api") ?? home, { key: this.getAttribute("key") ?? "" }));
  }
}

if (!customElements.get("semantic-search")) customElements.define("semantic-search", SemanticSearch);
