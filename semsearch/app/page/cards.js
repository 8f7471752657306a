"use strict";

import { make } from "./elements.js";
import { markRanges } from "./marks.js";
import { toLink } from "./sources.js";

// A result as a card: the way to its section, the heading, the signature of an object, and the best part of its text. The
// page and the search box draw the same cards.

const KEPT = 14; // characters at the end of a heading that is cut in the middle
const LEAST_CUT = 40; // characters from which one can be cut
// the anchor of a documented object, such as click.Option.get_default; v1.24.1 is none
const OBJECT_ANCHOR = /(?:^|\.)([\p{L}_$][\p{L}\p{N}_$]*)$/u;
const SVG = "http://www.w3.org/2000/svg";
const ICONS = {
  search: "M11 11l3.5 3.5M12.5 7a5.5 5.5 0 1 1-11 0 5.5 5.5 0 0 1 11 0z",
  page: "M4 1.5h5.5L13 5v9.5H4zM9.5 1.5V5H13",
  section: "M6 2L4.5 14M11.5 2L10 14M2.5 5.5h11.5M2 10.5h11.5",
  code: "M5 4.5L1.5 8 5 11.5M11 4.5L14.5 8 11 11.5",
  recent: "M8 4.5V8l2.5 1.5M14.5 8a6.5 6.5 0 1 1-13 0 6.5 6.5 0 0 1 13 0z",
  close: "M4 4l8 8M12 4l-8 8",
};

// Return an icon, for the eye alone.
export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  const path = document.createElementNS(SVG, "path");
  const attributes = { viewBox: "0 0 16 16", class: `icon ${name}`, part: "icon", "aria-hidden": "true" };
  for (const [attribute, value] of Object.entries(attributes)) svg.setAttribute(attribute, value);
  path.setAttribute("d", ICONS[name]);
  svg.append(path);
  return svg;
}

// Return the kind of a result (page, section or code), its heading, its signature, and the headings around it.
export function sectionOf({ title, headings, url, page }, word = "page") {
  const inside = Array.isArray(headings) ? headings.slice(Number(headings[0] === title)) : [];
  const number = page ? [`${word} ${page}`] : [];
  if (!inside.length) return { kind: "page", heading: number[0] ?? title, signature: "", way: [] };
  const [heading, way] = [inside.at(-1), [...inside.slice(0, -1), ...number]];
  const end = endOfName(heading, anchorOf(url));
  if (!end) return { kind: "section", heading, signature: "", way };
  return { kind: "code", heading: heading.slice(0, end), signature: heading.slice(end).trim(), way: way.map(nameOf) };
}

// Return where the name of an object, the last one of its anchor, ends in its heading, 0 if it has none. Then the heading
// ends, or a sign such as "(" follows.
function endOfName(heading, anchor) {
  const [, name] = (/[._]/.test(anchor) && anchor.match(OBJECT_ANCHOR)) || [];
  if (!name) return 0;
  const escaped = name.replaceAll("$", "\\$&");
  const place = heading.search(new RegExp(`(?<![\\p{L}\\p{N}_$])${escaped}(?=\\s*(?:[([<:={]|->|$))`, "u"));
  return place < 0 ? 0 : place + name.length;
}

// Return a heading without the parameters of its signature.
const nameOf = (heading) => heading.replace(/(?<=\w)\(.*$/s, "");

function anchorOf(url) {
  const address = toLink(url, location.href);
  try {
    return address ? decodeURIComponent(new URL(address).hash.slice(1)) : "";
  } catch {
    return ""; // an anchor with a % that escapes nothing
  }
}

// Return a heading, which CSS cuts before its last characters, or a short one at its end.
export function headingOf(text) {
  const characters = [...text];
  if (characters.length < LEAST_CUT) return [make("span", { class: "begin" }, text)];
  const [begin, end] = [characters.slice(0, -KEPT), characters.slice(-KEPT)].map((part) => part.join(""));
  return [make("span", { class: "begin" }, begin), make("span", { class: "end" }, end)];
}

// Return the elements of a card. `also` is a text with {} for the other places of the section; with a language, only those
// in it are named.
export function drawCard(result, { kind, heading, signature, way }, also, language) {
  const { snippet, metadata = {}, also_in: places = [] } = result;
  const others = places.filter((place) => !language || place.language === language);
  const lines = [];
  if (way.length) lines.push(make("span", { class: "way", part: "place" }, way.join(" › ")));
  lines.push(make("span", { class: "heading", part: "heading" }, ...headingOf(heading)));
  if (signature) lines.push(make("span", { class: "signature", part: "signature" }, signature));
  const [name, text] = [heading + signature, snippet.text].map((each) => each.replace(/\s/g, ""));
  if (!name.includes(text)) lines.push(excerptOf(snippet));
  if (others.length)
    lines.push(make("span", { class: "also", part: "also" }, also.replace("{}", namesOf(others, metadata))));
  return [icon(kind), make("span", { class: "lines" }, ...lines)];
}

// Return the best part of a text, its highlights marked.
function excerptOf({ text, highlights }) {
  return make("span", { class: "excerpt", part: "excerpt" }, ...markRanges(asLine(text), highlights));
}

// Return a text of the same length in which items of lists begin with a point.
export const asLine = (text) => text.replace(/^- /, "• ").replace(/\n- /g, " • ");

// Return the names of places, such as "1.0, next": what differs from the version and the language of `own`, or else the
// path.
export function namesOf(places, own) {
  const names = places.map(({ version, language, path }) => {
    return (
      [version !== own.version && version, language !== own.language && language].filter(Boolean).join(" ") || path
    );
  });
  return [...new Set(names)].join(", ");
}
