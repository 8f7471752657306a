"use strict";

// The list of results: a score with its bar, the source, the best part of the text, the metadata.

const hits = byId("hits");
const REST = /[^\s*_`~#>|:=()[\]-]/u; // in what is left out of a text, unless it is Markdown alone
// the parts of a score that are shown: name in the reply, label, color
const PARTS = [
  ["semantic", "meaning", "fill"],
  ["keyword", "words", "keyword"],
  ["rerank", "rerank", "rerank"],
];

const isReranked = ({ scores }) => scores?.rerank !== undefined;

// Return the score that fills a bar. A cosine is at most 1, and so is a weighted sum; other scores have no limit.
function fullScore(results, mode) {
  return mode !== "keyword" || results.some(isReranked) ? 1 : Math.max(...results.map((result) => result.score));
}

// Return the element of a result, whose bar is filled by the score `full`. `actions` has what its buttons do:
// filterBy(column, value) returns the function for a click on a value, like(result) searches for similar texts.
function drawHit(result, full, actions) {
  const { score, other_passages: others = [] } = result;
  const content = make("div", { class: "content" }, ...drawSource(result), ...drawText(result));
  content.append(drawMetadata(result, actions));
  if (others.length) content.append(drawOthers(others));
  return make("li", { class: "hit", tabindex: "-1" }, ...(score === null ? [] : [drawScore(result, full)]), content);
}

// Return the names of the metadata that drawSource shows.
function sourceNames({ title }) {
  if (typeof title !== "string" || !title.trim()) return [];
  return corpus.isDocuments ? OF_PASSAGES : ["title", "url"];
}

// Return the way to a section, its heading, which links to `url`, its signature, and the other places that have it; for
// a text that is no passage the title, if it has one.
function drawSource({ metadata = {}, also_in: others = [] }) {
  if (!sourceNames(metadata).length) return [];
  const address = toLink(metadata.url, documents);
  const section = sectionOf(corpus.isDocuments ? metadata : { title: metadata.title });
  const { kind, heading, signature } = section;
  const way = kind === "page" ? [] : [metadata.title, ...section.way];
  const title = make("h2", { class: "title" }, icon(kind), link(address, ...headingOf(heading)));
  return [
    ...(way.length ? [make("p", { class: "way" }, way.join(" › "))] : []),
    title,
    ...(signature ? [make("p", { class: "signature" }, signature)] : []),
    ...(others.length ? [make("p", { class: "also" }, `also in ${namesOf(others, metadata)}`)] : []),
  ];
}

// Return the further sections of a document as cards.
function drawOthers(sections) {
  const cards = sections.map((result) => {
    const { metadata } = result;
    const children = drawCard(result, sectionOf(metadata), "also in {}");
    return make("li", {}, link(toLink(metadata.url, documents), ...children));
  });
  return make("ul", { class: "others", "aria-label": "More sections of this document" }, ...cards);
}

function drawScore(result, full) {
  const { score, scores } = result;
  const share = (part) => Math.min(1, Math.max(0, part / full || 0));
  const isSum = scores?.keyword !== undefined && scores.semantic !== undefined;
  const byMeaning = isSum && !isReranked(result) ? Math.max(0, corpus.keywords.fusion_weight * scores.semantic) : score;
  const track = make("span", { class: "track", "aria-hidden": "true" }, bar("fill", share(byMeaning)));
  if (byMeaning < score) track.append(bar("fill keyword", share(score - byMeaning)));
  const number = score.toFixed(Math.abs(score) < 10 ? 2 : 1);
  return make("p", { class: "score" }, make("span", { class: "unseen" }, "Score "), number, track);
}

// Return a paragraph with the best part of a text, and a button that shows all of it if there is more. The part is plain
// text; all of it can be Markdown.
function drawText({ text, highlights, snippet }) {
  const characters = [...text];
  const [isLater, isSooner] = [characters.slice(0, snippet.start), characters.slice(snippet.end)].map((part) =>
    REST.test(part.join("")),
  );
  const isWhole = !isLater && !isSooner;
  const paragraph = make("p", { class: "text" });
  const button = make("button", { type: "button", class: "more", click: () => show(!paragraph.matches(".open")) });
  function show(isOpen) {
    paragraph.replaceChildren(
      ...(isOpen ? markRanges(text, highlights) : markRanges(asLine(snippet.text), snippet.highlights)),
    );
    paragraph.classList.toggle("open", isOpen || isWhole);
    paragraph.classList.toggle("later", !isOpen && isLater);
    paragraph.classList.toggle("sooner", !isOpen && isSooner);
    button.setAttribute("aria-expanded", String(isOpen));
    button.textContent = isOpen ? "Show less" : "Show all";
  }
  show(false);
  return isWhole ? [paragraph] : [paragraph, button];
}

function drawMetadata(result, actions) {
  const { id, scores, metadata = {} } = result;
  const list = make("ul", { class: "metadata" });
  if (!corpus.isDocuments) list.append(make("li", { class: "id", title: `id ${id}` }, id));
  for (const [name, label, color] of PARTS) {
    if (scores?.[name] !== undefined) list.append(make("li", {}, swatch(color), `${label} ${scores[name].toFixed(2)}`));
  }
  const drawn = sourceNames(metadata);
  for (const [name, value] of Object.entries(metadata)) {
    if (drawn.includes(name)) continue;
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== null && one !== "") list.append(make("li", {}, drawValue(name, one, actions.filterBy)));
    }
  }
  if (!corpus.isRemote) {
    const click = () => actions.like(result);
    list.append(make("li", {}, make("button", { type: "button", class: "like", click }, "More like this")));
  }
  return list;
}

// Return a value among the metadata: an address is a link, any other value filters if it can.
function drawValue(name, value, filterBy) {
  const shown = typeof value === "object" ? JSON.stringify(value) : String(value);
  const label = make("span", { class: "name" }, `${name} `);
  const address = toLink(value);
  if (address) return make("span", {}, label, link(address, shown));
  const filter = filterBy(name, value);
  return filter
    ? make("button", { type: "button", title: "Filter by this", click: filter }, label, shown)
    : make("span", {}, label, shown);
}

// Focus the hit that is `step` further; before the first is `above`.
function moveFocus(step, above) {
  const all = [...hits.children];
  const current = all.indexOf(document.activeElement?.closest("li.hit"));
  const next = all[Math.min(current + step, all.length - 1)];
  if (current + step < 0) above.focus();
  else if (next) next.focus();
}
