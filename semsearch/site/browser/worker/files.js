// The data files of the site: fetched once, checked, kept in the browser's cache and unpacked.

/** @typedef {{path: string, bytes: number, sha256: string}} Listed */

const BUILDS = "data/builds.json"; // key in the browser's cache: for each build, the address of its code and its files

/**
 * Return an error with the address of a file as `lost`: a deployment can have deleted or replaced the file.
 * @type {(lost: string, message: string) => Error}
 */
const lostFile = (lost, message) => Object.assign(new Error(message), { lost });

/** Fetch a file of the site. Some hosts send a page in place of a file that is gone. @type {(url: string) => Promise<Response>} */
export async function fetchFile(url) {
  const reply = await fetch(url).catch((error) => error);
  const isPage = reply.ok && reply.headers.get("content-type")?.startsWith("text/html");
  if (reply.ok && !isPage) return reply;
  const found = `${url} cannot be loaded (${isPage ? "a page" : (reply.status ?? reply)})`;
  throw lostFile(url, `${found}. Check the network, or reload the page in some minutes.`);
}

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
    const cache = await this.cache().catch(() => null); // without HTTPS there is none
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
      const found = `${path} is damaged (${/** @type {any} */ (error).message})`;
      throw lostFile(url, `${found}. Reload the page. If that does not help, upload the file again.`);
    }
  }

  /**
   * Keep the data files that this build or the one before it lists, and delete all others. Builds are counted as this
   * browser opens them; code is the address of this build's code.
   * @type {(code: string) => Promise<void>}
   */
  async clean(code) {
    const cache = await this.cache();
    const address = (/** @type {string} */ path) => new URL(path, this.root).href;
    const lists = await cache.match(address(BUILDS));
    const before = lists ? await lists.json() : [];
    const own = [code, ...Object.values(this.listed).map(({ path }) => path)];
    const builds = [own, ...before.filter((/** @type {string[]} */ [other]) => other !== code)].slice(0, 2);
    await cache.put(address(BUILDS), new Response(JSON.stringify(builds)));
    const kept = new Set([BUILDS, ...builds.flat()].map(address));
    for (const { url } of await cache.keys()) if (!kept.has(url)) await cache.delete(url);
  }

  /** Return the browser's cache of the data. @type {() => Promise<Cache>} */
  async cache() {
    return caches.open(`data ${this.root.pathname}`);
  }

  /** @type {(url: string) => Promise<ArrayBuffer>} */
  async fetch(url) {
    const reply = await fetchFile(url);
    const transform = (/** @type {Uint8Array} */ chunk, /** @type {TransformStreamDefaultController} */ controller) => {
      this.onBytes(chunk.length);
      controller.enqueue(chunk);
    };
    const body = /** @type {ReadableStream} */ (reply.body);
    return new Response(body.pipeThrough(new TransformStream({ transform }))).arrayBuffer();
  }
}

/** Compare the SHA-256; without HTTPS only gzip's own checksum is. @type {(packed: ArrayBuffer, expected: string) => Promise<void>} */
async function check(packed, expected) {
  const digest = await globalThis.crypto?.subtle?.digest("SHA-256", packed);
  const found = digest && Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
  if (found && found !== expected)
    throw new Error(`SHA-256 ${found.slice(0, 16)}…, expected ${expected.slice(0, 16)}…`);
}
