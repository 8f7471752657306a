"use strict";

// The list of results: a score with its bar, the text with the query's words marked, the metadata.

const hits = byId("hits");

// Return the score that fills a bar. A cosine is at most 1, and so is a weighted sum; other scores have no limit.
function fullScore(results, mode, keywords) {
  const isBounded = mode === "semantic" || (mode === "hybrid" && keywords?.fusion === "convex");
  return isBounded ? 1 : Math.max(...results.map((result) => result.score));
}

// Draw the results of a request to a corpus with these keywords; onMetadata returns what a click on a value does.
function drawHits(results, request, keywords, onMetadata) {
  const words = queryWords(request.text);
  const full = fullScore(results, request.mode, keywords);
  const weight = keywords?.fusion === "convex" ? keywords.fusion_weight : null;
  hits.replaceChildren(...results.map((result) => drawHit(result, { words, full, weight, onMetadata })));
  for (const hit of hits.children) foldLongText(hit);
}

function drawHit(result, { words, full, weight, onMetadata }) {
  const share = (score) => Math.min(1, Math.max(0, score / full || 0));
  const byMeaning = result.scores && weight !== null ? Math.max(0, weight * result.scores.semantic) : result.score;
  const track = make("span", { class: "track", "aria-hidden": "true" }, bar("fill", share(byMeaning)));
  if (byMeaning < result.score) track.append(bar("fill keyword", share(result.score - byMeaning)));
  const number = result.score.toFixed(Math.abs(result.score) < 10 ? 2 : 1);
  const score = make("p", { class: "score" }, make("span", { class: "unseen" }, "Score "), number, track);
  const text = make("p", { class: "text" }, ...markWords(result.text, words));
  const content = make("div", { class: "content" }, text, drawMetadata(result, onMetadata));
  return make("li", { class: "hit", tabindex: "-1" }, score, content);
}

function drawMetadata(result, onMetadata) {
  const list = make("ul", { class: "metadata" }, make("li", { class: "id", title: `id ${result.id}` }, result.id));
  if (result.scores) {
    const { semantic, keyword } = result.scores;
    list.append(make("li", {}, swatch("fill"), `meaning ${semantic.toFixed(2)}`));
    list.append(make("li", {}, swatch("keyword"), `words ${keyword.toFixed(2)}`));
  }
  for (const [name, value] of Object.entries(result.metadata ?? {})) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one === null || one === "") continue;
      const shown = typeof one === "object" ? JSON.stringify(one) : String(one);
      const label = [make("span", { class: "name" }, `${name} `), shown];
      const filter = onMetadata(name, one);
      const chip = filter && make("button", { type: "button", title: "Filter by this", click: filter }, ...label);
      list.append(chip ? make("li", {}, chip) : make("li", {}, ...label));
    }
  }
  return list;
}

// Give a text of more lines than are shown a button that shows all of it.
function foldLongText(hit) {
  const text = hit.querySelector(".text");
  if (text.scrollHeight <= text.clientHeight + 1) return;
  const button = make(
    "button",
    { type: "button", class: "more", "aria-expanded": "false", click: () => toggleHit(hit) },
    "Show all",
  );
  text.after(button);
}

function toggleHit(hit) {
  const button = hit.querySelector(".more");
  if (!button) return;
  const isOpen = hit.classList.toggle("open");
  button.setAttribute("aria-expanded", String(isOpen));
  button.textContent = isOpen ? "Show less" : "Show all";
}

// Focus the hit that is `step` further; before the first is `above`.
function moveFocus(step, above) {
  const all = [...hits.children];
  const current = all.indexOf(document.activeElement?.closest("li.hit"));
  const next = all[Math.min(current + step, all.length - 1)];
  if (current + step < 0) above.focus();
  else if (next) next.focus();
}
