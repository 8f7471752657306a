// Text to embedding: WordPiece, then the query table or the model in onnxruntime-web.

/** @import { Embed, Tensors } from "./types.js" */
/** @import { WordPiece } from "./wordpiece.js" */

/**
 * Return the function that embeds a query with the table, as QueryTable of function/engine/embedder.py does.
 * @type {(tensors: Tensors, tokenizer: WordPiece) => Embed}
 */
export function openTable({ vectors }, tokenizer) {
  const dim = vectors.length / tokenizer.tokens.length;
  return async (text) => {
    const { ids, isTruncated } = tokenizer.tokenize(text);
    const sums = new Float64Array(dim).map((_, i) => ids.reduce((sum, id) => sum + vectors[id * dim + i], 0));
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
