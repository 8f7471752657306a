// The dialog of <semantic-search>: a field, and the results below it as cards, grouped by page.

import { drawCard, headingOf, icon, sectionOf } from "./cards.js";
import { adoptPage } from "./colours.js";
import { make } from "./elements.js";
import { addSentence } from "./fragment.js";
import { keepRecent, readRecent } from "./recent.js";
import { readBody, readObject } from "./question.js";
import { describeScope, scopeOf } from "./scope.js";
import { toLink } from "./sources.js";
import { drawChoice, drawStart } from "./start.js";
import { fill, megabytes } from "./texts.js";

const PAUSE = 100; // milliseconds without input before a search starts
const SECTIONS = 3; // sections of a page that are shown
const MOST_SECTIONS = 20; // and after a click on "More on this page"
const CLOSEST = 3; // results that are shown if none is relevant
const MOST_WORSE = 0.4; // sections whose score is lower by a larger share of the page's best one are not shown
const folder = new URL("../../../", import.meta.url).href; // base of relative links: the parent of the site's folder

// Return whether the connection saves data or is slow, so that only a click on the button loads the search by meaning.
const isSpared = ({ saveData, effectiveType } = {}) => saveData || (effectiveType ?? "4g") !== "4g";

// Make the dialog of an element. `texts` returns the texts in the element's language. Return the function that shows the
// dialog, and takes a function that opens the search.
export function makeBox(element, texts) {
  const read = (name, value) => element.getAttribute(name) || value;
  const field = { part: "input", role: "combobox", "aria-controls": "hits", "aria-expanded": "false" };
  const typing = { autocomplete: "off", autocapitalize: "off", spellcheck: "false", enterkeyhint: "search" };
  const listeners = { input: () => searchSoon(), keydown: (event) => press(event) };
  const input = make("input", { ...field, ...typing, ...listeners });
  const clear = make("button", { part: "clear", type: "button", hidden: true, click: () => fillIn("") }, icon("close"));
  const close = make("button", { part: "close", type: "button", click: () => dialog.close() });
  const line = make("progress", { part: "line", hidden: true, max: 1 });
  const chips = make("div", { part: "chips", hidden: true });
  const status = make("p", { part: "status", role: "status" });
  const ask = make("button", { part: "load", type: "button", hidden: true, click: () => load() });
  const hits = make("div", { part: "hits", id: "hits", role: "listbox", hidden: true });
  const keys = make("p", { part: "keys", "aria-hidden": "true" });
  const dialog = make("dialog", { part: "dialog" });
  dialog.append(
    make("div", { part: "field" }, icon("search"), input, clear, close),
    line,
    chips,
    status,
    ask,
    hits,
    keys,
  );
  dialog.addEventListener("click", ({ target }) => target === dialog && dialog.close()); // a click beside the box
  dialog.addEventListener("close", stop);
  addEventListener("popstate", () => dialog.close()); // the browser went to another page
  // the keyboard of a phone covers a part of the screen
  globalThis.visualViewport?.addEventListener("resize", () =>
    dialog.style.setProperty("--screen", `${visualViewport.height}px`),
  );
  element.shadowRoot.append(dialog);

  let source = null; // the search, null until it is open
  let values = {}; // the versions and languages of the corpus
  let floor = {}; // by mode, the score below which nothing is relevant
  let index = { columns: {} }; // what GET /info says of the corpus
  let isGrouped = true; // whether results are grouped by page; false if the corpus is a table
  let isEverywhere = false; // whether all versions and languages are searched
  let loading = ""; // state of loading the search by meaning: "", "now" or "failed"
  let isEarly = false; // whether the last search came before the search by meaning was loaded
  let timer = 0;
  let running = new AbortController();
  let asked = ""; // the question of the last search
  let answered = ""; // the question that the results answer
  let searching = Promise.resolve(); // settles when the last search has ended
  const literal = new Set(); // words that are not corrected or left out, because the visitor said so
  let isChosen = false; // whether the visitor has moved to an option since the results came
  const details = new WeakMap(); // of the event `select`, by the option
  const options = () => [...hits.querySelectorAll("[role=option]:not([part=forget])")];
  const active = () => hits.querySelector("[aria-selected=true]");
  const scope = () => scopeOf(values);
  const place = () => read("api", folder);
  // What a search depends on: the text, the page, and the attributes of the element.
  const question = () =>
    JSON.stringify([
      ...[input.value.trim(), scope(), isEverywhere, [...literal]],
      ...Array.from(element.attributes, ({ value }) => value),
    ]);

  function tell(name, detail) {
    return element.dispatchEvent(new CustomEvent(name, { detail, bubbles: true, composed: true, cancelable: true }));
  }

  function show({ loaded, total }) {
    const isWanted = !source.state.hasMeaning && input.value && read("mode") !== "keyword";
    line.hidden = !isWanted || loading !== "now";
    line.value = Math.min(1, loaded / total);
    const sizes = [loaded, total].map((bytes) => megabytes(bytes, texts().locale));
    line.ariaLabel = fill(texts().loading, ...sizes);
    ask.textContent = fill(texts().load, ...sizes);
    ask.hidden = !isWanted || loading === "now";
  }

  async function load() {
    loading = "now";
    show(source.state);
    await source.load().catch(fail);
    show(source.state);
  }

  // Show the bytes that have arrived; search again when meaning can be searched, which another page may have requested.
  function watch(state) {
    show(state);
    if (isEarly && state.hasMeaning && !isChosen) search();
  }

  function fail({ message }) {
    loading = "failed";
    say(message);
  }

  // Show a message; what only screen readers need is hidden.
  function say(message, isUnseen = false) {
    status.textContent = message;
    status.classList.toggle("unseen", isUnseen);
  }

  function fillIn(text) {
    input.value = text;
    input.focus();
    search();
  }

  function searchSoon() {
    clearTimeout(timer);
    timer = setTimeout(search, PAUSE);
    clear.hidden = !input.value;
    if (!source) return;
    show(source.state);
    if (!loading && !ask.hidden && !isSpared(navigator.connection)) load();
  }

  function search() {
    clearTimeout(timer);
    running.abort();
    running = new AbortController();
    asked = question();
    clear.hidden = !input.value;
    searching = showAnswer(asked, running.signal);
  }

  // Stop a search that has not ended, so that an Enter that waits for it opens nothing.
  function stop() {
    clearTimeout(timer);
    running.abort();
    asked = answered;
  }

  async function showAnswer(about, signal) {
    if (!input.value.trim()) return showStart(about);
    if (!source) return;
    isEarly = !source.state.hasMeaning;
    try {
      const isScoped = !isEverywhere;
      const own = isScoped && !source.isSeveral ? scope() : {}; // of several sites, each has a scope of its own
      const body = readBody(element, input.value, { literal, scope: own, state: source.state, index });
      const reply = await find({ ...body, signal, ...(source.isSeveral && { isScoped }) });
      if (signal.aborted) return;
      isEarly ||= !source.state.hasMeaning; // a newer build answered, which has not loaded the search by meaning yet
      drawReply(about, body, { ...reply, results: withoutUnlike(reply.results, body.mode) });
      if (reply.errors?.length) say([status.textContent, ...reply.errors].join(" "));
      tell("search", { ...reply, text: body.text });
    } catch (error) {
      if (!signal.aborted) draw(about, [], error.message);
    }
  }

  // Search, and group the results by page, unless the corpus is a table, which has no column path.
  async function find({ text, ...body }) {
    if (!isGrouped) return source.search(text, body);
    const grouped = { group_by: "path", group_size: SECTIONS + 1, ...body };
    return source.search(text, grouped).catch((error) => {
      if (!/\bpath\b/.test(error.message)) throw error;
      isGrouped = false;
      return find({ text, ...body });
    });
  }

  // Return the results without those of sites that have no relevant one, unless no site has one.
  function withoutUnlike(results, mode) {
    const relevant = results.filter((result) => !isBelowFloor(result, mode)).map(({ site }) => site);
    return relevant.length ? results.filter(({ site }) => relevant.includes(site)) : results;
  }

  // Show what the visitor can start with: recent searches and the links in the element.
  function showStart(about) {
    const recent = read("recent") === "off" ? [] : readRecent(place());
    const links = [...element.querySelectorAll("a[href]")];
    draw(about, drawStart(recent, links, texts(), { search: fillIn, forget }), "");
  }

  function forget(text) {
    keepRecent(place(), text, false);
    showStart(answered);
  }

  function drawReply(about, body, { results, corrected = {} }) {
    drawChips(body.without);
    const text = body.text.trim();
    const [[wrong, others] = []] = Object.entries(corrected);
    if (results.every((result) => isBelowFloor(result, body.mode))) return drawNothing(about, body, results);
    const groups = results.map((result) => drawGroup(result, body));
    if (!wrong) return draw(about, groups, fill(texts().found, results.length), { isUnseen: true });
    const literally = drawChoice(() => takeLiterally(input.value.trim()), [fill(texts().literally, text)]);
    draw(about, [literally, ...groups], fill(texts().corrected, others.join(", "), wrong));
  }

  // Say that nothing was found or, if there are results, that none is relevant. The closest ones are shown in grey, the best
  // section of each page.
  function drawNothing(about, body, results) {
    const isUnlike = results.length > 0;
    const closest = results.slice(0, CLOSEST).map((result) => drawGroup({ ...result, other_passages: [] }, body));
    const hasScope = !isEverywhere && Object.keys(scope()).length > 0;
    const ways = hasScope ? [drawChoice(toggleScope, [texts().all])] : [];
    const said = isUnlike ? [texts().unlike, texts().advice, texts().closest] : [texts().nothing, texts().advice];
    draw(about, [...closest, ...ways], fill(said.join(" "), body.text.trim()), { isUnlike });
  }

  // Return the score of a result without boosts: with a boost, `scores` has it by the mode that found the result.
  function unboosted({ score, scores }) {
    return scores?.boost === undefined ? score : (scores.hybrid ?? scores.semantic ?? scores.keyword);
  }

  // Return whether a result is not relevant, as measured when the index was made.
  function isBelowFloor(result, mode) {
    const { scores, site = { floor, state: source.state } } = result;
    const own = mode ?? (scores?.keyword === undefined ? "semantic" : "hybrid");
    const measured = site.floor[site.state.hasMeaning ? own : "keyword"]?.score;
    return typeof measured === "number" && unboosted(result) < measured;
  }

  function takeLiterally(word) {
    literal.add(word);
    input.focus();
    search();
  }

  function toggleScope() {
    isEverywhere = !isEverywhere;
    input.focus();
    search();
  }

  // Return a place, or a scope, with the version as the site calls it: the attribute `versions` has its names.
  function labelled(place) {
    const name = readObject(element, "versions")?.[place.version];
    return name === undefined ? place : { ...place, version: name };
  }

  // Show the scope of the search and the words that are left out.
  function drawChips(without) {
    const about = describeScope(labelled(scope()), texts().version, texts().locale);
    const words = without.map((word) => {
      const label = fill(texts().without, word);
      return make("button", { part: "chip", type: "button", click: () => takeLiterally(word) }, label, icon("close"));
    });
    if (about) {
      const pressed = { "aria-pressed": String(!isEverywhere), "aria-keyshortcuts": "Alt+A" };
      const button = { part: "chip", type: "button", click: toggleScope, ...pressed };
      words.unshift(
        make("button", button, fill(texts().scope, about), make("kbd", { "aria-hidden": "true" }, "Alt A")),
      );
    }
    chips.replaceChildren(...words);
    chips.hidden = !words.length;
  }

  // Show elements with options, and select the first result. If none is relevant, select none: screen readers then read
  // the message first, and Enter opens nothing that the visitor has not seen.
  function draw(about, elements, said, { isUnseen = false, isUnlike = false } = {}) {
    answered = about;
    say(said, isUnseen);
    if (!input.value.trim()) chips.hidden = true;
    hits.replaceChildren(...elements);
    options().forEach((option, i) => (option.id = `hit-${i}`));
    hits.hidden = !elements.length;
    input.ariaExpanded = String(!hits.hidden);
    isChosen = false;
    activate(isUnlike ? null : hits.querySelector("[part=hit]"));
    dialog.classList.toggle("unlike", isUnlike);
    hits.scrollTop = 0;
  }

  // Return the sections of a page that was found. Of the passages of a long section, the best one is shown.
  function sectionsOf(result) {
    const passages = [result, ...(result.other_passages ?? [])];
    const names = passages.map(({ id, metadata: { url, headings, page } = {} }) =>
      url ? JSON.stringify([url, headings, page]) : id,
    );
    return passages.filter((_, place) => names.indexOf(names[place]) === place);
  }

  function drawGroup(result, body) {
    const group = make("div", { part: "group", role: "group" });
    const best = unboosted(result);
    const isGood = (section) => unboosted(section) >= best - MOST_WORSE * Math.abs(best);
    const { other_passages: others = [] } = result;
    fillGroup(group, sectionsOf(result).filter(isGood).slice(0, SECTIONS), result.site);
    if (others.length >= SECTIONS && others.every(isGood)) {
      group.append(drawChoice(() => showMore(group, result, body), [texts().more], "more"));
    }
    return group;
  }

  // Show the title of a page, which links to it, and a card for each section. If the first card is the beginning of the
  // page, it has this title and this link itself. A later one that is the title alone is left out. The first page of a
  // site is below the name of the site, if there are several.
  function fillGroup(group, sections, site) {
    const [{ id, metadata = {}, isFirst }] = sections;
    const title = metadata.title ?? id;
    const label = isFirst ? [make("p", { part: "site", role: "presentation" }, site.title)] : [];
    group.ariaLabel = site ? `${site.title}: ${title}` : title;
    const heading = make("span", { class: "heading" }, ...headingOf(title));
    const address = metadata.url?.split("#")[0];
    const page = drawLink("title", address, sections[0], site, [icon("page"), heading, badgeOf(metadata)]);
    const isBeginning = ({ metadata: own = {} }) => {
      const { kind, heading } = sectionOf({ title, ...own });
      return kind === "page" && heading === title;
    };
    const isTitle = (section) => isBeginning(section) && section.snippet.text === title;
    const [first, ...others] = sections;
    const hits = [first, ...others.filter((section) => !isTitle(section))].map((section) => drawHit(section, site));
    if (isGrouped && isBeginning(first)) hits[0].append(badgeOf(metadata));
    group.replaceChildren(...label, ...(isGrouped && !isBeginning(first) ? [page] : []), ...hits);
  }

  // Return the version and the language of a page, unless all results have those of this page.
  function badgeOf({ version, language }) {
    const label = labelled({ version }).version;
    const names = [values.version?.length > 1 && label, values.language?.length > 1 && language];
    const isHere = version === scope().version && language === scope().language;
    const shown = names.filter((name) => name && !isHere).join(" ");
    return shown ? make("span", { part: "badge" }, shown) : "";
  }

  async function showMore(group, { metadata: { path }, site, isFirst }, { filter, ...body }) {
    const filters = filter ? [filter, { path }] : [{ path }];
    const about = asked;
    const more = { filter: { $and: filters }, num_results: 1, group_size: MOST_SECTIONS, ...(site && { only: site }) };
    const { results } = await find({ ...body, ...more });
    if (about !== asked || !results.length) return;
    const first = options().indexOf(active());
    fillGroup(group, sectionsOf({ ...results[0], isFirst }), site);
    options().forEach((option, i) => (option.id = `hit-${i}`));
    activate(options()[first] ?? null);
    input.focus();
  }

  function drawHit(result, site) {
    const { metadata = {}, id, also_in: places = [] } = result;
    const shown = { ...result, metadata: labelled(metadata), also_in: places.map(labelled) };
    const section = sectionOf({ title: id, ...metadata }, texts().page);
    return drawLink(
      "hit",
      metadata.url,
      result,
      site,
      drawCard(shown, section, texts().also, isEverywhere ? undefined : scope().language),
    );
  }

  function drawLink(part, url, result, site, children) {
    const href = toLink(url, site?.links ?? folder);
    const detail = { result, url: href };
    const listeners = { click: (event) => choose(event, link, detail), auxclick: () => mark(link, detail) };
    const option = { part, role: "option", tabindex: "-1", "aria-selected": "false", href, ...listeners };
    const link = make("a", { ...option, target: read("target", null) }, ...children);
    details.set(link, detail);
    return link;
  }

  function choose(event, link, detail) {
    if (read("recent") !== "off") keepRecent(place(), input.value.trim());
    if (detail.url) link.href = detail.url;
    if (!tell("select", detail)) event.preventDefault();
    if (!event.ctrlKey && !event.metaKey) dialog.close();
    // after the listeners of the page: its router takes the address without a text fragment, and prevents the default
    const last = (latest) => latest === event && !event.defaultPrevented && mark(link, detail);
    addEventListener("click", last, { once: true });
  }

  // Add a sentence of a section to its link. A browser without `fragmentDirective` would look for it as an anchor, and a
  // page of a PDF has no sentences to it.
  function mark(link, { result, url }) {
    if (!link.matches("[part=hit]") || !url || result.metadata?.page) return;
    if (document.fragmentDirective && read("marks") !== "off") link.href = addSentence(url, result.snippet);
  }

  function activate(option) {
    active()?.setAttribute("aria-selected", "false");
    option?.setAttribute("aria-selected", "true");
    option?.scrollIntoView({ block: "nearest" });
    input.setAttribute("aria-activedescendant", option?.id ?? "");
  }

  async function press(event) {
    const { key, ctrlKey, metaKey } = event;
    const step = { ArrowDown: 1, ArrowUp: -1 }[key];
    const recent = active()?.dataset.recent;
    if (event.altKey && event.code === "KeyA" && Object.keys(scope()).length) {
      event.preventDefault();
      return toggleScope();
    }
    if (key === "Delete" && recent !== undefined) return forget(recent);
    if (event.isComposing || !source || !(step || key === "Enter")) return;
    event.preventDefault();
    const about = question();
    await answerTo(about);
    if (!dialog.open || answered !== about || question() !== about) return; // the visitor closed the box or typed on
    const all = options();
    const selected = all.indexOf(active());
    if (step) {
      isChosen = true;
      activate(all.at((selected + step + (selected < 0 && step < 0 ? 1 : 0)) % all.length));
    } else if ((ctrlKey || metaKey) && active()?.href) openTab(active());
    else active()?.click();
  }

  // Open a link in a new tab, as a click with Ctrl or ⌘ does.
  function openTab(option) {
    const detail = details.get(option);
    if (detail && !tell("select", detail)) return;
    if (detail) mark(option, detail);
    open(option.href, "_blank", "noopener");
  }

  // Wait until the results answer this question of the field. Search at once if the pause has not ended.
  async function answerTo(about) {
    if (asked !== about) search();
    while (answered !== about && asked === about) await searching;
  }

  // Write the texts, which change with the attributes of the element.
  function label() {
    input.placeholder = input.ariaLabel = read("placeholder", texts().search);
    dialog.ariaLabel = texts().search;
    hits.ariaLabel = texts().results;
    close.textContent = texts().close;
    clear.ariaLabel = texts().clear;
    const hints = { "↑ ↓": texts().move, Enter: texts().open, Esc: texts().close.toLowerCase() };
    keys.replaceChildren(
      ...Object.entries(hints).map(([names, does]) =>
        make("span", {}, ...names.split(" ").map((name) => make("kbd", {}, name)), does),
      ),
    );
  }

  return async (open) => {
    label();
    adoptPage(dialog);
    if (!dialog.open) dialog.showModal();
    if (!input.value) showStart(question());
    input.select();
    try {
      const opened = await open();
      ({ values, floor, index } = await opened.about()); // before a search, whose results the floor judges
      source = opened;
      source.watch(watch);
      if (input.value.trim() && answered !== question()) searchSoon();
    } catch (error) {
      fail(error);
    }
  };
}
