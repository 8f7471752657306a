"use strict";

// The filter builder: conditions over the corpus's columns, made of what each column's type can be asked.
// A condition is [column, operator, value, …], as in the address; operators are "is", "in" and "range".

let columns = {}; // type of each column, by name
const conditions = byId("conditions");
const seenValues = new Map(); // values of each column in the results so far, to suggest

const OPERATORS = {
  string: [["is", "is"], ["in", "is one of"]],
  number: [["range", "is between"]],
  date: [["range", "is between"]],
  boolean: [["is", "is"]],
  list: [["is", "contains"], ["in", "contains one of"]],
};

// Return the API's filter for these conditions, undefined if none of them is filled in.
function toFilter(list) {
  const parts = list.map(toPart).filter(Boolean);
  const names = new Set(parts.flatMap(Object.keys));
  if (!parts.length) return undefined;
  return names.size === parts.length ? Object.assign({}, ...parts) : { $and: parts };
}

function toPart([column, operator, ...values]) {
  const kind = columns[column];
  const filled = values.filter((value) => value.trim() !== "");
  if (!kind || !filled.length) return null;
  if (operator === "in") return { [column]: { $in: filled } };
  if (operator === "is") return { [column]: kind === "boolean" ? filled[0] === "true" : filled[0] };
  const [from, to] = values;
  const range = {};
  if (from) range.$gte = kind === "number" ? Number(from) : from;
  if (to && kind === "number") range.$lte = Number(to);
  if (to && kind === "date") range.$lt = dayAfter(to); // the last day counts to its end
  return { [column]: range };
}

function dayAfter(day) {
  const date = new Date(`${day}T00:00:00Z`);
  date.setUTCDate(date.getUTCDate() + 1);
  return date.toISOString().slice(0, 10);
}

// Return the condition that a value among the metadata stands for, null if the column cannot be filtered by it.
function conditionOf(column, value) {
  const kind = columns[column];
  if (!kind || typeof value === "object") return null;
  const text = kind === "date" ? String(value).slice(0, 10) : String(value);
  return kind === "number" || kind === "date" ? [column, "range", text, text] : [column, "is", text];
}

function readConditions() {
  return [...conditions.children].map((row) => {
    const values = [...row.querySelectorAll("[data-value]")].flatMap((input) =>
      input.tagName === "TEXTAREA" ? input.value.split("\n") : [input.value],
    );
    return [row.querySelector(".column").value, row.querySelector(".operator").value, ...values];
  });
}

function addCondition([column, operator, ...values] = [Object.keys(columns)[0]]) {
  if (!(column in columns)) return null;
  const row = make("div", { class: "condition", role: "group", "aria-label": "Filter" });
  row.append(
    choice("column", "Column", Object.keys(columns).map((name) => [name, name]), column, () => redraw(row)),
    make("span", { class: "rest" }),
    make("button", { type: "button", class: "remove", "aria-label": "Remove this filter", click: () => remove(row) }, "×"),
  );
  conditions.append(row);
  drawOperator(row, operator, values);
  return row;
}

function remove(row) {
  const next = row.nextElementSibling ?? row.previousElementSibling;
  row.remove();
  (next?.querySelector(".remove") ?? byId("add-condition")).focus();
  conditions.dispatchEvent(new Event("change", { bubbles: true }));
}

function redraw(row) {
  drawOperator(row);
}

function drawOperator(row, operator, values = []) {
  const known = OPERATORS[columns[row.querySelector(".column").value]];
  const chosen = known.some(([name]) => name === operator) ? operator : known[0][0];
  const select = choice("operator", "Comparison", known, chosen, () => drawOperator(row, select.value, readValues(row)));
  row.querySelector(".rest").replaceChildren(select, ...valueInputs(row, chosen, values));
}

function readValues(row) {
  return [...row.querySelectorAll("[data-value]")].flatMap((input) => input.value.split("\n"));
}

function valueInputs(row, operator, values) {
  const column = row.querySelector(".column").value;
  const kind = columns[column];
  if (kind === "boolean") return [value(choice("", column, [["true", "yes"], ["false", "no"]], values[0] ?? "true"))];
  if (operator === "range") {
    const input = (label, text) =>
      value(make("input", { type: kind, step: kind === "number" && "any", "aria-label": `${column} ${label}`, value: text ?? "" }));
    return [input("from", values[0]), make("span", {}, "and"), input("to", values[1])];
  }
  if (operator === "in") {
    const area = value(make("textarea", { rows: "3", "aria-label": `${column}, one value a line`, placeholder: "one value a line" }));
    area.value = values.join("\n");
    return [area];
  }
  const list = make("datalist", { id: `values-${[...conditions.children].indexOf(row)}-${Date.now()}` });
  list.append(...[...(seenValues.get(column) ?? [])].slice(0, 100).map((text) => make("option", { value: text })));
  const input = make("input", { type: "text", "aria-label": column, list: list.id, value: values[0] ?? "" });
  return [value(input), list];
}

function value(input) {
  input.dataset.value = "";
  return input;
}

function choice(className, label, options, chosen, change) {
  const select = make("select", { class: className, "aria-label": label, ...(change && { change }) });
  select.append(...options.map(([name, shown]) => make("option", { value: name, selected: name === chosen }, shown)));
  return select;
}

// Remember the values of the results' metadata, so that the builder can suggest them.
function rememberValues(results) {
  for (const result of results) {
    for (const [column, found] of Object.entries(result.metadata ?? {})) {
      if (!seenValues.has(column)) seenValues.set(column, new Set());
      for (const one of Array.isArray(found) ? found : [found]) seenValues.get(column).add(String(one));
    }
  }
}
