// Text to embedding: WordPiece, then the query table or the model in onnxruntime-web.

/** @import { Embed, Tensors } from "./types.js" */
/** @import { WordPiece } from "./wordpiece.js" */

/**
 * Return the function that embeds a query with the table, as QueryTable of semsearch/engine/embedder.py does. `readOthers`
 * reads the vectors of the tokens that the corpus lacks.
 * @type {(table: Tensors, readOthers: () => Promise<Tensors>, tokenizer: WordPiece) => Embed}
 */
export function openTable(table, readOthers, tokenizer) {
  const dim = table.vectors.length / table.tokens.length;
  const has = (/** @type {number} */ id) => table.tokens.includes(id);
  return async (text) => {
    const { ids, isTruncated } = tokenizer.tokenize(text);
    const others = ids.every(has) ? table : await readOthers();
    const rows = ids.map((id) => {
      const { tokens, vectors } = has(id) ? table : others;
      return vectors.subarray(dim * tokens.indexOf(id));
    });
    const sums = new Float64Array(dim).map((_, i) => rows.reduce((sum, row) => sum + row[i], 0));
    const length = Math.sqrt(sums.reduce((sum, value) => sum + value * value, 0)) || 1;
    return { embedding: Float32Array.from(sums, (value) => value / length), isTruncated };
  };
}

/**
 * Return the function that embeds a query with a graph, warmed up; `runtime` is the WebAssembly of onnxruntime-web.
 * @type {(ort: typeof import("onnxruntime-web"), runtime: ArrayBuffer, graph: ArrayBuffer, tokenizer: WordPiece) => Promise<Embed>}
 */
export async function openModel(ort, runtime, graph, tokenizer) {
  ort.env.wasm.numThreads = 1;
  ort.env.wasm.wasmBinary = runtime;
  const session = await ort.InferenceSession.create(new Uint8Array(graph));
  /** @type {Embed} */
  const embed = async (text) => {
    const { ids, isTruncated } = tokenizer.tokenize(text);
    const tensor = (/** @type {number[]} */ values) =>
      new ort.Tensor("int64", BigInt64Array.from(values, BigInt), [1, ids.length]);
    const { embeddings } = await session.run({ input_ids: tensor(ids), attention_mask: tensor(ids.map(() => 1)) });
    return { embedding: /** @type {Float32Array} */ (embeddings.data), isTruncated };
  };
  await embed("warm up");
  return embed;
}
