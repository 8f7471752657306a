// The last searches of a visitor, kept in the browser by the address of what is searched.

const MOST = 5;

/** @type {(place: string) => string} */
const nameOf = (place) => `semantic-search recent ${place}`;

/** Return the last searches, the newest first; none if the browser keeps nothing for pages. @type {(place: string) => string[]} */
export function readRecent(place) {
  try {
    const stored = JSON.parse(localStorage.getItem(nameOf(place)) ?? "[]");
    return Array.isArray(stored) ? stored.filter((text) => typeof text === "string") : [];
  } catch {
    return []; // localStorage is blocked, or another script has written to it
  }
}

/** Keep a search, or forget it. @type {(place: string, text: string, isKept?: boolean) => void} */
export function keepRecent(place, text, isKept = true) {
  const others = readRecent(place).filter((other) => other !== text);
  const kept = isKept ? [text, ...others].slice(0, MOST) : others;
  try {
    localStorage.setItem(nameOf(place), JSON.stringify(kept));
  } catch {
    // then there are no recent searches
  }
}
