// The worker: loads the site's files when a page needs them, and answers the requests of the pages that share it.

import { fetchFile, Files } from "./files.js";
import { openModel } from "./model.js";
import { Site } from "./site.js";

const MOST_AHEAD = 16_000_000; // maximum bytes of passages, columns and ids that are loaded in advance, for use offline
const FIRST = ["keywords", "vocabulary", "index", "queries"];
const MODEL = ["runtime", "model"]; // files of a site with the model, which embeds queries once it is loaded
const here = (/** @type {string} */ name) => new URL(name, import.meta.url);

const ports = /** @type {any[]} */ ([]); // message ports of the pages
const state = { total: 1, loaded: 0, ready: "", hasMeaning: false };
const tell = (/** @type {object} */ news) => {
  Object.assign(state, news);
  for (const port of ports) port.postMessage(news);
};

/** Return a function that calls `make` once, and again after an error. @type {<T>(make: () => Promise<T>) => () => Promise<T>} */
function once(make) {
  /** @type {ReturnType<typeof make> | undefined} */
  let made;
  return () => {
    made ??= make();
    made.catch(() => (made = undefined));
    return made;
  };
}

let early = /** @type {Promise<any>} */ (Promise.resolve()); // the last reply of a keyword search
let model = /** @type {import("./types.js").Embed | null} */ (null);
const opened = once(async () => {
  const described = await (await fetchFile(here("../site.json").href)).json();
  const { files } = described;
  const read = new Files(here("../../../"), files, (bytes) => tell({ loaded: state.loaded + bytes }));
  const bytes = (/** @type {string[]} */ names) => names.reduce((sum, name) => sum + (files[name]?.bytes ?? 0), 0);
  tell({ total: bytes(FIRST) });
  read.clean(here("..").href).catch(() => {}); // without HTTPS nothing is kept; on a full disk, the next visit cleans
  return {
    files,
    read,
    bytes,
    site: new Site(described, read, async (text) => (model ?? (await parts.semantic()))(text)),
  };
});
/** @type {Record<string, () => Promise<any>>} loads each part that a page can request; a part needs the one before */
const parts = {
  keyword: once(async () => {
    const { site } = await opened();
    if (site.info.index.keywords) await site.keywords();
    tell({ ready: "keyword" });
  }),
  semantic: once(async () => {
    const [{ site }] = await Promise.all([opened(), parts.keyword()]);
    await early; // its texts come before the larger files
    const [embed] = await Promise.all([site.table(), site.index()]);
    tell({ ready: "semantic", hasMeaning: true });
    return embed;
  }),
  offline: once(async () => {
    const [{ files, read, bytes, site }] = await Promise.all([opened(), parts.semantic()]);
    await site.others();
    if (files.model) {
      const ort = import(here("ort.js").href);
      const [runtime, graph] = await Promise.all(MODEL.map((name) => read.read(name)));
      model = await openModel(await ort, runtime, graph, await site.tokenizer());
    }
    const rest = Object.keys(files).filter((name) => ![...FIRST, ...MODEL, "others"].includes(name));
    const isSmall = bytes(rest) <= MOST_AHEAD;
    for (const name of isSmall ? rest : []) await read.read(name);
    tell({ ready: isSmall ? "offline" : "partly" });
  }),
};

async function answer(/** @type {any} */ port, /** @type {any} */ { data: { id, path, body } }) {
  /** @type {Record<string, number>} */
  const phases = {};
  const begin = performance.now();
  let last = begin;
  const lap = (/** @type {string} */ phase) => {
    phases[phase] = performance.now() - last;
    last = performance.now();
  };
  try {
    const { site } = await opened();
    let content = {};
    if (path === "info") content = { ...site.info, cold_start_milliseconds: {} };
    else if (path !== "similar") await parts[path]();
    else {
      const isEarly = !state.hasMeaning && site.info.index.keywords && body.text !== undefined;
      const request = isEarly ? { mode: "keyword", ...body } : body;
      const replied = site.similar(request, lap);
      if (request.mode === "keyword") early = replied.catch(() => {}); // other modes wait for parts.semantic themselves
      content = await replied;
    }
    port.postMessage({ id, content, phases: { ...phases, total: performance.now() - begin } });
  } catch (error) {
    const { message = String(error), lost } = /** @type {any} */ (error);
    port.postMessage({ id, error: message, lost });
  }
}

function join(/** @type {any} */ port) {
  ports.push(port);
  port.onmessage = (/** @type {MessageEvent} */ message) => answer(port, message);
  port.postMessage(state);
}

if ("onconnect" in self) self.onconnect = (/** @type {any} */ { ports: [port] }) => join(port);
else join(self);
