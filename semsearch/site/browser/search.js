// The element <semantic-search>, a button that opens the search box, and `open`, the same search without a box.

import { texts } from "./texts.js";
export { texts };

const code = new URL(".", import.meta.url);
const home = new URL("../../", code);
const USED = `semantic-search ${home.pathname}`; // sessionStorage key of the part that the visitor last used
const SCOPES = ["version", "language"]; // columns whose value the box takes from the page that it stands on
let site; // promise of the search in the files of this folder; a page opens it once

// Store the part (keyword or semantic) if one is named, and return the stored one, so that the next page can load it
// early. Return a false value if the browser caches no files.
function used(part) {
  try {
    if (part) sessionStorage.setItem(USED, part);
    return "caches" in globalThis && sessionStorage.getItem(USED);
  } catch {
    return null; // the browser blocks sessionStorage: no page loads a part early
  }
}

async function openSite() {
  const { connect } = await import("./client.js");
  const watching = new Set();
  const { ask, state } = connect(code, () => watching.forEach((watch) => watch(state)));
  const load = async () => {
    used("semantic");
    await ask("semantic");
  };
  if (used() === "semantic") load();
  else used("keyword");
  await ask("keyword");
  const send = (body, signal) => ask("similar", { body, signal });
  async function about() {
    const { scopes, index } = (await ask("info")).content;
    return { values: scopes, floor: index.floor };
  }
  return { send, load, state, about, watch: (call) => watching.add(call) };
}

async function openApi(base, key) {
  const { fetchRoute } = await import("./api.js");
  const send = (body, signal) => fetchRoute(base, key, "similar", { body, signal });
  // Return the versions and languages of the corpus, from its facets, and its floor.
  async function about() {
    const { columns, floor = {} } = (await fetchRoute(base, key, "info")).content.index;
    const facets = SCOPES.filter((name) => columns[name] === "string");
    if (!facets.length) return { values: {}, floor };
    const { content } = await send(JSON.stringify({ facets, num_results: 1, include: [] }));
    const values = facets.map((name) => [name, content.facets[name].map(({ value }) => value)]);
    return { values: Object.fromEntries(values), floor };
  }
  return { send, load: async () => {}, state: { hasMeaning: true, loaded: 1, total: 1 }, about, watch: () => {} };
}

/**
 * Open the search in the files of this folder, or in a function or a server at another address.
 * `search(text, options)` resolves to what POST /similar returns. In files, a search without a mode is a keyword search
 * until `load()` has loaded the search by meaning.
 */
export async function open(address = home, { key = "" } = {}) {
  const base = new URL(address, location.href).href.replace(/\/?$/, "/");
  const isHere = base === home.href;
  if (isHere && key) throw new Error("key: the files of a site are public; set api too, or remove the key.");
  if (isHere) (site ??= openSite()).catch(() => (site = undefined)); // after an error, the next call tries again
  const opened = await (isHere ? site : openApi(base, key));
  const search = async (text, { signal, ...options } = {}) =>
    (await opened.send(JSON.stringify({ text, num_results: 10, ...options }), signal)).content;
  return { ...opened, search };
}

// The properties of the element; each has the text of the attribute of its name, `apiKey` that of `api-key`.
const PROPERTIES = [
  ...["keys", "placeholder", "mode", "limit", "filter", "boost", "recent", "target", "api", "apiKey", "key"],
];

// Node.js, which makes the pages of some sites, has no HTMLElement.
class SemanticSearch extends (globalThis.HTMLElement ?? Object) {
  static observedAttributes = ["keys", "placeholder", "lang"]; // what the button shows

  #box = null; // promise of the function that shows the dialog

  connectedCallback() {
    PROPERTIES.forEach((name) => this.#adopt(name));
    addEventListener("keydown", this, true); // in the capture phase, before the page's own search
    if (!this.shadowRoot) this.#draw();
    if (used() && !this.api) open();
  }

  disconnectedCallback() {
    removeEventListener("keydown", this, true);
    this.shadowRoot.querySelector("dialog")?.close(); // an open dialog would come back without its backdrop
  }

  attributeChangedCallback() {
    if (this.shadowRoot) this.#label();
  }

  // Set a property again that was set before the element was defined, and hides the one of the class.
  #adopt(name) {
    if (!Object.hasOwn(this, name)) return;
    const value = this[name];
    delete this[name];
    this[name] = value;
  }

  #texts() {
    const locale = (this.closest("[lang]") ?? this).lang || "en";
    return { ...texts.en, ...texts[locale.split("-")[0]], locale };
  }

  #keys() {
    return (this.getAttribute("keys") ?? "ctrl+k /").toLowerCase().split(/\s+/).filter(Boolean);
  }

  #draw() {
    const [style, button, label, key] = ["link", "button", "span", "kbd"].map((tag) => document.createElement(tag));
    Object.assign(style, { rel: "stylesheet", href: new URL("search.css", code) });
    Object.assign(button, { type: "button", part: "button", ariaHasPopup: "dialog", onclick: () => this.open() });
    key.ariaHidden = "true";
    button.append(label, key);
    this.attachShadow({ mode: "open" }).append(style, button);
    this.#label();
  }

  #label() {
    this.shadowRoot.querySelector("button > span").textContent = this.placeholder || this.#texts().search;
    this.shadowRoot.querySelector("button > kbd").textContent = this.#keys()[0]?.replace("+", " ") ?? "";
  }

  handleEvent(event) {
    const isTyped = event.composedPath()[0].matches?.("input, textarea, select, [contenteditable]");
    const isHeld = event.ctrlKey || event.metaKey;
    const isMeant = (name) =>
      event.key?.toLowerCase() === name.split("+").at(-1) && name.includes("ctrl+") === isHeld && (isHeld || !isTyped);
    if (event.defaultPrevented || event.altKey || !this.#keys().some(isMeant) || !this.checkVisibility()) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    this.open();
  }

  async open() {
    this.#box ??= import("./box.js").then(({ makeBox }) => makeBox(this, () => this.#texts()));
    (await this.#box)(() => open(this.api || home, { key: this.apiKey || this.key }));
  }
}

// React and Vue set a property instead of an attribute if the element has one of that name. Without a setter React throws.
for (const name of PROPERTIES) {
  const attribute = name.replace(/[A-Z]/, (letter) => `-${letter.toLowerCase()}`);
  Object.defineProperty(SemanticSearch.prototype, name, {
    get() {
      return this.getAttribute(attribute) ?? "";
    },
    set(value) {
      if (value === undefined || value === null || value === false) this.removeAttribute(attribute);
      else this.setAttribute(attribute, typeof value === "object" ? JSON.stringify(value) : value);
    },
  });
}

if (globalThis.customElements && !customElements.get("semantic-search")) {
  customElements.define("semantic-search", SemanticSearch);
}
