// Text to terms, as semsearch/engine/keyword/analyzer.py does it, which explains the rules.

/** @import { Stem } from "./types.js" */

const SINGLE = "\\u0e00-\\u0e7f\\u3040-\\u30ff\\u3400-\\u4dbf\\u4e00-\\u9fff\\uf900-\\ufaff"; // Thai, kana and Chinese
const COMBINING = "[\\u0300-\\u036f\\u0900-\\u0963\\u0966-\\u0dff]";
export const LETTER = `(?:(?![_${SINGLE}])[\\p{L}\\p{N}])`; // or a digit
const LETTERS = `(?:${LETTER}+(?:${COMBINING}+${LETTER}*)*|(?:${COMBINING}+${LETTER}*)+)`;
const [WORDS, RUNS] = [`(?:[${SINGLE}]|${LETTERS})`, `(?:[${SINGLE}]+|${LETTERS})`];
const CODES = new RegExp(`${RUNS}(?:[-_./:@&]${RUNS})*[+#]*`, "gu");
const RUN_WORDS = new RegExp(RUNS, "gu");
const RUN = new RegExp(`^[${SINGLE}]+$`, "u");
/** @type {Record<string, string>} */
const BARE = { ø: "o", ł: "l", đ: "d", ð: "d", ħ: "h", ı: "i", æ: "ae", œ: "oe", þ: "th" };
const MOST_MARKS = 30; // maximum combining marks in a run
const LONG_RUN = /[\p{M}\uff9e\uff9f]{31,}/gu; // NFKC turns U+FF9E and U+FF9F into marks
const LONGEST_STEMMED = 1000; // letters
const LONGEST_QUERY = 300; // characters; a longer text was pasted, and its quotation marks are part of it

// a word or a code with these characters around it is another one without them: Python's string.punctuation, + and # kept
const AROUND = "!\"$%&'()*,\\-./:;<=>?@\\[\\\\\\]^_`{|}~\\s";
const EDGES = new RegExp(`^[${AROUND}]+|[${AROUND}]+$`, "gu");
const LONGEST_NAME = 64; // characters
const BEFORE_NAME = /^[\u201c\u2018\u00ab"'`([{<,;:!?*]+/u;
const AFTER_NAME = /[\u201d\u2019\u00bb"'`)\]}>,;:!?.*]+$/u;
export const [IN_HEADING, IN_TEXT] = ["=", "~"]; // first character of a name's terms

export const WORD = new RegExp(WORDS, "gu");
export const PAIR = new RegExp(`(?=([${SINGLE}]{2}))`, "gu");
// white space to Python
export const SPACE = "\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
const QUOTED = new RegExp(`(?<![^${SPACE}])(?:["“„]([^"“”„]+)["”“]|«([^«»]+)»|»([^«»]+)«)`, "gu");

/** @type {(text: string) => boolean} */
export const isAlphabetic = (text) => /^\p{L}+$/u.test(text);
/** @type {(text: string) => boolean} */
export const isAscii = (text) => /^[\0-\x7f]*$/.test(text);
/**
 * Return whether the combining class of a mark is not 0: normalization then moves it before U+0345, which has the highest
 * class, or behind U+0334, which has the lowest.
 * @type {(mark: string) => boolean}
 */
const isOrdered = (mark) =>
  !`\u0345${mark}`.normalize("NFKD").startsWith("\u0345") || `${mark}\u0334`.normalize("NFKD").startsWith("\u0334");

/** Return a run of marks without those after the first MOST_MARKS. @param {string} run */
function cutMarks(run) {
  let marks = 0;
  const isKept = (/** @type {string} */ mark) => {
    marks = isOrdered(mark) ? marks + 1 : 0;
    return marks <= MOST_MARKS;
  };
  return Array.from(run).filter(isKept).join("");
}

/** Return a word without its accents; "ø" and the like become letters. @param {string} word */
function foldAccents(word) {
  const letters = word.normalize("NFD").replace(/[\u0300-\u036f]+/g, "");
  return letters.replace(/[øłđðħıæœþ]/g, (one) => BARE[one]).normalize("NFC");
}

/** Return a name or a heading as it is typed: without accents, with straight apostrophes. @type {(name: string) => string} */
export const plainName = (name) => foldAccents(name.replace(/[\u2018\u2019]/g, "'"));

/** Return the parts of a query between quotation marks. @type {(text: string) => string[]} */
export const quotedParts = (text) =>
  [...text].length > LONGEST_QUERY
    ? []
    : Array.from(text.matchAll(QUOTED), ([, ...parts]) => parts.find(Boolean) ?? "");

/** @type {(text: string) => boolean} */
export const isAlphanumeric = (text) => /^[\p{L}\p{N}]+$/u.test(text);
/** @type {(text: string) => boolean} */
export const isDecimal = (text) => /^\p{Nd}+$/u.test(text);
/** @type {(name: string) => string} */
const withoutCall = (name) => name.replace(/\(\)$/, "");

/** @type {(word: string, stemmer: Stem | null) => string} */
const stemOf = (word, stemmer) =>
  stemmer && word.length <= LONGEST_STEMMED && isAlphabetic(word) ? stemmer(word) : word;

export class Analyzer {
  /**
   * @param {(Stem | null)[]} stemmers those of the languages of the corpus, null for words without stems
   * @param {Record<string, string>} folded by case folding @param {string[]} stopWords that highlights leave out
   */
  constructor(stemmers, folded, stopWords) {
    this.stopWords = new Set(stopWords);
    this.stemmers = stemmers;
    this.folded = folded; // letters whose case folding is not their lower case
  }

  /**
   * Return the terms of a query in each language of the corpus, because a query does not say its own.
   * @type {(text: string) => string[][]}
   */
  termsByLanguage(text) {
    // most words of a text, in a tenth of the time
    if (/^[A-Za-z]+$/.test(text)) return this.stemmers.map((stemmer) => [stemOf(text.toLowerCase(), stemmer)]);
    const codes = this.codes(text);
    return this.stemmers.map((stemmer) =>
      codes.flatMap(({ code, words }) => {
        const isCode = words.length !== 1 || words[0] !== code;
        const terms = words.flatMap((word) => this.termsOf(word, stemmer));
        return isCode ? [...this.spellings(code, (term) => term), ...terms] : terms;
      }),
    );
  }

  /** Return the terms of a query in all languages of the corpus, each once. @type {(text: string) => string[]} */
  terms(text) {
    return [...new Set(this.termsByLanguage(text).flat())];
  }

  /**
   * Return the words of each code of two or three with hyphens or underscores, and the word that they make without.
   * @param {string} text
   */
  joinedCodes(text) {
    return this.codes(/[-_]/.test(text) ? text : "").flatMap(({ code, words: parts }) => {
      const whole = parts.join("");
      const isShort = parts.length === 2 || parts.length === 3;
      const isJoined = isShort && code.split(/[-_]/).join(" ") === parts.join(" ") && !isDecimal(whole);
      return isJoined && !parts.some((part) => RUN.test(part)) ? [{ parts, whole }] : [];
    });
  }

  /** Return the words of a text, those of its codes one by one. @param {string} text */
  words(text) {
    return this.codes(text).flatMap(({ words }) => words);
  }

  /** Return a text in lower case, as Python's casefold makes it. @param {string} text */
  fold(text) {
    return Array.from(text, (letter) => this.folded[letter] ?? letter.toLowerCase()).join("");
  }

  /**
   * Return two words of a text and the word that they make without the blank between them; no stop word is one.
   * @param {string} text
   */
  joinedNeighbours(text) {
    const words = this.fold(text)
      .split(new RegExp(`[${SPACE}]+`, "u"))
      .filter(Boolean);
    return words.slice(1).flatMap((right, i) => {
      const whole = (words[i] + right).replace(EDGES, "");
      const [left, last] = [words[i], right].map((word) => word.replace(EDGES, ""));
      const isWord = isAlphanumeric(whole) && !isDecimal(whole);
      const parts = [left, last];
      return isWord && !parts.some((part) => this.stopWords.has(part)) ? [{ parts, whole }] : [];
    });
  }

  /** Return a text as headings are compared, null if it is too long. @param {string} text */
  findHeading(text) {
    const words = this.fold(text)
      .split(new RegExp(`[${SPACE}]+`, "u"))
      .filter(Boolean);
    const heading = words.join(" ").replace(EDGES, "");
    return heading && [...heading].length <= LONGEST_NAME ? heading : null;
  }

  /** Return the name that a text is, null if it is none. @param {string} text */
  findName(text) {
    const name = text.replace(new RegExp(`^[${SPACE}]+|[${SPACE}]+$`, "gu"), "");
    if ([...name].length > LONGEST_NAME || new RegExp(`[${SPACE}]`, "u").test(name)) return null;
    const bare = withoutCall(withoutCall(name).replace(BEFORE_NAME, "").replace(AFTER_NAME, ""));
    return /\p{L}/u.test(bare) ? this.fold(bare) : null;
  }

  /** Return the codes of a text in its one form, and the words of each. @param {string} text */
  codes(text) {
    const fold = (/** @type {string} */ letter) => this.folded[letter] ?? letter.toLowerCase();
    const cut = text.replace(LONG_RUN, cutMarks).normalize("NFKC");
    const found = Array.from(cut, fold).join("").match(CODES) ?? [];
    return found.map((code) => ({ code, words: code.match(RUN_WORDS) ?? [] }));
  }

  /**
   * Return the last word of a text and the last code, also without accents; none if the last word is complete.
   * @param {string} text
   */
  unfinishedWords(text) {
    const last = [...text].at(-1) ?? " ";
    if (!last.match(new RegExp(`^${WORDS}$`, "u"))) return [];
    const { code, words } = this.codes(text).at(-1) ?? { code: "", words: [] };
    const ends = words.slice(-1).concat(code || []);
    return [...new Set(ends.flatMap((end) => this.spellings(end, (term) => term)))];
  }

  /** Return the terms of a word; a query leaves out the characters of pairs. @type {(word: string, stemmer: Stem | null) => string[]} */
  termsOf(word, stemmer) {
    if (!RUN.test(word)) return this.spellings(word, (term) => stemOf(term, stemmer));
    const pairs = Array.from(word.matchAll(PAIR), ([, pair]) => pair);
    return word.length === 1 ? [word] : pairs;
  }

  /** Return a word and, if that differs, the word without accents. @param {string} word @param {Stem} stem */
  spellings(word, stem) {
    const bare = foldAccents(word);
    return isAscii(word) || !bare.match(WORD) ? [stem(word)] : [...new Set([stem(word), stem(bare)])];
  }
}
