// What a caller writes with the types that openapi-typescript makes; tests/clients/test_generated.py runs it.
import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

declare const process: { argv: string[] };

const client = createClient<paths>({ baseUrl: process.argv[2] });
const question: components["schemas"]["SimilarRequest"] = {
  text: "goose",
  num_results: 2,
  mode: "hybrid",
  filter: { chapter: { $gte: 0 }, $or: [{ who: "baker" }, { who: { $exists: true } }] },
  facets: ["who"],
};
const found = await client.POST("/similar", { body: question });
const embedded = await client.POST("/v1/embeddings", { body: { input: ["one", "two"], dimensions: 3 } });
const wrong = await client.POST("/similar", { body: { text: " " } });
if (!found.data || !embedded.data || !wrong.error) throw new Error("no reply");
const ids: string[] = found.data.results.map((result) => result.id);
const lengths: number[] = embedded.data.data.map((one) => one.embedding.length);
console.log(JSON.stringify({ ids, lengths, error: wrong.error.error }));
