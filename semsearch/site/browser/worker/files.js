// The data files of the site: fetched once, checked, kept in the browser's cache and unpacked.

/** @typedef {{path: string, bytes: number, sha256: string}} Listed */

export class Files {
  /** @param {URL} root the site's folder @param {Record<string, Listed>} listed @param {(bytes: number) => void} onBytes */
  constructor(root, listed, onBytes) {
    this.root = root;
    this.listed = listed;
    this.onBytes = onBytes; // called with the number of bytes that have arrived
  }

  /** Return the content of a file. @type {(name: string) => Promise<ArrayBuffer>} */
  async read(name) {
    const { path, sha256, bytes } = this.listed[name];
    const url = new URL(path, this.root).href;
    const cache = await globalThis.caches?.open(`data ${this.root.pathname}`).catch(() => null);
    const kept = await cache?.match(url);
    const packed = kept ? await kept.arrayBuffer() : await this.fetch(url);
    if (kept) this.onBytes(bytes);
    try {
      if (!kept) await check(packed, sha256);
      const unpacked = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
      const content = await new Response(unpacked).arrayBuffer();
      if (!kept) await cache?.put(url, new Response(packed)).catch(() => null); // the disk is full: it is loaded again
      return content;
    } catch (error) {
      await cache?.delete(url);
      throw new Error(
        `${path} is damaged (${/** @type {any} */ (error).message}). Reload the page. If that does not help, upload the file again.`,
      );
    }
  }

  /** @type {(url: string) => Promise<ArrayBuffer>} */
  async fetch(url) {
    const reply = await fetch(url).catch((error) => error);
    if (!reply.ok)
      throw new Error(`${url} cannot be loaded (${reply.status ?? reply}). Check the network and reload the page.`);
    const transform = (/** @type {Uint8Array} */ chunk, /** @type {TransformStreamDefaultController} */ controller) => {
      this.onBytes(chunk.length);
      controller.enqueue(chunk);
    };
    return new Response(reply.body.pipeThrough(new TransformStream({ transform }))).arrayBuffer();
  }
}

/** Compare the SHA-256; without HTTPS only gzip's own checksum is. @type {(packed: ArrayBuffer, expected: string) => Promise<void>} */
async function check(packed, expected) {
  const digest = await globalThis.crypto?.subtle?.digest("SHA-256", packed);
  const found = digest && Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
  if (found && found !== expected)
    throw new Error(`SHA-256 ${found.slice(0, 16)}…, expected ${expected.slice(0, 16)}…`);
}
