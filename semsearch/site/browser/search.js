// The element <semantic-search>, a button that opens the search box, and `open`, the same search without a box.
// `write_page` puts texts.js before this module, so that the button needs one file, which exports `texts` too.

import { loadTexts, textsFor } from "./texts.js";

const home = new URL(".", import.meta.url);
let code = new URL("code/HASH/", home); // folder of this build's code; of a newer build's, once a file of this one is gone
const USED = `semantic-search ${home.pathname}`; // sessionStorage key of the part that the visitor last used
const SCOPES = ["version", "language"]; // columns whose value the box takes from the page that it stands on
let site; // promise of the search in the files of this folder; a page opens it once

// Run work, which needs files of this build. A deployment can have deleted one; the error then has its address as `lost`.
// In this case, run work again with the build that search.js names now. If it names the same build, the browser's cache
// can hold the reply of a host that did not have the file yet, so it is replaced.
async function withFiles(work) {
  const from = code;
  try {
    return await work();
  } catch (error) {
    if (!error.lost) throw error;
    try {
      if (code === from) await findCode();
      if (code === from) await fetch(error.lost, { cache: "reload" });
    } catch {
      throw error; // the network is off, or the host has no search.js
    }
    return work();
  }
}

// Set the folder of code to the one that search.js names now, past the browser's cache.
async function findCode() {
  const source = await (await fetch(new URL("search.js", home), { cache: "reload" })).text();
  const found = new URL(source.match(/code\/\w{16}\//)[0], home);
  if (found.href !== code.href) code = found;
}

// Return the error for a file that the browser could not load.
function lostFile(lost) {
  const message = `${lost} cannot be loaded. Check the network, or reload the page in some minutes.`;
  return Object.assign(new Error(message), { lost });
}

// Import a module of the code.
async function load(name) {
  const { href } = new URL(name, code);
  return import(href).catch(() => {
    throw lostFile(href);
  });
}

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
  const watching = new Set();
  const state = {}; // the worker sends all of it before its first reply
  let isWanted = used() === "semantic"; // whether to load the search by meaning
  let worker = null; // the connection to the worker

  // Connect to the worker of the code, once. The connection to an older build's worker is closed.
  async function connected() {
    const { connect } = await load("client.js");
    if (worker?.code === code) return worker;
    worker?.close();
    const show = (news) => {
      Object.assign(state, news);
      watching.forEach((watch) => watch(state));
    };
    worker = { code, ...connect(code, show) };
    if (isWanted) worker.ask("semantic").catch(() => {}); // a search that needs it says why it failed
    return worker;
  }

  const ask = (path, options) => withFiles(async () => (await connected()).ask(path, options));
  async function loadMeaning() {
    isWanted = true;
    used("semantic");
    await ask("semantic");
  }
  if (!isWanted) used("keyword");
  await ask("keyword");
  const send = (body, signal) => ask("similar", { body, signal });
  async function about() {
    const { scopes, index } = (await ask("info")).content;
    return { values: scopes, floor: index.floor, index };
  }
  return { send, load: loadMeaning, state, about, watch: (call) => watching.add(call) };
}

async function openApi(base, key) {
  const { fetchRoute } = await withFiles(() => load("api.js"));
  const send = (body, signal) => fetchRoute(base, key, "similar", { body, signal });
  // Return the versions and languages of the corpus, from its facets, and its floor.
  async function about() {
    const { index } = (await fetchRoute(base, key, "info")).content;
    const { columns, floor = {} } = index;
    const facets = SCOPES.filter((name) => columns[name] === "string");
    if (!facets.length) return { values: {}, floor, index };
    const { content } = await send(JSON.stringify({ facets, num_results: 1, include: [] }));
    const values = facets.map((name) => [name, content.facets[name].map(({ value }) => value)]);
    return { values: Object.fromEntries(values), floor, index };
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
  ...["keys", "placeholder", "mode", "limit", "filter", "boost", "kindBoost", "versions", "recent", "marks"],
  ...["target", "src", "api", "apiKey", "key"],
];

// Node.js, which makes the pages of some sites, has no HTMLElement.
class SemanticSearch extends (globalThis.HTMLElement ?? Object) {
  static observedAttributes = ["keys", "placeholder", "lang"]; // what the button shows

  #box = null; // promise of the function that shows the dialog
  #link = null; // link to the style, once that is loaded

  connectedCallback() {
    PROPERTIES.forEach((name) => this.#adopt(name));
    addEventListener("keydown", this, true); // in the capture phase, before the page's own search
    if (!this.shadowRoot) this.#draw();
    if (used() && !this.api && !this.src) open().catch(() => {}); // the box tries again, and says why it failed
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

  #locale() {
    return (this.closest("[lang]") ?? this).lang || document.documentElement.getAttribute("xml:lang") || "en";
  }

  #keys() {
    return (this.getAttribute("keys") ?? "ctrl+k /").toLowerCase().split(/\s+/).filter(Boolean);
  }

  #draw() {
    const [button, label, key] = ["button", "span", "kbd"].map((tag) => document.createElement(tag));
    Object.assign(button, { type: "button", part: "button", ariaHasPopup: "dialog", onclick: () => this.open() });
    key.ariaHidden = "true";
    button.append(label, key);
    this.attachShadow({ mode: "open" }).append(button);
    this.#style();
    this.#label();
  }

  // Load the style of the code, unless it is there. A link whose file is missing does not try again, so each is new.
  #style() {
    const loadStyle = (resolve, reject) => {
      const { href } = new URL("search.css", code);
      if (this.#link?.href === href) return resolve();
      const link = Object.assign(document.createElement("link"), { rel: "stylesheet", href });
      link.onload = () => {
        this.#link?.remove();
        this.#link = link;
        resolve();
      };
      link.onerror = () => {
        link.remove();
        reject(lostFile(href));
      };
      this.shadowRoot.prepend(link);
    };
    withFiles(() => new Promise(loadStyle)).catch(() => {}); // the button and the box work without it
  }

  #label() {
    this.shadowRoot.querySelector("button > span").textContent = this.placeholder || textsFor(this.#locale()).search;
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
    const translated = loadTexts(this.#locale(), (name) => withFiles(() => load(name)));
    this.#box ??= withFiles(() => load("box.js")).then(({ makeBox }) => makeBox(this, () => textsFor(this.#locale())));
    try {
      const show = await this.#box;
      await translated;
      this.#style(); // that of the code, which can be newer than the button's
      show(() => (this.src ? this.#openSeveral() : open(this.api || home, { key: this.apiKey || this.key })));
    } catch (error) {
      this.#box = null; // the next click tries again
      this.#say(error.message);
    }
  }

  async #openSeveral() {
    if (this.api) throw new Error("src: names the files of sites, api a function or a server; remove one of the two.");
    const { openSeveral } = await withFiles(() => load("several.js"));
    return openSeveral(this.src.split(/\s+/).filter(Boolean));
  }

  // Show why the box could not be loaded, in a dialog that needs no code but this.
  #say(message) {
    const [dialog, status, close] = ["dialog", "p", "button"].map((tag) => document.createElement(tag));
    Object.assign(status, { part: "status", role: "alert", textContent: message });
    Object.assign(close, { part: "close", type: "button", textContent: textsFor(this.#locale()).close });
    Object.assign(dialog, {
      part: "dialog",
      ariaLabel: textsFor(this.#locale()).search,
      onclose: () => dialog.remove(),
    });
    close.onclick = () => dialog.close();
    dialog.append(status, close);
    this.shadowRoot.append(dialog);
    dialog.showModal();
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
