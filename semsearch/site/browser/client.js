// The connection of a page to the worker of the site. All open pages share one worker if the browser has SharedWorker.

/** @typedef {{total: number, loaded: number, ready: string, hasMeaning: boolean}} State total and loaded are bytes */
/** @typedef {(path: string, options?: {body?: string, signal?: AbortSignal}) => Promise<{content: any, phases: any}>} Ask */

// A policy with require-trusted-types-for accepts only addresses that this function returns. A page can create one of this
// name, which the code of other builds and sites on it uses too.
const page = /** @type {any} */ (globalThis);
const rules = { createScriptURL: (/** @type {string} */ address) => address };
const trusted = (page[Symbol.for("semantic-search")] ??= page.trustedTypes?.createPolicy("semantic-search", rules));
export const trust = (/** @type {string} */ address) =>
  /** @type {any} */ (trusted?.createScriptURL(address) ?? address);

/**
 * Connect to the worker in the folder `code`. onState is called when the state of the worker changes. If the browser
 * supports extendedLifetime, the worker keeps running while the visitor goes from one page to the next. An error of a
 * request has the address of a file as `lost` if the file could not be loaded. `close` fails the requests that wait so.
 * @type {(code: URL, onState: (state: State) => void) => {ask: Ask, close: () => void}}
 */
export function connect(code, onState) {
  /** @type {Map<number, {resolve: (reply: any) => void, reject: (error: Error) => void}>} */
  const waiting = new Map();
  const state = { total: 1, loaded: 0, ready: "", hasMeaning: false };
  let last = 0;
  let failed = 0; // number of starts of the worker that failed
  let port = /** @type {any} */ (null); // of the worker; null before the first request, and if the worker did not start
  const lost = new URL("worker/worker.js", code).href;
  const receive = (/** @type {any} */ { data: { id, ...news } }) => {
    if (id === undefined) return onState(Object.assign(state, news));
    if (news.error) waiting.get(id)?.reject(Object.assign(new Error(news.error), { lost: news.lost }));
    else waiting.get(id)?.resolve(news);
    waiting.delete(id);
  };
  function start() {
    // Under the name of a start that failed, Chromium can return the worker that ends, which neither answers nor fails.
    const options = /** @type {any} */ ({ type: "module", extendedLifetime: true, name: String(failed) });
    const worker =
      "SharedWorker" in globalThis ? new SharedWorker(trust(lost), options) : new Worker(trust(lost), options);
    worker.addEventListener("error", () => {
      failed++;
      close();
    });
    const opened = "port" in worker ? worker.port : worker;
    opened.addEventListener("message", /** @type {EventListener} */ (receive));
    if ("start" in opened) opened.start();
    return opened;
  }
  function close() {
    port?.terminate?.(); // a worker of this page alone
    port?.close?.();
    port = null;
    const message = `${lost} cannot be started. Check the network, or reload the page in some minutes.`;
    for (const { reject } of waiting.values()) reject(Object.assign(new Error(message), { lost }));
    waiting.clear();
  }
  /** @type {Ask} */
  const ask = (path, { body, signal } = {}) =>
    new Promise((resolve, reject) => {
      waiting.set(++last, { resolve, reject });
      signal?.addEventListener("abort", () => reject(new DOMException("a later request", "AbortError")));
      port ??= start();
      port.postMessage({ id: last, path, body: body && JSON.parse(body) });
    });
  return { ask, close };
}
