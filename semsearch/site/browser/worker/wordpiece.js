// Text to token ids: WordPiece in the way of BERT, as the library of tokenizers does it.
// Source: https://github.com/google-research/bert/blob/master/tokenization.py

/** @import { WordPieceOptions } from "./types.js" */

const CHINESE = /[\u4e00-\u9fff\u3400-\u4dbf\uf900-\ufaff\u{20000}-\u{2a6df}\u{2a700}-\u{2ceaf}\u{2f800}-\u{2fa1f}]/gu;
const DROPPED = /(?![\t\n\r])[\p{Cc}\p{Cf}\p{Co}\ufffd]/gu;
const PIECES = /[!-/:-@[-`{-~\p{P}]|[^\s\x85!-/:-@[-`{-~\p{P}]+/gu; // a mark by itself, or what is between marks

export class WordPiece {
  /** @param {string[]} vocabulary the tokens in the order of their ids @param {WordPieceOptions} options */
  constructor(vocabulary, options) {
    /** @type {Map<string, number>} */
    this.ids = new Map(vocabulary.map((token, id) => [token, id]));
    this.tokens = vocabulary;
    this.options = options;
    const names = Object.keys(options.added).sort((a, b) => b.length - a.length);
    const pattern = names.map((name) => name.replace(/[^\p{L}\p{N}]/gu, "\\$&")).join("|");
    this.added = pattern ? new RegExp(`(${pattern})`) : /(?!)/;
  }

  /** Return the ids of a query, special tokens included, and whether its end was cut off. @param {string} text */
  tokenize(text) {
    const { added, before, after, max_tokens, prompt } = this.options;
    const parts = (prompt + text).split(this.added);
    const ids = parts.flatMap((part) => (Object.hasOwn(added, part) ? [added[part]] : this.words(part)));
    const room = max_tokens - before.length - after.length;
    return { ids: [...before, ...ids.slice(0, room), ...after], isTruncated: ids.length > room };
  }

  /**
   * Return the parts of a word that are tokens, as semsearch/engine/tokenizer.py does. The first part has its accents.
   * @param {string} word
   */
  split(word) {
    const letters = [...word];
    const divide = (/** @type {string} */ each) => {
      const tokens = this.words(each).map((id) => this.tokens[id]);
      const isKnown = tokens.length && !tokens.includes(this.options.unknown);
      return isKnown ? [letters.slice(0, [...tokens[0]].length).join(""), ...tokens.slice(1)] : letters;
    };
    const [plain, capitalized] = [word, letters[0].toUpperCase() + letters.slice(1).join("")].map(divide);
    return capitalized.length < plain.length ? capitalized : plain;
  }

  /** @param {string} text @returns {number[]} */
  words(text) {
    const { cleans, splits_chinese, strips_accents, lowercases } = this.options;
    if (cleans) text = text.replace(DROPPED, "");
    if (splits_chinese) text = text.replace(CHINESE, " $& ");
    if (strips_accents) text = text.normalize("NFD").replace(/\p{Mn}/gu, "");
    // letter by letter: the lower case of a Greek sigma does not depend on its place in the word
    if (lowercases) text = Array.from(text, (letter) => letter.toLowerCase()).join("");
    return (text.match(PIECES) ?? []).flatMap((word) => this.pieces([...word]));
  }

  /** Return the ids of the longest tokens that make up a word, or that of the unknown token. @param {string[]} letters */
  pieces(letters) {
    const { unknown, prefix, longest } = this.options;
    const found = [];
    for (let start = 0, end = letters.length; start < letters.length; start = end, end = letters.length) {
      let id;
      do id = this.ids.get((start ? prefix : "") + letters.slice(start, end).join(""));
      while (id === undefined && --end > start);
      if (id === undefined || letters.length > longest) return [Number(this.ids.get(unknown))];
      found.push(id);
    }
    return found;
  }
}
