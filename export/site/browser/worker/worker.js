// The worker: loads the site's files, keywords first, and answers the page's requests.

import { Files } from "./files.js";
import { openModel } from "./model.js";
import { Site } from "./site.js";

const MOST_AHEAD = 16_000_000; // bytes of passages and columns that are loaded ahead, so that the site works offline
const FIRST = ["keywords", "vocabulary", "index", "runtime", "model"];
const here = (/** @type {string} */ name) => new URL(name, import.meta.url);
const load = (/** @type {string} */ name) => import(here(name).href);
const PAUSE = 100; // milliseconds between messages about bytes that have arrived
let loaded = 0;
let reported = 0;

/** @param {number} bytes */
function report(bytes) {
  loaded += bytes;
  if (performance.now() < reported + PAUSE) return;
  reported = performance.now();
  self.postMessage({ loaded });
}

const described = (async () => (await fetch(here("../site.json"))).json())();
const site = (async () => {
  const { files, info } = await described;
  const [{ stem }, ort] = await Promise.all([load("porter2.js"), load("ort.js")]);
  const read = new Files(here("../../../"), files, report);
  const own = new Site(await described, read, stem, async (text) => (await model)(text));
  const bytes = (/** @type {string[]} */ names) => names.reduce((sum, name) => sum + (files[name]?.bytes ?? 0), 0);
  self.postMessage({ total: bytes(FIRST) });
  const model = (async () => {
    if (info.index.keywords) await own.keywords();
    self.postMessage({ ready: "keyword" });
    const [tokenizer, runtime, graph] = await Promise.all([
      own.tokenizer(),
      read.read("runtime"),
      read.read("model"),
      own.index(),
    ]);
    return openModel(ort, runtime, graph, tokenizer, info.model.prompts.query);
  })();
  const rest = Object.keys(files).filter((name) => !FIRST.includes(name));
  const loadAhead = async () => {
    await model;
    self.postMessage({ ready: "semantic" });
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
