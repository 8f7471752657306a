"use strict";

// Words that a search leaves out: a person writes them as " -word" after another word.

const LEFT_OUT = /(?<=\S\s+)-([\p{L}\p{N}][\p{L}\p{N}_-]{2,})(?=\s|$)/gu; // not the f of "git -f"

// Return a text without the words that it leaves out, and these words. `literal` has words that are no instruction.
export function splitWithout(text, literal) {
  const without = [];
  const rest = text.replace(LEFT_OUT, (whole, word) => {
    if (literal.has(word)) return whole;
    without.push(word);
    return "";
  });
  return { text: rest, without };
}
