// Text to token ids: WordPiece in the way of BERT, as the library of tokenizers does it.
// Source: https://github.com/google-research/bert/blob/master/tokenization.py

const CHINESE = /[\u4e00-\u9fff\u3400-\u4dbf\uf900-\ufaff\u{20000}-\u{2a6df}\u{2a700}-\u{2ceaf}\u{2f800}-\u{2fa1f}]/gu;
const DROPPED = /(?![\t\n\r])[\p{C}\ufffd]/gu;
const PIECES = /[!-/:-@[-`{-~\p{P}]|[^\s\x85!-/:-@[-`{-~\p{P}]+/gu; // a mark by itself, or what is between marks

/**
 * @typedef {{unknown: string, prefix: string, longest: number, cleans: boolean, splits_chinese: boolean,
 *   strips_accents: boolean, lowercases: boolean, added: Record<string, number>, before: number[], after: number[],
 *   max_tokens: number}} WordPieceOptions export/site/wordpiece.py writes them
 */

export class WordPiece {
  /**
   * @param {string[]} vocabulary the tokens in the order of their ids
   * @param {WordPieceOptions} options
   */
  constructor(vocabulary, options) {
    this.ids = new Map(vocabulary.map((token, id) => [token, id]));
    this.options = options;
    const names = Object.keys(options.added).map((name) => name.replace(/[^\p{L}\p{N}]/gu, "\\$&"));
    this.added = names.length ? new RegExp(`(${names.sort((a, b) => b.length - a.length).join("|")})`, "u") : /(?!)/;
  }

  /**
   * Return the ids of a text, special tokens included, and whether its end was cut off.
   * @param {string} text
   */
  tokenize(text) {
    const { added, before, after, max_tokens } = this.options;
    const parts = text.split(this.added);
    const ids = parts.flatMap((part) => (Object.hasOwn(added, part) ? [added[part]] : this.words(part)));
    const room = max_tokens - before.length - after.length;
    return { ids: [...before, ...ids.slice(0, room), ...after], isTruncated: ids.length > room };
  }

  /** @param {string} text */
  words(text) {
    return (this.normalize(text).match(PIECES) ?? []).flatMap((word) => this.pieces([...word]));
  }

  /** @param {string} text */
  normalize(text) {
    const { cleans, splits_chinese, strips_accents, lowercases } = this.options;
    if (cleans) text = text.replace(DROPPED, "");
    if (splits_chinese) text = text.replace(CHINESE, " $& ");
    if (strips_accents) text = text.normalize("NFD").replace(/\p{Mn}/gu, "");
    // letter by letter: the lower case of a Greek sigma does not depend on its place in the word
    return lowercases ? Array.from(text, (letter) => letter.toLowerCase()).join("") : text;
  }

  /**
   * Return the ids of the longest tokens that make up a word, or that of the unknown token.
   * @param {string[]} letters
   * @returns {number[]}
   */
  pieces(letters) {
    const { unknown, prefix, longest } = this.options;
    const none = [/** @type {number} */ (this.ids.get(unknown))];
    if (letters.length > longest) return none;
    const found = [];
    for (let start = 0, end = letters.length; start < letters.length; end = letters.length) {
      const token = () => (start ? prefix : "") + letters.slice(start, end).join("");
      while (end > start && !this.ids.has(token())) end--;
      if (end === start) return none;
      found.push(/** @type {number} */ (this.ids.get(token())));
      start = end;
    }
    return found;
  }
}
