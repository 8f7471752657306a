"use strict";

// The search itself: what is asked, when it is asked, and what is shown of the reply.

const PAUSE = 150; // milliseconds without a key before a search
const query = byId("query");
const count = byId("count");
const status = byId("status");
// the address of the routes, also behind a stage or another prefix and without a slash at the end
const base = location.origin + location.pathname.replace(/\/?$/, "/");
let keywords = null; // of the corpus: how words are scored; null if the bundle has none
let key = readKey();
let timer = 0;
let running = new AbortController();

function readKey() {
  try {
    return sessionStorage.getItem("api-key") ?? "";
  } catch {
    return ""; // a browser that keeps nothing for pages: the key is asked for again
  }
}

function keepKey(value) {
  key = value;
  try {
    sessionStorage.setItem("api-key", value);
  } catch {
    // then it lasts until the page is left
  }
}

// Fetch a route. Returns its reply's content and headers; throws an Error with the server's own message.
async function ask(path, options = {}) {
  const headers = { ...options.headers, ...(key && { authorization: `Bearer ${key}` }) };
  let reply;
  try {
    reply = await fetch(base + path, { ...options, headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The server cannot be reached.");
  }
  const content = await reply.json().catch((error) => {
    if (error.name === "AbortError") throw error;
    return null;
  });
  if (reply.status === 401) askForKey();
  if (!reply.ok || content === null) {
    const said = content?.error?.message ?? content?.error ?? content?.message; // the last is API Gateway's
    throw new Error(said ?? `The server answered ${reply.status} without saying why.`);
  }
  return { content, phases: readTiming(reply.headers.get("server-timing")) };
}

function askForKey() {
  byId("key").hidden = false;
  if (document.activeElement !== query || !query.value) byId("key-value").focus();
}

function readRequest() {
  const mode = document.querySelector("input[name=mode]:checked").value;
  const filter = toFilter(readConditions());
  return { text: query.value, num_results: Number(count.value), mode, ...(filter && { filter }) };
}

function searchSoon(pause = PAUSE) {
  clearTimeout(timer);
  timer = setTimeout(search, pause);
}

async function search() {
  clearTimeout(timer);
  running.abort(); // a reply that is still under way is out of date
  running = new AbortController();
  const { signal } = running;
  const request = readRequest();
  writeAddress(request);
  if (!request.text.trim()) {
    showNothing();
    return;
  }
  const body = JSON.stringify(request);
  const begin = performance.now();
  hits.setAttribute("aria-busy", "true");
  try {
    const headers = { "content-type": "application/json" };
    const { content, phases } = await ask("similar", { method: "POST", headers, body, signal });
    if (signal.aborted) return;
    showReply(request, content, phases, performance.now() - begin);
  } catch (error) {
    if (signal.aborted) return;
    showProblem(error.message);
  }
  showCurl(body);
  hits.removeAttribute("aria-busy");
}

function showReply(request, { results, truncated }, phases, roundTrip) {
  const number = `${results.length} ${results.length === 1 ? "result" : "results"}`;
  status.textContent = results.length ? number : `No results${request.filter ? " pass the filters" : ""}`;
  byId("took").textContent = `${roundTrip.toFixed(0)} ms`;
  byId("truncated").hidden = !truncated;
  byId("problem").hidden = byId("empty").hidden = true;
  rememberValues(results);
  drawHits(results, request, keywords, filterBy);
  drawPhases(phases, roundTrip);
  const start = startIn(phases);
  if (start) drawStart(start, true);
}

function showNothing() {
  hits.removeAttribute("aria-busy");
  hits.replaceChildren();
  status.textContent = byId("took").textContent = "";
  byId("problem").hidden = byId("phases").hidden = byId("truncated").hidden = byId("curl").hidden = true;
  byId("empty").hidden = false;
}

function showProblem(message) {
  showNothing();
  byId("empty").hidden = true;
  byId("problem").textContent = message;
  byId("problem").hidden = false;
}

// Return what a click on a value among the metadata does, null if it cannot be filtered by.
function filterBy(column, value) {
  const condition = conditionOf(column, value);
  return condition && (() => {
    addCondition(condition);
    showFilters(true);
    search();
  });
}

function showFilters(isShown) {
  byId("filters").hidden = !isShown;
  byId("filters-toggle").setAttribute("aria-expanded", String(isShown));
  if (isShown && !conditions.children.length) addCondition();
}

const quote = (text) => `'${text.replaceAll("'", "'\\''")}'`; // for a shell

function showCurl(body) {
  const authorization = key ? ' -H "authorization: Bearer $API_KEY"' : "";
  byId("curl").querySelector("code").textContent =
    `curl -s ${quote(`${base}similar`)} -H 'content-type: application/json'${authorization} -d ${quote(body)}`;
  byId("curl-key").hidden = !key;
  byId("curl").hidden = false;
}

// Put the search into the address, so that it can be shared; what is as at the start is left out.
function writeAddress({ text, mode, num_results: number }) {
  const list = readConditions().filter((condition) => toFilter([condition]));
  const state = new URLSearchParams();
  if (text) state.set("q", text);
  if (mode !== "semantic") state.set("mode", mode);
  if (number !== 10) state.set("n", number);
  if (list.length) state.set("filters", JSON.stringify(list));
  const address = state.size ? `?${state}` : "";
  if (address !== location.search) history.replaceState(null, "", location.pathname + address);
  const toggle = byId("filters-toggle");
  toggle.textContent = list.length ? `Filters (${list.length})` : "Filters";
}

function readAddress() {
  const state = new URLSearchParams(location.search);
  if (!query.value) query.value = state.get("q") ?? ""; // what was typed while the page loaded stays
  if ([...count.options].some((option) => option.value === state.get("n"))) count.value = state.get("n");
  if (keywords && ["keyword", "hybrid"].includes(state.get("mode"))) {
    document.querySelector(`input[value=${state.get("mode")}]`).checked = true;
  }
  let list = [];
  try {
    list = JSON.parse(state.get("filters") ?? "[]");
  } catch {
    return; // an address that was cut: without filters
  }
  const isCondition = (one) => Array.isArray(one) && one.length > 1 && one.every((part) => typeof part === "string");
  conditions.replaceChildren(); // begin() runs again when a key is entered
  const rows = Array.isArray(list) ? list.filter(isCondition).map(addCondition) : [];
  if (rows.some(Boolean)) showFilters(true);
}

// Learn what the bundle has, then search for what the address says.
async function begin() {
  const start = startInNavigation();
  if (start) drawStart(start, true);
  try {
    const { content, phases } = await ask("info");
    const { index, model } = content;
    columns = index.columns;
    keywords = index.keywords;
    byId("corpus").textContent = `${index.rows.toLocaleString("en")} texts of ${index.corpus}, ${model.name}`;
    byId("modes").hidden = !keywords;
    byId("filters-toggle").hidden = !Object.keys(columns).length;
    drawStart(content.cold_start_milliseconds, Boolean(startIn(phases)));
    byId("problem").hidden = true;
  } catch (error) {
    showProblem(error.message);
    return;
  }
  readAddress();
  if (query.value) search();
}

query.addEventListener("input", () => searchSoon());
count.addEventListener("change", search);
byId("modes").addEventListener("change", search);
conditions.addEventListener("change", search);
conditions.addEventListener("input", () => searchSoon());
byId("add-condition").addEventListener("click", () => addCondition().querySelector(".column").focus());
byId("filters-toggle").addEventListener("click", () => showFilters(byId("filters").hidden));
byId("search").addEventListener("submit", (event) => {
  event.preventDefault();
  search();
});
byId("key").addEventListener("submit", (event) => {
  event.preventDefault();
  keepKey(byId("key-value").value);
  byId("key").hidden = true;
  query.focus();
  begin();
});
byId("copy").addEventListener("click", async () => {
  const code = byId("curl").querySelector("code");
  getSelection().selectAllChildren(code); // what is left to copy where a page may not write to the clipboard
  try {
    await navigator.clipboard.writeText(code.textContent);
    byId("copy").textContent = "Copied";
  } catch {
    byId("copy").textContent = "Selected";
  }
  setTimeout(() => (byId("copy").textContent = "Copy"), 1500);
});

document.addEventListener("keydown", (event) => {
  if (event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
  const { target } = event;
  const hit = target.closest("li.hit");
  if (event.key === "/" && !target.matches("input, textarea, select")) query.focus();
  else if (event.key === "ArrowDown" && (hit || target === query)) moveFocus(1, query);
  else if (event.key === "ArrowUp" && hit) moveFocus(-1, query);
  else if (event.key === "Enter" && target === hit) toggleHit(hit);
  else if (event.key === "Escape" && (hit || target === query)) {
    query.value = "";
    query.focus();
    search();
  } else return;
  event.preventDefault();
});

begin();
