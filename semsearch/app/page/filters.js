"use strict";

// The filter builder: conditions over the corpus's columns, made of what each column's type can be asked.
// A condition is [column, operator, value, …], as in the address; operators are "is", "in", "starts" and "range".

const conditions = byId("conditions");

const OPERATORS = {
  string: { is: "is", in: "is one of", starts: "starts with" },
  number: { range: "is" },
  date: { range: "is" },
  boolean: { is: "is" },
  list: { is: "contains", in: "contains one of", starts: "contains what starts with" },
};

// Return the API's filter for these conditions, undefined if none of them is filled in.
function toFilter(list) {
  const parts = list.map(toPart).filter(Boolean);
  const names = new Set(parts.flatMap(Object.keys));
  if (!parts.length) return undefined;
  return names.size === parts.length ? Object.fromEntries(parts.flatMap(Object.entries)) : { $and: parts };
}

function toPart([column, operator, ...values]) {
  const kind = corpus.columns.get(column);
  const filled = values.filter((value) => value.trim() !== "");
  if (!kind || !filled.length) return null;
  if (operator === "in") return { [column]: { $in: filled } };
  if (operator === "is") return { [column]: kind === "boolean" ? filled[0] === "true" : filled[0] };
  if (operator === "starts") return { [column]: { $startsWith: filled[0] } };
  const [from, to] = values;
  const range = {};
  if (from) range.$gte = kind === "number" ? Number(from) : from;
  if (to && kind === "number") range.$lte = Number(to);
  if (to && kind === "date") range.$lte = `${to}T23:59:59.999999Z`;
  return { [column]: range };
}

// Return the day of a date in UTC, in which the server compares. A time without a zone is in UTC.
function dayOf(text) {
  const hasZone = /[+-]\d\d(:?\d\d)?$/.test(text.slice(10));
  const date = new Date(text);
  return hasZone && !Number.isNaN(date.valueOf()) ? date.toISOString().slice(0, 10) : text.slice(0, 10);
}

// Return the condition that a value among the metadata stands for, null if the column cannot be filtered by it.
function conditionOf(column, value) {
  const kind = corpus.columns.get(column);
  if (!kind || typeof value === "object") return null;
  const text = kind === "date" ? dayOf(String(value)) : String(value);
  return kind === "number" || kind === "date" ? [column, "range", text, text] : [column, "is", text];
}

const readConditions = () => [...conditions.children].map(readCondition);

function readCondition(row) {
  const part = (name) => row.querySelector(`.${name}`).value;
  return [part("column"), part("operator"), ...readValues(row)];
}

function readValues(row) {
  return [...row.querySelectorAll(".values :is(input, textarea, select)")].flatMap((field) => field.value.split("\n"));
}

// Add a row for a condition; without one, for the first column. Returns the row, null if there is no such column.
function addCondition([column, operator, ...values] = [[...corpus.columns.keys()][0]]) {
  if (!corpus.columns.has(column)) return null;
  const names = Array.from(corpus.columns.keys(), (name) => [name, name]);
  const row = make(
    "div",
    { class: "condition", role: "group", "aria-label": "Filter" },
    choose(make("select", { class: "column", "aria-label": "Column" }), names, column),
    make("select", { class: "operator", "aria-label": "Comparison" }),
    make("span", { class: "values" }),
    make("button", { type: "button", class: "remove", "aria-label": "Remove this filter" }, "×"),
  );
  row.querySelector(".column").addEventListener("change", () => drawOperators(row));
  row.querySelector(".operator").addEventListener("change", () => drawValues(row, readValues(row)));
  row.querySelector(".remove").addEventListener("click", () => remove(row));
  conditions.append(row);
  drawOperators(row, operator, values);
  return row;
}

// Return the row of a condition, if there is one.
const findCondition = (condition) =>
  [...conditions.children].find((row) => JSON.stringify(readCondition(row)) === JSON.stringify(condition));

function remove(row) {
  const next = row.nextElementSibling ?? row.previousElementSibling;
  row.remove();
  (next?.querySelector(".remove") ?? byId("add-condition")).focus();
  conditions.dispatchEvent(new Event("change"));
}

function drawOperators(row, operator, values = []) {
  const known = OPERATORS[corpus.columns.get(row.querySelector(".column").value)];
  const chosen = Object.hasOwn(known, operator) ? operator : undefined;
  const select = choose(row.querySelector(".operator"), Object.entries(known), chosen);
  select.disabled = select.length === 1; // nothing to choose
  drawValues(row, values);
}

function drawValues(row, values) {
  const column = row.querySelector(".column").value;
  const operator = row.querySelector(".operator").value;
  row.querySelector(".values").replaceChildren(...fields(column, corpus.columns.get(column), operator, values));
}

// Return the fields for a condition's values.
function fields(column, kind, operator, [first = "", second = "", ...others]) {
  if (kind === "boolean") {
    const answers = [
      ["true", "yes"],
      ["false", "no"],
    ];
    return [choose(make("select", { "aria-label": column }), answers, first || "true")];
  }
  if (operator === "range") {
    const type = kind === "number" ? { type: "number", step: "any" } : { type: "date" };
    const from = make("label", {}, "from ", make("input", { ...type, "aria-label": `${column} from`, value: first }));
    return [from, make("label", {}, "to ", make("input", { ...type, "aria-label": `${column} to`, value: second }))];
  }
  if (operator === "in") {
    const label = `${column}, one value a line`;
    const area = make("textarea", { rows: "3", "aria-label": label, placeholder: "one value a line" });
    area.value = [first, second, ...others].filter(Boolean).join("\n");
    return [area];
  }
  return [make("input", { type: "text", "aria-label": column, list: suggestionsOf(column), value: first })];
}

// Give a select these options [value, what is shown] and choose one, the first unless told otherwise.
function choose(select, options, chosen) {
  select.replaceChildren(...options.map(([value, shown]) => make("option", { value }, shown)));
  if (chosen !== undefined) select.value = chosen;
  return select;
}
