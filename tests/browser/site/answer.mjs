// Answers questions with the files of a site, in Node.js: node answer.mjs SITE < questions.json > answers.json
// A question is [what, value]: ["similar", request], ["tokens", text], ["terms", text], ["embedding", text] or
// ["plain", Markdown].

import { readFileSync, readdirSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

const root = pathToFileURL(`${resolve(process.argv[2])}/`);
const [folder] = readdirSync(new URL("code/", root));
const code = new URL(`code/${folder}/`, root);
const load = (name) => import(new URL(`worker/${name}.js`, code));
globalThis.self = { onconnect: null }; // as in a shared worker, which waits for pages
const { Files, Site, openModel } = await load("worker");

class LocalFiles extends Files {
  async fetch(url) {
    const content = readFileSync(new URL(url));
    return content.buffer.slice(content.byteOffset, content.byteOffset + content.length);
  }
}

const described = JSON.parse(readFileSync(new URL("site.json", code), "utf8"));
const files = new LocalFiles(root, described.files, () => {});
let model = null;
async function embed(text) {
  if (!described.files.model) return (await site.table())(text);
  const ort = await load("ort");
  model ??= openModel(ort, await files.read("runtime"), await files.read("model"), await site.tokenizer());
  return (await model)(text);
}
const site = new Site(described, files, embed);

const answers = {
  similar: (request) => site.similar(request, () => {}).catch((error) => ({ error: error.message })),
  tokens: async (text) => (await site.tokenizer()).tokenize(text).ids,
  terms: (text) => site.analyzer.termsByLanguage(text),
  embedding: async (text) => Array.from((await embed(text)).embedding),
};
const found = [];
for (const [what, value] of JSON.parse(readFileSync(0, "utf8"))) {
  const begin = performance.now();
  found.push({ answer: await answers[what](value), milliseconds: performance.now() - begin });
}
process.stdout.write(JSON.stringify(found), () => process.exit(0)); // onnxruntime-web would keep the process open
