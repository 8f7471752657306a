// The worker: loads the site's files, keywords first, and answers the page's requests.

import { readTensors } from "./arrays.js";
import { Files } from "./files.js";
import { openModel, openTable } from "./model.js";
import { Site } from "./site.js";

const MOST_AHEAD = 16_000_000; // bytes of passages and columns that are loaded ahead, so that the site works offline
const FIRST = ["keywords", "vocabulary", "index", "queries"];
const MODEL = ["runtime", "model"]; // of a site with the model: it embeds queries when it has arrived
const here = (/** @type {string} */ name) => new URL(name, import.meta.url);
const load = (/** @type {string} */ name) => import(here(name).href);
let loaded = 0;

const described = (async () => (await fetch(here("../site.json"))).json())();
const site = (async () => {
  const { files, info } = await described;
  const { stem } = await load("porter2.js");
  const read = new Files(here("../../../"), files, (bytes) => self.postMessage({ loaded: (loaded += bytes) }));
  const own = new Site(await described, read, stem, async (text) => (await embed)(text));
  const bytes = (/** @type {string[]} */ names) => names.reduce((sum, name) => sum + (files[name]?.bytes ?? 0), 0);
  self.postMessage({ total: bytes(FIRST) });
  let embed = (async () => {
    if (info.index.keywords) await own.keywords();
    self.postMessage({ ready: "keyword" });
    const [tokenizer, table] = await Promise.all([own.tokenizer(), read.read("queries"), own.index()]);
    return openTable(readTensors(table), tokenizer);
  })();
  const rest = Object.keys(files).filter((name) => ![...FIRST, ...MODEL].includes(name));
  const loadAhead = async () => {
    await embed;
    self.postMessage({ ready: "semantic" });
    if (files.model) {
      const [ort, ...parts] = await Promise.all([load("ort.js"), ...MODEL.map((name) => read.read(name))]);
      const model = openModel(ort, parts[0], parts[1], await own.tokenizer());
      await model;
      embed = model;
    }
    const isSmall = bytes(rest) <= MOST_AHEAD;
    for (const name of isSmall ? rest : []) await read.read(name);
    self.postMessage({ ready: isSmall ? "offline" : "partly" });
  };
  loadAhead().catch((error) => self.postMessage({ problem: error.message }));
  return own;
})();

self.addEventListener("message", async ({ data: { id, path, body } }) => {
  /** @type {Record<string, number>} */
  const phases = {};
  const begin = performance.now();
  let last = begin;
  const lap = (/** @type {string} */ phase) => {
    phases[phase] = performance.now() - last;
    last = performance.now();
  };
  try {
    const { info } = await described;
    const content = path === "info" ? { ...info, cold_start_milliseconds: {} } : await (await site).similar(body, lap);
    self.postMessage({ id, content, phases: { ...phases, total: performance.now() - begin } });
  } catch (error) {
    self.postMessage({ id, error: error instanceof Error ? error.message : String(error) });
  }
});
