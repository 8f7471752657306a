// The connection of a page to the worker of the site. All open pages share one worker if the browser has SharedWorker.

/** @typedef {{total: number, loaded: number, ready: string, hasMeaning: boolean}} State total and loaded are bytes */
/** @typedef {(path: string, options?: {body?: string, signal?: AbortSignal}) => Promise<{content: any, phases: any}>} Ask */

// A policy with require-trusted-types-for accepts only addresses that this function returns.
const trusted = globalThis.trustedTypes?.createPolicy("semantic-search", { createScriptURL: (address) => address });
export const trust = (/** @type {string} */ address) =>
  /** @type {any} */ (trusted?.createScriptURL(address) ?? address);

/**
 * Connect to the worker in the folder `code`. onState is called when the state of the worker changes. If the browser
 * supports extendedLifetime, the worker keeps running while the visitor goes from one page to the next.
 * @type {(code: URL, onState: (state: State) => void) => {ask: Ask, state: State}}
 */
export function connect(code, onState) {
  /** @type {Map<number, {resolve: (reply: any) => void, reject: (error: Error) => void}>} */
  const waiting = new Map();
  const state = { total: 1, loaded: 0, ready: "", hasMeaning: false };
  let last = 0;
  const address = trust(new URL("worker/worker.js", code).href);
  const options = /** @type {any} */ ({ type: "module", extendedLifetime: true });
  const worker = "SharedWorker" in globalThis ? new SharedWorker(address, options) : new Worker(address, options);
  const port = "port" in worker ? worker.port : worker;
  const receive = (/** @type {any} */ { data: { id, ...news } }) => {
    if (id === undefined) return onState(Object.assign(state, news));
    if (news.error) waiting.get(id)?.reject(new Error(news.error));
    else waiting.get(id)?.resolve(news);
    waiting.delete(id);
  };
  port.addEventListener("message", /** @type {EventListener} */ (receive));
  if ("start" in port) port.start();
  worker.addEventListener("error", () => {
    for (const { reject } of waiting.values()) reject(new Error(`${address} cannot be started.`));
  });
  /** @type {Ask} */
  const ask = (path, { body, signal } = {}) =>
    new Promise((resolve, reject) => {
      waiting.set(++last, { resolve, reject });
      signal?.addEventListener("abort", () => reject(new DOMException("a later request", "AbortError")));
      port.postMessage({ id: last, path, body: body && JSON.parse(body) });
    });
  return { ask, state };
}
