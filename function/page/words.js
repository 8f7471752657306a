"use strict";

// Which words of a text are those of the query. A word is a run of letters, digits and their accents, in any script.
const WORD = /[\p{L}\p{N}\p{M}]+/gu;
const UNSPACED = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]/u; // no blanks between words
const FREQUENT = new Set(["the", "and", "for", "from", "that", "this", "with", "are", "was"]);
const MOST_MARKED = 20000; // characters of a text that are looked through

const fold = (word) => word.normalize("NFKC").toLowerCase();

// Return the query's words that are worth marking: all of them if none is longer than two letters.
function queryWords(query) {
  const words = [...new Set((query.match(WORD) ?? []).map(fold))];
  const telling = words.filter((word) => (word.length > 2 && !FREQUENT.has(word)) || UNSPACED.test(word));
  return telling.length ? telling : words;
}

// Return whether two words differ in nothing but their endings, as "search" and "searching" do.
function alike(one, other) {
  const [short, long] = one.length <= other.length ? [one, other] : [other, one];
  if (short === long) return true;
  return short.length >= 4 && long.startsWith(short) && long.length - short.length <= 3;
}

// Return [begin, end] of each part of the text that is a word of the query.
function findWords(text, words) {
  const found = [];
  for (const match of text.slice(0, MOST_MARKED).matchAll(WORD)) {
    const folded = fold(match[0]);
    if (words.some((word) => alike(word, folded))) {
      found.push([match.index, match.index + match[0].length]);
    } else if (UNSPACED.test(folded)) {
      for (const word of words.filter((one) => UNSPACED.test(one))) {
        const begin = match[0].indexOf(word);
        if (begin >= 0) found.push([match.index + begin, match.index + begin + word.length]);
      }
    }
  }
  return found.sort((one, other) => one[0] - other[0]);
}

// Return the text as nodes, the query's words marked.
function markWords(text, words) {
  const nodes = [];
  let last = 0;
  for (const [begin, end] of findWords(text, words)) {
    if (begin < last) continue; // two words that overlap
    nodes.push(text.slice(last, begin), make("mark", {}, text.slice(begin, end)));
    last = end;
  }
  return [...nodes, text.slice(last)];
}
