"use strict";

// The values of the corpus's columns, each with the number of texts that have it. A click filters by one, another click
// stops that. The filter builder suggests the same values.

const FEW = 8; // values of a column that are shown
const RARE = 0.01; // share of the texts that the most frequent value of a shown column has at least
const facetBox = byId("facets");
const suggestions = byId("suggestions");

const suggestionsOf = (column) => `values-of-${corpus.facets.indexOf(column)}`;

// Draw {column: [{value, count}, …]} of `total` texts; isChosen and toggle take the condition of a value.
function drawFacets(facets, total, isChosen, toggle) {
  const focused = facetBox.contains(document.activeElement) ? document.activeElement.dataset.value : null;
  const isShown = ({ value }) => String(value).trim() !== ""; // a blank value cannot be filled in
  const lists = corpus.facets.map((column) => [column, facets[column].filter(isShown)]);
  suggestions.replaceChildren(
    ...lists.map(([column, values]) =>
      make(
        "datalist",
        { id: suggestionsOf(column) },
        ...values.map(({ value, count }) => make("option", { value, label: `${value} (${count})` })),
      ),
    ),
  );
  facetBox.replaceChildren(...lists.map(([column, values]) => drawFacet(column, values, total, isChosen, toggle)));
  if (focused === null) return;
  const same = [...facetBox.querySelectorAll("button")].find((one) => one.dataset.value === focused);
  (same ?? byId("filters-toggle")).focus(); // the elements are new
}

function drawFacet(column, values, total, isChosen, toggle) {
  const chips = values.slice(0, FEW).map(({ value, count }) => {
    const condition = [column, "is", String(value)];
    const pressed = String(Boolean(isChosen(condition)));
    const shown = typeof value === "boolean" ? (value ? "yes" : "no") : value;
    const number = make("span", { class: "number" }, count.toLocaleString("en"));
    const attributes = { type: "button", "aria-pressed": pressed, "data-value": JSON.stringify(condition) };
    return make("button", { ...attributes, click: () => toggle(condition) }, shown, " ", number);
  });
  const most = values[0]?.count ?? 0;
  const repeats = most > 1 && most >= RARE * total; // a value of hardly more than one text is no choice
  const hidden = !repeats && !chips.some((chip) => chip.ariaPressed === "true");
  const group = make("fieldset", { class: "facet", hidden }, make("legend", {}, column), ...chips);
  if (values.length > FEW) group.append("and more");
  return group;
}
