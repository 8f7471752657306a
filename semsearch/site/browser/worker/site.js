// The site's search: what POST /similar of the function answers, for the fields that the page sends.

/** @import { Correction, Embed, Find, Hit, Lap, Lexicon, Mask, Request } from "./types.js" */
import { Analyzer } from "./analyzer.js";
import { both, maskOf, readTensors, rowsOf } from "./arrays.js";
import { boosted, boostOf } from "./boosts.js";
import { Column, countValues, sortRows } from "./columns.js";
import { allowedRows, namesIn } from "./filters.js";
import { highlight } from "./highlights.js";
import { fuse } from "./hybrid.js";
import { Keywords } from "./keywords.js";
import { openTable } from "./model.js";
import { findGroups, findPage } from "./ranking.js";
import { Index } from "./semantic.js";
import { stemmers } from "./stemmers.js";
import { WordPiece } from "./wordpiece.js";

const MOST_RESULTS = 100; // best texts that facets count with facets_of: "results"
const PATH = "path";
const PLACE = [PATH, "url", "version", "language"]; // metadata that say where a copy of a section is
const MOST_COPIES = 20; // copies of a section that a result names
const FLOOR = "floor"; // a min_score: that which was measured for the mode when the index was made
const MOST_SORTED = 1000; // hits that are sorted by columns in the modes that find every text

/** Return what finds only hits of a least score. @type {(find: Find, least: number) => Find} */
const above = (find, least) => (count, mask, rough) =>
  find(count, mask, rough).filter(({ score }) => Number(score) >= least);

/** @type {(content: ArrayBuffer) => string[]} */
const linesOf = (content) => new TextDecoder().decode(content).split("\n");

export class Site {
  /** @param {any} described site.json @param {import("./files.js").Files} files @param {Embed} embed */
  constructor(described, files, embed) {
    this.info = described.info;
    this.columns = described.columns; // the names in the order of their files
    this.leftOut = described.left_out; // columns whose numbers JavaScript would round
    this.starts = described.starts; // the first row of each shard of passages
    this.wordpiece = described.wordpiece;
    this.hasSections = "sections" in described.files;
    this.files = files;
    this.embed = embed;
    const { rows, columns } = this.info.index;
    this.analyzer = new Analyzer(stemmers, described.folded, described.stop_words);
    this.rows = rows;
    this.kinds = { id: "string", ...columns };
    /** @type {Map<string, Promise<any>>} */
    this.opened = new Map();
  }

  /** Return what a file becomes, made once. @type {<T>(name: string, make: (content: ArrayBuffer) => T) => Promise<T>} */
  open(name, make) {
    const opened = this.opened.get(name) ?? this.files.read(name).then(make);
    this.opened.set(name, opened);
    opened.catch(() => this.opened.delete(name)); // the next request tries again
    return opened;
  }

  keywords() {
    const { synonyms } = this.info.index.keywords;
    return this.open("keywords", (content) => new Keywords(readTensors(content), this.analyzer, this.rows, synonyms));
  }

  tokenizer() {
    const open = (/** @type {ArrayBuffer} */ content) => new WordPiece(linesOf(content), this.wordpiece);
    return this.open("vocabulary", open);
  }

  /** Return what embeds a query without the model. @type {() => Promise<Embed>} */
  async table() {
    const [table, tokenizer] = await Promise.all([this.open("queries", readTensors), this.tokenizer()]);
    return openTable(table, () => this.others(), tokenizer);
  }

  others() {
    return this.open("others", readTensors);
  }

  async lexicon() {
    const [words, tokenizer] = await Promise.all([this.open("words", linesOf), this.tokenizer()]);
    return { words, tokenizer, known: this.info.index.keywords.known_words };
  }

  index() {
    return this.open("index", (content) => new Index(readTensors(content), this.info.index.stages));
  }

  /** @type {(name: string) => Promise<any>} */
  json(name) {
    return this.open(name, (content) => JSON.parse(new TextDecoder().decode(content)));
  }

  /** @type {(name: string) => Promise<Column>} */
  async column(name) {
    const number = this.columns.indexOf(name);
    if (number < 0) return new Column("string", this.rows, { values: await this.json("ids") });
    return this.open(`column-${number}`, (content) => new Column(this.kinds[name], this.rows, readTensors(content)));
  }

  /** Return the number of each row's section. @type {() => Promise<import("./types.js").Numbers>} */
  async sections() {
    return (await this.open("sections", readTensors)).sections;
  }

  /**
   * Add `also_in` to results whose section other documents have too: where it is in each of them.
   * @type {(sections: import("./types.js").Numbers, results: any[], hits: Hit[]) => Promise<void>}
   */
  async addCopies(sections, results, hits) {
    const wanted = new Set(hits.map(({ row }) => sections[row]));
    /** @type {Map<number | bigint, Map<string, object>>} the places of each section, by the path of the document */
    const places = new Map();
    for (const row of rowsOf(null, this.rows)) {
      if (!wanted.has(sections[row])) continue;
      const metadata = /** @type {any} */ ((await this.passage(row))[2]);
      const known = places.get(sections[row]) ?? new Map();
      places.set(sections[row], known);
      const place = PLACE.filter((name) => Object.hasOwn(metadata, name)).map((name) => [name, metadata[name]]);
      if (!known.has(metadata.path)) known.set(metadata.path, Object.fromEntries(place));
    }
    hits.forEach(({ row }, i) => {
      const others = [...(places.get(sections[row]) ?? [])].filter(([path]) => path !== results[i].metadata.path);
      if (others.length) results[i].also_in = others.slice(0, MOST_COPIES).map(([, place]) => place);
    });
  }

  /** Return id, text and metadata of a row. @type {(row: number) => Promise<[string, string, object]>} */
  async passage(row) {
    const shard = this.starts.findLastIndex((/** @type {number} */ start) => start <= row);
    return (await this.json(`passages-${shard}`))[row - this.starts[shard]];
  }

  /** Return the floor of a mode. @type {(mode: string) => number} */
  floor(mode) {
    const score = this.info.index.floor[mode]?.score;
    if (typeof score === "number") return score;
    throw new Error(
      `min_score: found floor, but this index has none in the mode ${mode}; use another mode or a number`,
    );
  }

  /** Return the reply to a request. @type {(request: Request, lap: Lap) => Promise<object>} */
  async similar(request, lap) {
    const { text, id, num_results: count, offset = 0, group_by: group, sort = {}, facets = [], filter } = request;
    const least = request.min_score;
    const boost = request.boost ?? this.info.index.boost;
    const named = [...namesIn(filter), ...Object.keys({ ...sort, ...boost }), ...facets, ...(group ? [group] : [])];
    const rounded = named.find((name) => this.leftOut.includes(name));
    if (rounded !== undefined) {
      const found = `${rounded}: found whole numbers from 2^53 on, which browsers round, expected smaller ones`;
      throw new Error(`${found}; index the texts with --column ${rounded}=string, or ask a server`);
    }
    const known = named.filter((name) => Object.hasOwn(this.kinds, name));
    const opened = await Promise.all(known.map(async (name) => [name, await this.column(name)]));
    /** @type {Record<string, Column>} */
    const columns = Object.fromEntries(opened);
    let allowed = filter ? allowedRows(filter, columns, this.rows) : null;
    const missing = named.find((name) => !Object.hasOwn(columns, name));
    if (missing) throw new Error(`there is no column ${missing}; the columns are ${Object.keys(this.kinds)}`);
    if (filter) lap("filter");
    /** @type {[Column, boolean][]} */
    const order = Object.entries(sort).map(([name, way]) => [columns[name], way === "desc"]);
    const counted = (/** @type {Mask} */ mask) => ({
      facets: Object.fromEntries(facets.map((name) => [name, countValues(columns[name], mask)])),
      total: rowsOf(mask, this.rows).length,
    });
    const hasBoost = Object.keys(boost).length > 0;
    const added = boostOf(boost, columns, Date.now() / 1000);
    if (text === undefined && id === undefined) {
      if (least !== undefined) throw new Error("min_score: found without a text, expected a text or an id");
      const found = Array.from(rowsOf(allowed, this.rows));
      if (hasBoost && !order.length) {
        const boosts = new Map(found.map((row) => [row, added(row)]));
        found.sort((one, other) => Number(boosts.get(other)) - Number(boosts.get(one)));
      }
      const rows = sortRows(found, order);
      const page = rows.slice(offset, offset + count).map((row) => ({ row, score: null }));
      const results = await this.show(page, request, "", []);
      return { results, truncated: false, ...(facets.length ? counted(allowed) : { total: rows.length }) };
    }
    let row = /** @type {number | null} */ (null);
    let query = String(text);
    if (id !== undefined) {
      row = /** @type {number} */ ((await this.json("ids")).indexOf(id));
      if (row < 0) throw new Error(`there is no text with the id ${id}; search for one`);
      query = (await this.passage(row))[1].replace(/["“”„]/g, "");
      const others = maskOf(this.rows, (each) => each !== row);
      allowed = both(others, allowed);
    }
    const mode = request.mode ?? (this.info.index.keywords && id === undefined ? "hybrid" : "semantic");
    const isPrefix = Boolean(request.prefix) && id === undefined;
    const openLexicon = request.correct === false ? null : () => this.lexicon();
    const { without } = request;
    if (without?.length && mode === "semantic")
      throw new Error("without: found words in the mode semantic, expected keyword or hybrid");
    const ranking = await this.rank(mode, query, row, allowed, { isPrefix, openLexicon, without }, lap);
    const { matching, corrected, completed, truncated } = ranking;
    let { find } = ranking;
    if (least === FLOOR) find = above(find, this.floor(mode)); // measured without boosts
    if (hasBoost) find = boosted(find, added, mode);
    if (typeof least === "number") find = above(find, least);
    const terms = Array.from(corrected.values(), (each) => [...each.values()])
      .flat(2)
      .concat(completed);
    const show = (/** @type {Hit[]} */ hits) => this.show(hits, { ...request, mode }, query, terms);
    let results;
    if (group) {
      const sections = group === PATH && this.hasSections ? await this.sections() : null;
      const groups = findGroups(find, columns[group], sections, matching(), offset, count, request.group_size ?? 3);
      const hits = groups.flatMap(({ hits }) => hits);
      const shown = await show(hits);
      if (sections) await this.addCopies(sections, shown, hits);
      results = groups.map(({ group, hits }) => {
        const [best, ...others] = shown.splice(0, hits.length);
        return { ...best, group, other_passages: others };
      });
    } else if (order.length) {
      const depth = mode === "keyword" ? this.rows : MOST_SORTED;
      const hits = new Map(find(depth, null).map((hit) => [hit.row, hit]));
      const page = sortRows(hits.keys(), order).slice(offset, offset + count);
      results = await show(page.flatMap((each) => hits.get(each) ?? []));
    } else results = await show(findPage(find, offset, count));
    lap("search");
    const words = Array.from(corrected, ([word, each]) => [word, [...each.keys()]]);
    const best = request.facets_of === "results" && new Set(find(MOST_RESULTS, null).map(({ row }) => row));
    const found = best ? maskOf(this.rows, (each) => best.has(each)) : matching();
    const reply = { results, truncated, ...(facets.length && counted(found)) };
    return words.length ? { ...reply, corrected: Object.fromEntries(words) } : reply;
  }

  /**
   * Return the ranking of the allowed rows in a mode: what finds its first hits, and which rows it has. With `row`, the
   * stored embedding of that row is the query's.
   * @type {(mode: string, text: string, row: number | null, allowed: Mask, words: {isPrefix: boolean,
   *   openLexicon: (() => Promise<Lexicon>) | null, without?: string[]}, lap: Lap) => Promise<
   *   {find: Find, matching: () => Mask, corrected: Map<string, Correction>, completed: string[], truncated: boolean}>}
   */
  async rank(mode, text, row, allowed, { isPrefix, openLexicon, without }, lap) {
    const keywords = mode === "semantic" ? null : await this.keywords();
    const matches = keywords && (await keywords.match(text, allowed, isPrefix, openLexicon, without));
    const { corrected = new Map(), completed = [], isTruncated = false } = matches?.about ?? {};
    if (matches) lap("keyword");
    if (matches && mode === "keyword") {
      const find = (/** @type {number} */ count, /** @type {Mask} */ mask) => matches.within(mask).best(count);
      return { find, matching: () => matches.matching(), corrected, completed, truncated: isTruncated };
    }
    const index = await this.index();
    const query = row === null ? await this.embed(text) : { embedding: index.embedding(row), isTruncated: false };
    lap("embed");
    /** @type {Find} */
    const find = matches
      ? (count, mask, rough) => fuse(index, query.embedding, matches, this.info.index.keywords, count, mask, rough)
      : (count, mask, rough) => index.search(query.embedding, count, mask ?? allowed, rough);
    const matching = () => (matches ? matches.allowed : allowed);
    return { find, matching, corrected, completed, truncated: isTruncated || query.isTruncated };
  }

  /** Return hits as a reply shows them. @type {(h: Hit[], r: Request, query: string, terms: string[]) => Promise<any[]>} */
  async show(hits, { highlights, mode = "semantic" }, query, corrected) {
    const passages = await Promise.all(hits.map(({ row }) => this.passage(row)));
    const texts = passages.map(([, text]) => text);
    const found = highlights ? highlight(texts, query, this.analyzer, corrected, mode !== "semantic") : [];
    return hits.map(({ row, ...scores }, i) => {
      const [id, text, metadata] = passages[i];
      return { index: row, id, ...scores, text, metadata, ...found[i] };
    });
  }
}
