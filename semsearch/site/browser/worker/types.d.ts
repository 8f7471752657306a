// Types that the modules share.

export type Numbers = Int8Array | Uint8Array | Uint16Array | Uint32Array | Int32Array | Float32Array | Float64Array;
export type Tensors = Record<string, any>;
/** (rows,), 1 for the rows that can be found; null allows every row */
export type Mask = Uint8Array | null;
export type Hit = { row: number; score: number | null; scores?: Record<string, number> };
/** What each column adds to scores */
export type Boosts = Record<string, { weight: number; half_life?: string; equals?: any; log?: true }>;
/** Returns the first hits of a ranking among the rows of a mask. */
export type Find = (count: number, allowed: Mask, rough?: boolean) => Hit[];
/** The value of a row in a column; of a date, microseconds since 1970 */
export type Value = string | number | bigint | boolean;
export type Test = (value: Value) => boolean;
export type Stem = (word: string) => string;
/** The words that replace a misspelled word, each with its terms */
export type Correction = Map<string, string[]>;
/** The rows of a term and their impacts; a row's part of the score is its impact times the weight */
export type Postings = { rows: Uint32Array | Int32Array; impacts: Uint8Array; weight: number };
/** Adds to a query what it also finds */
export type Rewriting = (
  keywords: import("./keywords.js").Keywords,
  query: import("./rewritings.js").RewrittenQuery,
) => void | Promise<void>;
/** The words of the corpus, the tokenizer, and the share of the words that it has as one token */
export type Lexicon = { words: string[]; tokenizer: import("./wordpiece.js").WordPiece; known: number };
export type Range = [start: number, end: number];
export type Embed = (text: string) => Promise<{ embedding: Float32Array; isTruncated: boolean }>;
export type Lap = (phase: string) => void;
export type Stages = { candidates: number; rescored: number };
export type WordPieceOptions = {
  unknown: string;
  prefix: string;
  longest: number;
  cleans: boolean;
  splits_chinese: boolean;
  strips_accents: boolean;
  lowercases: boolean;
  added: Record<string, number>;
  before: number[];
  after: number[];
  max_tokens: number;
  prompt: string; // put before each query
};
export type Request = {
  text?: string;
  id?: string;
  num_results: number;
  mode?: string;
  prefix?: boolean;
  filter?: any;
  sort?: Record<string, string>;
  group_by?: string;
  group_size?: number;
  facets?: string[];
  facets_of?: string;
  highlights?: boolean;
  correct?: boolean;
  without?: string[];
  boost?: Boosts;
  offset?: number;
  min_score?: number | "floor";
};
