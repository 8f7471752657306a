"use strict";

// Keeps the page and its code in the browser, so that the site opens offline. The worker keeps the data by itself.

const scope = /** @type {any} */ (self).registration.scope;
const version = new URL(location.href).searchParams.get("code");
const NAME = `code ${scope} ${version}`;

self.addEventListener("install", (event) => {
  const install = async () => {
    const folder = `code/${version}/`;
    const { code: names } = await (await fetch(`${folder}site.json`)).json();
    const cache = await caches.open(NAME);
    await cache.addAll(["./", ...names.map((/** @type {string} */ name) => folder + name)]);
    await /** @type {any} */ (self).skipWaiting();
  };
  /** @type {any} */ (event).waitUntil(install());
});

self.addEventListener("activate", (event) => {
  const clean = async () => {
    const old = (await caches.keys()).filter((name) => name.startsWith(`code ${scope} `) && name !== NAME);
    await Promise.all(old.map((name) => caches.delete(name)));
    const { files } = await (await fetch(`code/${version}/site.json`)).json();
    const data = await caches.open(`data ${new URL(scope).pathname}`);
    const listed = Object.values(files).map(({ path }) => new URL(path, scope).href);
    for (const request of await data.keys()) if (!listed.includes(request.url)) await data.delete(request);
  };
  /** @type {any} */ (event).waitUntil(clean());
});

self.addEventListener("fetch", (event) => {
  const { request } = /** @type {any} */ (event);
  if (request.mode === "navigate") {
    // the newest page if there is a network: it names the code
    const kept = () => caches.match("./");
    /** @type {any} */ (event).respondWith(fetch(request).catch(kept));
  } else if (request.url.startsWith(`${scope}code/`)) {
    const find = async () => (await caches.match(request)) ?? fetch(request);
    /** @type {any} */ (event).respondWith(find());
  }
});
