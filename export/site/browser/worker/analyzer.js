// Text to terms, as function/engine/keyword/analyzer.py does it, which explains the rules.
// Left out: the limit of 30 marks in a run, which protects a server.

const SINGLE = "\\u0e00-\\u0e7f\\u3040-\\u30ff\\u3400-\\u4dbf\\u4e00-\\u9fff\\uf900-\\ufaff"; // Thai, kana and Chinese
const MARK = "[\\u0300-\\u036f\\u0900-\\u0963\\u0966-\\u0dff]";
const LETTER = `(?![_${SINGLE}])[\\p{L}\\p{N}]`; // or a digit
const SPACE = "\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000"; // Python's \s

/** @param {string} single characters of a script without blanks: one by one, or a run of them */
const word = (single) => `(?:${single}|(?:${LETTER})+(?:${MARK}+(?:${LETTER})*)*|(?:${MARK}+(?:${LETTER})*)+)`;
/** @param {string} single */
const code = (single) => new RegExp(`${word(single)}(?:[-_./:@&]${word(single)})*[+#]*`, "gu");
/** @param {string} pattern */
const regex = (pattern) => new RegExp(pattern, "gu");

export const WORD = regex(word(`[${SINGLE}]`));
export const PAIR = regex(`(?=([${SINGLE}]{2}))`);
const VERSIONS = [
  { codes: code(`[${SINGLE}]`), words: WORD },
  { codes: code(`[${SINGLE}]+`), words: regex(word(`[${SINGLE}]+`)) },
];
const RUN = new RegExp(`^[${SINGLE}]+$`, "u");
const QUOTED = regex(`(?<![^${SPACE}])["“„]([^"“”„]+)["”“]`);
const BARE = { ø: "o", ł: "l", đ: "d", ð: "d", ħ: "h", ı: "i", æ: "ae", œ: "oe", þ: "th" };
const LONGEST_STEMMED = 1000; // letters

/** @param {string} text */
export const isAlphabetic = (text) => /^\p{L}+$/u.test(text);
/** @param {string} text */
const isAscii = (text) => /^[\0-\x7f]*$/.test(text);

export class Analyzer {
  /**
   * @param {number} version the version of the terms
   * @param {((word: string) => string) | null} stem
   * @param {Record<string, string>} folded letters whose case folding is not their lower case
   */
  constructor(version, stem, folded) {
    this.version = version;
    this.stemmer = stem;
    this.folded = folded;
  }

  /**
   * Return the terms of a text, repeated as often as they occur. Only a query leaves out the characters of pairs.
   * @param {string} text
   */
  terms(text, isQuery = true) {
    const isPlain = this.version === 1 || isAscii(text);
    return this.codes(text).flatMap(({ code, words }) => {
      const isCode = words.length !== 1 || words[0] !== code;
      const whole = !isCode ? [] : isPlain ? [code] : this.spellings(code, (term) => term);
      return [...whole, ...words.flatMap((word) => (isPlain ? [this.stem(word)] : this.termsOf(word, isQuery)))];
    });
  }

  /**
   * Return each code of a text in its one form, and its words; a word by itself is a code of one word.
   * @param {string} text
   */
  codes(text) {
    const { codes, words } = VERSIONS[this.version - 1];
    const fold = (/** @type {string} */ letter) => this.folded[letter] ?? letter.toLowerCase();
    const form = Array.from(text.normalize("NFKC"), fold).join("");
    return (form.match(codes) ?? []).map((code) => ({ code, words: code.match(words) ?? [] }));
  }

  /**
   * @param {string} word
   * @param {boolean} isQuery
   */
  termsOf(word, isQuery) {
    if (!RUN.test(word)) return this.spellings(word, (term) => this.stem(term));
    const pairs = Array.from(word.matchAll(PAIR), ([, pair]) => pair);
    return word.length === 1 || !isQuery ? [...pairs, ...word] : pairs;
  }

  /**
   * Return a word and, if that differs, the word without accents.
   * @param {string} word
   * @param {(word: string) => string} stem
   */
  spellings(word, stem) {
    const letters = word.normalize("NFD").replace(/[\u0300-\u036f]+/g, "");
    const bare = letters.replace(/[øłđðħıæœþ]/g, (one) => BARE[/** @type {keyof BARE} */ (one)]).normalize("NFC");
    return isAscii(word) || !bare.match(WORD) ? [stem(word)] : [...new Set([stem(word), stem(bare)])];
  }

  /** @param {string} word */
  stem(word) {
    const isStemmed = this.stemmer && word.length <= LONGEST_STEMMED && isAlphabetic(word);
    return isStemmed ? /** @type {any} */ (this.stemmer)(word) : word;
  }
}

/**
 * Return the parts of a text between quotation marks.
 * @param {string} text
 */
export const quotedParts = (text) => Array.from(text.matchAll(QUOTED), ([, part]) => part);

export { SPACE };
