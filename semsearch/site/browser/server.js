"use strict";

// The page's requests, answered by a worker instead of a server, and what the site has loaded so far.
// It takes the place of semsearch/app/page/server.js and has those of its names that a page without a server uses.

const documents = new URL("..", location.href).href; // the folder of relative links: the site is in one of its folders
const isServer = false;
const code = new URL(".", /** @type {HTMLScriptElement} */ (document.currentScript).src);
const meter = make("progress", { "aria-label": "Loading the search by meaning", value: 0, max: 1 });
const note = make("span", {}, "Loading the words…");
const loading = make("p", { id: "loading" }, meter, " ", note);
byId("search").after(loading);
const isKept = "caches" in globalThis && "serviceWorker" in navigator;
let isSemantic = false; // whether the search by meaning is there
const connection = Promise.all(["client.js", "texts.js"].map((name) => import(new URL(name, code).href))).then(
  ([{ connect, trust }, words]) => {
    if (isKept) navigator.serviceWorker.register(trust(`service-worker.js?code=${code.pathname.split("/").at(-2)}`));
    return connect(code, (/** @type {State} */ state) => drawState(state, words));
  },
);

// Return the mode that can be searched now: words, until the rest has arrived.
const availableMode = (/** @type {string} */ mode) => (isSemantic || !corpus.keywords ? mode : "keyword");

/** Ask the worker. Throws an Error with its message. @type {import("./client.js").Ask} */
const ask = async (path, options) => (await connection).ask(path, options);

/** @type {Record<string, string>} what the page says when a part has arrived */
const NOTES = {
  offline: "Everything is kept in this browser and works offline.",
  partly: "The search works offline; texts that were not shown yet do not.",
};
const NOT_KEPT = "This address has no HTTPS: the browser keeps nothing of this site, and each visit loads it again.";

/** @typedef {import("./client.js").State} State @type {(state: State, words: any) => void} */
function drawState({ loaded, total, ready, hasMeaning }, { texts, fill, megabytes }) {
  const isNew = hasMeaning && !isSemantic;
  isSemantic = hasMeaning;
  loading.dataset.ready = ready;
  meter.value = Math.min(1, loaded / total);
  document
    .querySelectorAll("input[name=mode]:not([value=keyword])")
    .forEach((mode) => mode.toggleAttribute("disabled", !hasMeaning));
  if (hasMeaning) {
    meter.remove();
    note.textContent = isKept ? (NOTES[ready] ?? "") : NOT_KEPT;
  } else if (loaded && meter.isConnected) {
    note.textContent = fill(texts.en.loading, megabytes(loaded, "en"), megabytes(total, "en"));
  }
  const isReading = document.activeElement?.closest("#hits");
  if (isNew && corpus.keywords && query.value && chosenMode() !== "keyword" && !isReading) search();
}

ask("offline").catch(({ message }) => {
  meter.remove();
  note.textContent = `${loading.dataset.ready === "keyword" ? "Only words are searched: " : ""}${message}`;
  loading.classList.add("problem");
});
