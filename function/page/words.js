"use strict";

// Which words of a text are those of the query. A word is a run of letters, digits and their accents, in any script.
const WORD = /[\p{L}\p{N}\p{M}]+/gu;
const UNSPACED = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]/u; // no blanks between words
const FREQUENT = new Set(["the", "and", "for", "from", "that", "this", "with", "are", "was"]);
const MOST_MARKED = 20000; // characters of a text that are searched for words
const MOST_UNSPACED = 50; // words without blanks that are searched for within others
const LONGEST_WORD = 1000; // characters of a word that are compared

const fold = (word) => word.slice(0, LONGEST_WORD).normalize("NFKC").toLowerCase();

// Return a word without its last one, two and three letters, as long as four letters stay.
const shorten = (word) => [1, 2, 3].filter((count) => word.length >= 4 + count).map((count) => word.slice(0, -count));

// Return the query's words that are worth marking: all of them if none is longer than two letters.
// `shortened` has the same words with shorter endings, `unspaced` those of scripts without blanks.
function queryWords(query) {
  const words = [...new Set((query.match(WORD) ?? []).map(fold))];
  const telling = words.filter((word) => (word.length > 2 && !FREQUENT.has(word)) || UNSPACED.test(word));
  const chosen = telling.length ? telling : words;
  const unspaced = chosen.filter((word) => UNSPACED.test(word)).slice(0, MOST_UNSPACED);
  return { whole: new Set(chosen), shortened: new Set(chosen.flatMap(shorten)), unspaced };
}

// Return whether a word differs from one of the query in nothing but its ending, as "search" and "searching" do.
function isWanted(word, { whole, shortened }) {
  return whole.has(word) || shortened.has(word) || shorten(word).some((one) => whole.has(one));
}

// Return [begin, end] of each part of the text that is a word of the query.
function findWords(text, words) {
  const found = [];
  for (const match of text.slice(0, MOST_MARKED).matchAll(WORD)) {
    const folded = fold(match[0]);
    if (isWanted(folded, words)) {
      found.push([match.index, match.index + match[0].length]);
    } else if (UNSPACED.test(folded)) {
      for (const word of words.unspaced) {
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
