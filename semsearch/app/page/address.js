"use strict";

// The search in the page's address, so that it can be shared, and the browser goes back to it. What is as at the start
// is left out.

const controls = { n: byId("count"), sort: byId("sort") }; // by their names in the address
const isOption = (select, value) => [...select.options].some((option) => option.value === value);

function writeAddress({ isNew = false } = {}) {
  const list = filledConditions();
  const state = new URLSearchParams();
  const mode = chosenMode();
  if (query.value) state.set("q", query.value);
  if (like) state.set("like", like.id);
  if (mode !== defaultMode()) state.set("mode", mode);
  for (const [name, select] of Object.entries(controls)) {
    if (!select.selectedOptions[0].defaultSelected) state.set(name, select.value);
  }
  if (byId("rerank").checked) state.set("rerank", "1");
  if (list.length) state.set("filters", JSON.stringify(list));
  const address = state.size ? `?${state}` : "";
  if (address === location.search) return;
  if (isNew) history.pushState(null, "", location.pathname + address);
  else history.replaceState(null, "", location.pathname + address);
}

function readAddress() {
  const state = new URLSearchParams(location.search);
  query.value = state.get("q") ?? "";
  like = state.get("like") && !corpus.isRemote ? { id: state.get("like"), label: state.get("like") } : null;
  const mode = hasModes() && ["semantic", "keyword", "hybrid"].find((one) => one === state.get("mode"));
  document.querySelector(`input[value=${mode || defaultMode()}]`).checked = true;
  for (const [name, select] of Object.entries(controls)) {
    const usual = [...select.options].find((option) => option.defaultSelected).value;
    select.value = isOption(select, state.get(name)) ? state.get(name) : usual;
  }
  byId("rerank").checked = corpus.hasReranker && state.has("rerank");
  conditions.replaceChildren();
  const rows = readFilters(state.get("filters")).map(addCondition);
  if (rows.some(Boolean)) showFilters(true);
}

// Return the conditions of an address, none if it was cut.
function readFilters(text) {
  const isCondition = (one) => Array.isArray(one) && one.length > 1 && one.every((part) => typeof part === "string");
  try {
    const list = JSON.parse(text ?? "[]");
    return Array.isArray(list) ? list.filter(isCondition) : [];
  } catch {
    return [];
  }
}
