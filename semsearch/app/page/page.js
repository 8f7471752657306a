"use strict";

// The search itself: when it is asked, and what is shown of the reply.

const PAUSE = 150; // milliseconds without a key before a search
const status = byId("status");
const more = byId("more");
const MOST_OFFSET = 10_000; // results that the server skips at most
const MOST_REMOTE = 100; // results that S3 Vectors finds at most
let shown = null; // {request, total, full} of the results: full is the score that fills a bar
let timer = 0; // the timer of a search that waits for the pause, 0 if none does
let searching = Promise.resolve(); // settles when the last search has ended
let running = new AbortController();

function searchSoon(pause = PAUSE) {
  clearTimeout(timer);
  timer = setTimeout(search, pause);
}

// Search for what the page's fields say, or for more results of the request that is shown.
function search({ isMore = false } = {}) {
  clearTimeout(timer);
  timer = 0;
  searching = showAnswer(isMore);
  return searching;
}

async function showAnswer(isMore) {
  running.abort(); // a reply that is still under way is out of date
  running = new AbortController();
  const { signal } = running;
  const request = isMore ? { ...shown.request, offset: hits.children.length, facets: undefined } : readRequest();
  writeAddress();
  showChoices();
  showWithout(request?.without);
  if (!request) {
    showNothing();
    return;
  }
  const body = JSON.stringify(request);
  const begin = performance.now();
  hits.setAttribute("aria-busy", "true");
  try {
    const { content, phases } = await ask("similar", { body, signal });
    if (signal.aborted) return;
    showReply(request, content, phases, performance.now() - begin);
  } catch (error) {
    if (signal.aborted) return;
    showProblem(error.message);
  }
  showCurl(body);
  hits.removeAttribute("aria-busy");
}

function showReply(request, { results, truncated, corrected, facets, total }, phases, roundTrip) {
  const before = request.offset ?? 0;
  if (!before) shown = { request, total, full: fullScore(results, request.mode) };
  const drawn = results.map((result) => drawHit(result, shown.full, { filterBy, like: searchLike }));
  if (before) hits.append(...drawn);
  else hits.replaceChildren(...drawn);
  if (before) (drawn[0] ?? hits.lastElementChild).focus();
  if (facets) drawFacets(facets, total, findCondition, toggleCondition);
  showNumber();
  const next = before + request.num_results;
  const reach = corpus.isRemote ? MOST_REMOTE - request.num_results : MOST_OFFSET;
  more.hidden = results.length < request.num_results || next > reach || next >= shown.total;
  byId("took").textContent = `${roundTrip.toFixed(0)} ms`;
  byId("truncated").hidden = !truncated;
  showCorrections(Object.entries(corrected ?? {}));
  byId("problem").hidden = byId("empty").hidden = true;
  drawPhases(phases, roundTrip);
  const start = startIn(phases);
  if (start) drawStart(start, true);
}

// Show how many results there are, and of how many. A search by meaning finds every text, so its total is left out.
function showNumber() {
  const { total } = shown;
  const { mode, group_by: group, filter } = shown.request;
  const number = hits.children.length;
  const name = `${group ? "document" : "result"}${number === 1 ? "" : "s"}`;
  const isOfAll = total > number && !group && (!mode || mode === "keyword");
  const all = isOfAll ? ` of ${total.toLocaleString("en")}` : "";
  status.textContent = number ? `${number}${all} ${name}` : `No results${filter ? " pass the filters" : ""}`;
}

// Show which words replaced those that no text has.
function showCorrections(corrections) {
  const parts = corrections.map(([word, others]) => `“${others.join("” and “")}” instead of “${word}”`);
  byId("corrected").textContent = `Results for ${parts.join(", ")}.`;
  byId("corrected").hidden = !parts.length;
}

// Show the number of filters, and the text to which the results are similar.
function showChoices() {
  const number = filledConditions().length;
  byId("filters-toggle").textContent = number ? `Filters (${number})` : "Filters";
  byId("modes").hidden = !hasModes() || Boolean(like);
  byId("reranks").hidden = !corpus.hasReranker;
  byId("like").hidden = !like;
  byId("like-label").textContent = like?.label ?? "";
}

// Show the words that are left out. A click on one searches for what was typed.
function showWithout(words = []) {
  const chips = words.map((word) => {
    const click = () => {
      literal.add(word);
      query.focus();
      search();
    };
    return make("button", { type: "button", click }, `without “${word}” ×`);
  });
  byId("without").replaceChildren(...chips);
  byId("without").hidden = !chips.length;
}

// Move the focus from the field to the first result. The results of an older text are replaced first.
async function focusFirst() {
  const text = query.value;
  if (timer) search();
  await searching;
  if (query.value === text && document.activeElement === query) moveFocus(1, query);
}

function searchLike({ id, metadata, snippet }) {
  like = { id, label: [metadata.title, snippet.text].filter((part) => typeof part === "string").join(": ") };
  query.value = "";
  writeAddress({ isNew: true });
  query.focus();
  scrollTo(0, 0);
  search();
}

function stopLike() {
  like = null;
  query.focus();
  search();
}

function toggleCondition(condition) {
  const row = findCondition(condition);
  if (row) row.remove();
  else addCondition(condition);
  search();
}

function showNothing() {
  hits.removeAttribute("aria-busy");
  hits.replaceChildren();
  more.hidden = true;
  status.textContent = byId("took").textContent = "";
  byId("problem").hidden = byId("phases").hidden = byId("curl").hidden = true;
  byId("truncated").hidden = byId("corrected").hidden = true;
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
  return (
    condition &&
    (() => {
      addCondition(condition);
      showFilters(true);
      search();
    })
  );
}

function showFilters(isShown) {
  byId("filters").hidden = !isShown;
  byId("filters-toggle").setAttribute("aria-expanded", String(isShown));
}

const quote = (text) => `'${text.replaceAll("'", "'\\''")}'`; // for a shell

function showCurl(body) {
  if (!isServer) return;
  const authorization = key ? ' -H "authorization: Bearer $API_KEY"' : "";
  byId("curl").querySelector("code").textContent =
    `curl -s ${quote(`${base}similar`)} -H 'content-type: application/json'${authorization} -d ${quote(body)}`;
  byId("curl-key").hidden = !key;
  byId("curl").hidden = false;
}

// Offer to order the results by the columns that have an order.
function offerSorts() {
  const options = corpus.sorts.flatMap((name) => {
    const [most, least] = corpus.columns.get(name) === "date" ? ["newest", "oldest"] : ["highest", "lowest"];
    return [
      make("option", { value: `desc ${name}` }, `${name}, ${most} first`),
      make("option", { value: `asc ${name}` }, `${name}, ${least} first`),
    ];
  });
  byId("sort").replaceChildren(byId("sort").options[0], ...options);
  byId("sort").hidden = !options.length;
}

// Learn what the bundle has, then search for what the address says.
async function begin() {
  const start = startInNavigation();
  if (start) drawStart(start, true);
  try {
    const { content, phases } = await ask("info");
    const { index, model, rerank, has_model: hasModel } = content;
    readCorpus(index, rerank, hasModel);
    if (!corpus.hasModel) query.placeholder = "Words that the texts have";
    if (index.title) document.title = document.querySelector("h1").textContent = index.title;
    byId("corpus").textContent = `${index.rows.toLocaleString("en")} texts of ${index.corpus}, ${model.name}`;
    byId("filters-toggle").hidden = !corpus.columns.size;
    offerSorts();
    drawStart(content.cold_start_milliseconds, Boolean(startIn(phases)));
    byId("problem").hidden = true;
  } catch (error) {
    showProblem(error.message);
    return;
  }
  const typed = query.value; // while the page loaded
  readAddress();
  query.value ||= typed;
  search();
}

query.addEventListener("input", () => {
  like = null;
  searchSoon();
});
for (const id of ["count", "sort", "modes", "rerank", "conditions"]) byId(id).addEventListener("change", search);
more.addEventListener("click", () => search({ isMore: true }));
byId("like-stop").addEventListener("click", stopLike);
conditions.addEventListener("input", () => searchSoon());
byId("add-condition").addEventListener("click", () => addCondition().querySelector(".column").focus());
byId("filters-toggle").addEventListener("click", () => {
  showFilters(byId("filters").hidden);
  if (!byId("filters").hidden && corpus.facets.length) search(); // for the counts
});
addEventListener("popstate", () => {
  readAddress();
  search();
});
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
  else if (event.key === "ArrowDown" && target === query) focusFirst();
  else if (event.key === "ArrowDown" && hit) moveFocus(1, query);
  else if (event.key === "ArrowUp" && hit) moveFocus(-1, query);
  else if (event.key === "Enter" && target === hit) hit.querySelector(".more")?.click();
  else if (event.key === "Escape" && (hit || target === query)) {
    query.value = "";
    stopLike();
  } else return;
  event.preventDefault();
});

begin();
