// One search in the sites of several folders. Each answers by itself: scores of two indexes do not compare, so the results
// of a site follow all results of the site before it.

import { scopeFilters, scopeOf } from "./scope.js";

/** @type {Map<string, any>} searches without an error by their folders; the others are opened again the next time */
const known = new Map();

/**
 * Open the searches of folders, which are relative to the page. The result has what `open` of search.js returns, and
 * isSeveral. Each result has its `site`, and the first one of a site has isFirst. Errors of sites are in `errors`.
 * @type {(folders: string[]) => Promise<any>}
 */
export async function openSeveral(folders) {
  const name = folders.map((folder) => new URL(folder, location.href).href).join(" ");
  if (known.has(name)) return known.get(name);
  const sites = await Promise.all(folders.map(openOne));
  const opened = sites.filter(({ search }) => search);
  if (!opened.length) throw new Error(sites.map(({ error }) => error).join(" "));
  const sum = (/** @type {string} */ name) => opened.reduce((total, { state }) => total + state[name], 0);
  const state = {
    get loaded() {
      return sum("loaded");
    },
    get total() {
      return sum("total");
    },
    get hasMeaning() {
      return opened.every(({ state }) => state.hasMeaning);
    },
  };
  const names = new Set(opened.flatMap(({ values }) => Object.keys(values)));
  const union = Array.from(names, (name) => [name, [...new Set(opened.flatMap(({ values }) => values[name] ?? []))]]);
  // A boost of the request would replace that of an index.
  const isPlain = opened.every(({ index }) => index.columns.kind === "string" && !index.boost);
  const index = { columns: isPlain ? { kind: "string" } : {} };
  const several = {
    isSeveral: true,
    state,
    search: (/** @type {string} */ text, /** @type {any} */ options) => searchAll(sites, text, options),
    load: () => Promise.all(opened.map(({ search }) => search.load())),
    about: async () => ({ values: Object.fromEntries(union), floor: {}, index }),
    watch: (/** @type {(state: any) => void} */ call) =>
      opened.forEach(({ search }) => search.watch(() => call(state))),
  };
  if (opened.length === sites.length) known.set(name, several);
  return several;
}

/** Open one: its search, and the folder of its relative links; or only an error. @type {(name: string) => Promise<any>} */
async function openOne(name) {
  const folder = new URL(name.replace(/\/?$/, "/"), location.href);
  const script = new URL("search.js", folder).href;
  try {
    const { open } = await import(script).catch(() => {
      throw new Error(`${script} cannot be loaded. Check the network and the attribute src.`);
    });
    const search = await open();
    const { values, floor, index } = await search.about();
    const links = new URL("..", folder).href;
    return { title: index.title || name, links, search, values, floor, index, state: search.state };
  } catch (error) {
    return { error: `${name}: ${/** @type {Error} */ (error).message}` };
  }
}

/**
 * Search in all sites, or in `only` one. With isScoped, each searches only the version and the language of the page.
 * @type {(sites: any[], text: string, options: any) => Promise<any>}
 */
async function searchAll(sites, text, { isScoped, only, filter, ...options }) {
  const asked = sites.filter(({ links }) => !only || links === only.links);
  const replies = await Promise.all(
    asked.map(async (site) => {
      if (site.error) return site;
      const filters = [...(filter ? [filter] : []), ...(isScoped ? scopeFilters(scopeOf(site.values)) : [])];
      const own = filters.length ? { ...options, filter: { $and: filters } } : options;
      return site.search.search(text, own).catch((/** @type {Error} */ { message }) => {
        return { error: `${site.title}: ${message}` };
      });
    }),
  );
  const results = replies.flatMap((reply, i) =>
    (reply.results ?? []).map((/** @type {object} */ result, /** @type {number} */ place) => {
      return { ...result, site: asked[i], isFirst: place === 0 };
    }),
  );
  const corrected = Object.assign({}, ...replies.map((reply) => reply.corrected));
  return { results, corrected, errors: replies.flatMap(({ error }) => error ?? []) };
}
