// The data files of the site: fetched once, checked, kept in the browser's cache and unpacked.

/** @typedef {{path: string, bytes: number, sha256: string}} Listed */

export class Files {
  /**
   * @param {URL} root the site's folder
   * @param {Record<string, Listed>} listed
   * @param {(loaded: number) => void} onBytes called with the bytes that have arrived
   */
  constructor(root, listed, onBytes) {
    this.root = root;
    this.listed = listed;
    this.onBytes = onBytes;
    /** @type {Map<string, Promise<ArrayBuffer>>} */
    this.waiting = new Map();
  }

  /**
   * Return the content of a file. A file that two callers wait for is fetched once.
   * @param {string} name
   */
  read(name) {
    const content = this.waiting.get(name) ?? this.load(name).finally(() => this.waiting.delete(name));
    this.waiting.set(name, content);
    return content;
  }

  /** @param {string} name */
  async text(name) {
    return new TextDecoder().decode(await this.read(name));
  }

  /** @param {string} name */
  async load(name) {
    const { path, sha256, bytes } = this.listed[name];
    const url = new URL(path, this.root).href;
    const cache = await globalThis.caches?.open(`data ${this.root.pathname}`).catch(() => null);
    const kept = await cache?.match(url);
    const packed = kept ? await kept.arrayBuffer() : await this.fetch(url);
    if (kept) this.onBytes(bytes);
    try {
      if (!kept) await check(packed, sha256);
      const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
      const content = await new Response(stream).arrayBuffer();
      if (!kept) await cache?.put(url, new Response(packed)).catch(() => null); // the disk is full: it is loaded again
      return content;
    } catch (error) {
      await cache?.delete(url);
      throw new Error(`${path} is damaged (${message(error)}). Reload the page; if that does not help, upload it again.`);
    }
  }

  /** @param {string} url */
  async fetch(url) {
    const reply = await fetch(url).catch((error) => {
      throw new Error(`${url} cannot be loaded: ${message(error)}. Check the network and reload the page.`);
    });
    if (!reply.ok || !reply.body) throw new Error(`${url} cannot be loaded: the server answered ${reply.status}.`);
    const counted = new TransformStream({
      transform: (/** @type {Uint8Array} */ chunk, controller) => {
        this.onBytes(chunk.length);
        controller.enqueue(chunk);
      },
    });
    return new Response(reply.body.pipeThrough(counted)).arrayBuffer();
  }
}

/** @param {ArrayBuffer} packed @param {string} expected without HTTPS, only gzip's own checksum is compared */
async function check(packed, expected) {
  const digest = await globalThis.crypto?.subtle?.digest("SHA-256", packed);
  const found = digest && Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
  if (found && found !== expected) throw new Error(`its SHA-256 is ${found.slice(0, 16)}…, expected ${expected.slice(0, 16)}…`);
}

/** @param {unknown} error */
const message = (error) => (error instanceof Error ? error.message : String(error));
