// Text to embedding: WordPiece, then the model in onnxruntime-web.

/**
 * Return the function that embeds a query, warmed up.
 * @param {typeof import("onnxruntime-web")} ort
 * @param {ArrayBuffer} runtime the WebAssembly of onnxruntime-web
 * @param {ArrayBuffer} graph
 * @param {import("./wordpiece.js").WordPiece} tokenizer
 * @param {string} prompt put before each query
 */
export async function openModel(ort, runtime, graph, tokenizer, prompt = "") {
  ort.env.wasm.numThreads = 1;
  ort.env.wasm.wasmBinary = runtime;
  const session = await ort.InferenceSession.create(new Uint8Array(graph));
  const embed = async (/** @type {string} */ text) => {
    const { ids, isTruncated } = tokenizer.tokenize(prompt + text);
    const tensor = (/** @type {number[]} */ values) =>
      new ort.Tensor("int64", BigInt64Array.from(values, BigInt), [1, ids.length]);
    const { embeddings } = await session.run({ input_ids: tensor(ids), attention_mask: tensor(ids.map(() => 1)) });
    return { embedding: /** @type {Float32Array} */ (embeddings.data), isTruncated };
  };
  await embed("warm up");
  return embed;
}
