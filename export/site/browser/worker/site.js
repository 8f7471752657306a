// The site's search: POST /similar and GET /info as the function answers them, for what the page asks.

import { Analyzer } from "./analyzer.js";
import { readTensors, rowsOf } from "./arrays.js";
import { Column, countValues, idColumn, sortRows } from "./columns.js";
import { allowedRows, namesIn } from "./filters.js";
import { highlight } from "./highlights.js";
import { fuse } from "./hybrid.js";
import { Keywords } from "./keywords.js";
import { findGroups, findPage } from "./ranking.js";
import { Index } from "./semantic.js";

const MOST_SORTED = 1000;
const FEW = 100; // values of a facet

/**
 * @typedef {{embed: (text: string) => Promise<{embedding: Float32Array, isTruncated: boolean}>}} Embedder
 * @typedef {{text?: string, id?: string, num_results: number, mode?: string, filter?: any, sort?: Record<string, string>,
 *   group_by?: string, group_size?: number, facets?: string[], highlights?: boolean, offset?: number}} Request
 */

export class Site {
  /**
   * @param {any} described the content of site.json
   * @param {import("./files.js").Files} files
   * @param {(word: string) => string} stem
   * @param {Embedder} embedder
   */
  constructor(described, files, stem, embedder) {
    this.info = described.info;
    this.starts = described.starts; // the first row of each shard of passages
    this.files = files;
    this.embedder = embedder;
    const { keywords, rows, columns } = this.info.index;
    const stems = new Map(Object.entries(described.stems));
    const stemmer = keywords?.stemming ? (/** @type {string} */ word) => stems.get(word) ?? stem(word) : null;
    this.analyzer = new Analyzer(keywords?.analyzer ?? 2, stemmer, described.folded);
    this.rows = rows;
    this.kinds = "id" in columns ? columns : { id: "string", ...columns };
    /** @type {Map<string, Promise<any>>} */
    this.opened = new Map();
  }

  /**
   * Return what a file becomes, made once.
   * @template T
   * @param {string} name
   * @param {(content: ArrayBuffer) => T} make
   * @returns {Promise<T>}
   */
  open(name, make) {
    const opened = this.opened.get(name) ?? this.files.read(name).then(make);
    this.opened.set(name, opened);
    opened.catch(() => this.opened.delete(name)); // it is tried again
    return opened;
  }

  keywords() {
    return this.open("keywords", (content) => new Keywords(readTensors(content), this.analyzer, this.rows));
  }

  index() {
    return this.open("index", (content) => new Index(readTensors(content), this.info.index.stages));
  }

  ids() {
    return this.open("ids", (content) => /** @type {string[]} */ (JSON.parse(new TextDecoder().decode(content))));
  }

  /** @param {string} name @returns {Promise<Column>} */
  async column(name) {
    const number = Object.keys(this.info.index.columns).indexOf(name);
    if (number < 0) return idColumn(await this.ids());
    return this.open(`column-${number}`, (content) => new Column(this.kinds[name], this.rows, readTensors(content)));
  }

  /** @param {number} row @returns {Promise<[string, string, Record<string, unknown>]>} id, text and metadata */
  async passage(row) {
    const shard = this.starts.findLastIndex((/** @type {number} */ start) => start <= row);
    const rows = await this.open(`passages-${shard}`, (content) => JSON.parse(new TextDecoder().decode(content)));
    return rows[row - this.starts[shard]];
  }

  /**
   * Return the reply of POST /similar.
   * @param {Request} request
   * @param {(phase: string) => void} lap ends a phase
   */
  async similar(request, lap) {
    const { text, id, num_results: count, offset = 0, group_by: groupBy, group_size: size = 3 } = request;
    const named = [...namesIn(request.filter), ...Object.keys(request.sort ?? {}), ...(request.facets ?? []), groupBy];
    const known = [...new Set(named)].filter((name) => name !== undefined && Object.hasOwn(this.kinds, name));
    const opened = await Promise.all(known.map(async (name) => /** @type {const} */ ([name, await this.column(String(name))])));
    const columns = /** @type {Record<string, Column>} */ (Object.fromEntries(opened));
    const column = (/** @type {string} */ name) => {
      if (columns[name]) return columns[name];
      throw new Error(`there is no column ${JSON.stringify(name)}; the columns are ${Object.keys(this.kinds).join(", ")}`);
    };
    let allowed = request.filter ? allowedRows(request.filter, columns, this.rows) : null;
    if (request.filter) lap("filter");
    const facets = (/** @type {import("./arrays.js").Mask} */ mask) =>
      request.facets && {
        facets: Object.fromEntries(request.facets.map((name) => [name, countValues(column(name), mask, FEW)])),
        total: rowsOf(mask, this.rows).length,
      };
    const sort = Object.entries(request.sort ?? {}).map(([name, way]) => /** @type {[Column, boolean]} */ ([column(name), way === "desc"]));
    if (text === undefined && id === undefined) {
      const rows = sortRows([...rowsOf(allowed, this.rows)], sort);
      const page = rows.slice(offset, offset + count).map((row) => ({ row, score: null }));
      const results = await this.show(page, request, "", []);
      lap("search");
      return { results, truncated: false, ...facets(allowed), total: rows.length };
    }
    const row = id === undefined ? null : (await this.ids()).indexOf(id);
    if (row === -1) throw new Error(`there is no text with the id ${JSON.stringify(id)}; search for one`);
    const query = row === null ? String(text) : (await this.passage(row))[1].replace(/["“”„]/g, "");
    if (row !== null) {
      allowed = allowed ? allowed.slice() : new Uint8Array(this.rows).fill(1);
      allowed[row] = 0;
    }
    const { find, matching, corrected, truncated } = await this.rank(request.mode ?? "semantic", query, row, allowed, lap);
    const terms = [...corrected.values()].flatMap((/** @type {Map<string, string>} */ each) => [...each.keys()]);
    let results;
    if (groupBy !== undefined) {
      const groups = findGroups(find, column(groupBy), matching(), offset, count, size);
      const shown = await this.show(groups.flatMap(({ hits }) => hits), request, query, terms);
      results = groups.map(({ value, hits }) => {
        const [best, ...others] = shown.splice(0, hits.length);
        return { ...best, group: value, other_passages: others };
      });
    } else if (sort.length) {
      const hits = find(request.mode === "keyword" ? this.rows : MOST_SORTED, null);
      const byRow = new Map(hits.map((hit) => [hit.row, hit]));
      const page = sortRows([...byRow.keys()], sort).slice(offset, offset + count);
      results = await this.show(page.map((each) => /** @type {any} */ (byRow.get(each))), request, query, terms);
    } else results = await this.show(findPage(find, offset, count), request, query, terms);
    lap("search");
    const words = [...corrected].map(([word, each]) => [word, [...each.values()]]);
    return { results, truncated, ...facets(matching()), ...(words.length && { corrected: Object.fromEntries(words) }) };
  }

  /**
   * Return the ranking of the allowed rows in a mode: what finds its first hits, and which rows it has.
   * @param {string} mode
   * @param {string} text
   * @param {number | null} row the row whose stored embedding is the query's
   * @param {import("./arrays.js").Mask} allowed
   * @param {(phase: string) => void} lap
   * @returns {Promise<{find: import("./ranking.js").Find, matching: () => import("./arrays.js").Mask,
   *   corrected: Map<string, Map<string, string>>, truncated: boolean}>}
   */
  async rank(mode, text, row, allowed, lap) {
    const matches = mode === "semantic" ? null : (await this.keywords()).match(text, allowed);
    const [corrected, isTruncated] = [matches?.corrected ?? new Map(), matches?.isTruncated ?? false];
    if (matches) lap("keyword");
    if (matches && mode === "keyword") {
      const matching = () => Uint8Array.from(matches.scores, (score) => Number(score > 0));
      return { find: (count, mask) => matches.best(count, mask), matching, corrected, truncated: isTruncated };
    }
    const index = await this.index();
    const query = row === null ? await this.embedder.embed(text) : { embedding: index.embedding(row), isTruncated: false };
    lap("embed");
    const truncated = isTruncated || query.isTruncated;
    /** @type {import("./ranking.js").Find} */
    const find = matches
      ? (count, mask) => fuse(index, query.embedding, matches, this.info.index.keywords, count, mask)
      : (count, mask) => index.search(query.embedding, count, mask ?? allowed);
    return { find, matching: () => (matches ? matches.allowed : allowed), corrected, truncated };
  }

  /**
   * Return hits as a reply shows them.
   * @param {any[]} hits
   * @param {Request} request
   * @param {string} query
   * @param {string[]} corrected
   * @returns {Promise<any[]>}
   */
  async show(hits, request, query, corrected) {
    const passages = await Promise.all(hits.map(({ row }) => this.passage(row)));
    const shown = hits.map(({ row, score, scores }, i) => {
      const [id, text, metadata] = passages[i];
      return { index: row, id, score, ...(scores && { scores }), text, metadata };
    });
    if (!request.highlights) return shown;
    const texts = passages.map(([, text]) => text);
    const found = highlight(texts, query, this.analyzer, corrected, (request.mode ?? "semantic") !== "semantic");
    return shown.map((each, i) => {
      const { ranges, snippet: [start, end] } = found[i];
      const text = [...each.text].slice(start, end).join("");
      return { ...each, highlights: query ? ranges : [], snippet: { start, end, text } };
    });
  }
}
