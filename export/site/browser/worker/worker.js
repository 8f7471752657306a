// The worker: loads the site's files, keywords first, and answers the page's requests.

import { Files } from "./files.js";
import { Site } from "./site.js";
import { WordPiece } from "./wordpiece.js";

const REST = 16_000_000; // bytes of passages and columns that are loaded ahead, so that the site works offline

const post = (/** @type {object} */ message) => self.postMessage(message);
const here = (/** @type {string} */ name) => new URL(name, import.meta.url);
let loaded = 0;

const start = (async () => {
  const described = await (await fetch(here("../site.json"))).json();
  const { stem } = await import(here("porter2.js").href);
  const files = new Files(here("../../../"), described.files, (bytes) => post({ loaded: (loaded += bytes) }));
  const embedder = { embed: async (/** @type {string} */ text) => (await model).embed(text) };
  const site = new Site(described, files, stem, embedder);
  const names = Object.keys(described.files);
  const first = names.filter((name) => ["keywords", "vocabulary", "index", "runtime", "model"].includes(name));
  const sizes = (/** @type {string[]} */ some) => some.reduce((sum, name) => sum + described.files[name].bytes, 0);
  post({ total: sizes(first) });
  const model = (async () => {
    if (site.info.index.keywords) await site.keywords();
    post({ ready: "keyword" });
    const parts = [site.index(), files.text("vocabulary"), files.read("runtime"), files.read("model")];
    const [, vocabulary, runtime, graph] = /** @type {any[]} */ (await Promise.all(parts));
    return openModel(new WordPiece(vocabulary.split("\n"), described.wordpiece), runtime, graph, site.info.model);
  })();
  model.then(async () => {
    post({ ready: "semantic" });
    const rest = names.filter((name) => !first.includes(name));
    if (sizes(rest) <= REST) for (const name of rest) await files.read(name);
    post({ ready: sizes(rest) <= REST ? "offline" : "partly" });
  }).catch((error) => post({ problem: error.message }));
  return site;
})();

/**
 * Return the model, warmed up.
 * @param {WordPiece} tokenizer
 * @param {ArrayBuffer} runtime
 * @param {ArrayBuffer} graph
 * @param {{prompts: {query?: string}}} info
 */
async function openModel(tokenizer, runtime, graph, info) {
  /** @type {typeof import("onnxruntime-web")} */
  const ort = await import(here("ort.js").href);
  ort.env.wasm.numThreads = 1;
  ort.env.wasm.wasmBinary = runtime;
  const session = await ort.InferenceSession.create(new Uint8Array(graph));
  const embed = async (/** @type {string} */ text) => {
    const { ids, isTruncated } = tokenizer.tokenize((info.prompts.query ?? "") + text);
    const tensor = (/** @type {number[]} */ values) => new ort.Tensor("int64", BigInt64Array.from(values, BigInt), [1, ids.length]);
    const { embeddings } = await session.run({ input_ids: tensor(ids), attention_mask: tensor(ids.map(() => 1)) });
    return { embedding: /** @type {Float32Array} */ (embeddings.data), isTruncated };
  };
  await embed("warm up");
  return { embed };
}

self.addEventListener("message", async ({ data: { id, path, body } }) => {
  const begin = performance.now();
  let last = begin;
  /** @type {Record<string, number>} */
  const phases = {};
  const lap = (/** @type {string} */ phase) => {
    phases[phase] = performance.now() - last;
    last = performance.now();
  };
  try {
    const site = await start;
    last = performance.now();
    const content = path === "info" ? { ...site.info, cold_start_milliseconds: {} } : await site.similar(body, lap);
    post({ id, content, phases: { ...phases, total: performance.now() - begin } });
  } catch (error) {
    post({ id, error: error instanceof Error ? error.message : String(error) });
  }
});
