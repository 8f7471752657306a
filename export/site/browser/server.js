"use strict";

// The page's requests, answered by a worker instead of a server, and what the site has loaded so far.
// It takes the place of function/page/server.js and has those of its names that a page without a server uses.

const documents = new URL("..", location.href).href; // the folder of relative links: the site is in one of its folders
const isServer = false;

/** @type {Map<number, {resolve: (reply: any) => void, reject: (error: Error) => void}>} */
const waiting = new Map();
/** @type {{total: number, [part: string]: any}} */
const state = { total: 1, keyword: false, semantic: false };
// where scripts need a trusted address, these two have one: they are files of the site
const trusted = globalThis.trustedTypes?.createPolicy("site", { createScriptURL: (address) => address });
const trust = (/** @type {string} */ address) => /** @type {any} */ (trusted?.createScriptURL(address) ?? address);
const code = new URL(".", /** @type {HTMLScriptElement} */ (document.currentScript).src);
const worker = new Worker(trust(new URL("worker/worker.js", code).href), { type: "module" });

const meter = make("progress", { "aria-label": "Loading the search by meaning", value: 0, max: 1 });
const note = make("span", {}, "Loading the words…");
const loading = make("p", { id: "loading" }, meter, " ", note);
byId("search").after(loading);
const isKept = "caches" in globalThis && "serviceWorker" in navigator;

/** @param {number} bytes */
const megabytes = (bytes) => (bytes / 1e6).toFixed(1);

// Return the mode that can be searched now: words, until the rest has arrived.
const availableMode = (/** @type {string} */ mode) => (state.semantic || !corpus.keywords ? mode : "keyword");

/**
 * Ask the worker. Throws an Error with its message.
 * @param {string} path
 * @param {{body?: string, signal?: AbortSignal}} options
 * @returns {Promise<{content: any, phases: Record<string, number>}>}
 */
function ask(path, { body, signal } = {}) {
  const id = waiting.size ? Math.max(...waiting.keys()) + 1 : 0;
  return new Promise((resolve, reject) => {
    waiting.set(id, { resolve, reject });
    signal?.addEventListener("abort", () => reject(new DOMException("a later request", "AbortError")));
    worker.postMessage({ id, path, body: body && JSON.parse(body) });
  });
}

worker.addEventListener("message", ({ data }) => {
  if ("id" in data) {
    const { resolve, reject } = /** @type {any} */ (waiting.get(data.id));
    waiting.delete(data.id);
    if (data.error) reject(new Error(data.error));
    else resolve(data);
  } else if (data.total) state.total = data.total;
  else if (data.loaded) drawLoaded(data.loaded);
  else if (data.problem) {
    meter.remove();
    note.textContent = `${state.keyword && !state.semantic ? "Only words are searched: " : ""}${data.problem}`;
    loading.classList.add("problem");
  } else arrive(data.ready);
});

/** @type {Record<string, string>} what the page says when a part has arrived */
const NOTES = {
  offline: "Everything is kept in this browser and works offline.",
  partly: "The search works offline; texts that were not shown yet do not.",
};
const NOT_KEPT = "This address has no HTTPS: the browser keeps nothing of this site, and each visit loads it again.";

/** @param {number} bytes */
function drawLoaded(bytes) {
  meter.value = Math.min(1, bytes / state.total);
  const share = `${megabytes(bytes)} of ${megabytes(state.total)} MB`;
  if (meter.isConnected) note.textContent = `Loading the search by meaning: ${share}`;
}

/** @param {string} part keyword, semantic, and offline or partly */
function arrive(part) {
  state[part] = true;
  loading.dataset.ready = part;
  const others = document.querySelectorAll("input[name=mode]:not([value=keyword])");
  others.forEach((mode) => mode.toggleAttribute("disabled", !state.semantic));
  if (!state.semantic) return;
  meter.remove();
  note.textContent = isKept ? (NOTES[part] ?? "") : NOT_KEPT;
  const isReading = document.activeElement?.closest("#hits");
  if (part === "semantic" && corpus.keywords && query.value && chosenMode() !== "keyword" && !isReading) search();
}

if (isKept) navigator.serviceWorker.register(trust(`service-worker.js?code=${code.pathname.split("/").at(-2)}`));
