"use strict";

// Keeps the page and its code in the browser, so that the site opens offline. The worker keeps the data by itself.

const own = /** @type {any} */ (self);
const { scope } = own.registration;
const version = new URL(location.href).searchParams.get("code");
const folder = `code/${version}/`;
const NAME = `code ${scope} ${version}`;

async function install() {
  const { code } = await (await fetch(`${folder}site.json`)).json();
  const cache = await caches.open(NAME);
  const page = new Request("./", { cache: "no-cache" }); // the browser's own cache can have an older one
  await cache.addAll([page, ...code.map((/** @type {string} */ name) => folder + name)]);
  await own.skipWaiting();
}

// Delete the code of older sites.
async function clean() {
  const older = (await caches.keys()).filter((name) => name.startsWith(`code ${scope} `) && name !== NAME);
  await Promise.all(older.map((name) => caches.delete(name)));
}

// Return the newest page if there is a network, since it names the code; and code that is kept.
async function answer(/** @type {Request} */ request) {
  if (request.mode === "navigate") return fetch(request, { cache: "no-cache" }).catch(() => caches.match("./"));
  return (await caches.match(request)) ?? fetch(request);
}

own.addEventListener("install", (/** @type {any} */ event) => event.waitUntil(install()));
own.addEventListener("activate", (/** @type {any} */ event) => event.waitUntil(clean()));
own.addEventListener("fetch", (/** @type {any} */ event) => {
  const { mode, url } = event.request;
  if (mode === "navigate" || url.startsWith(`${scope}code/`)) event.respondWith(answer(event.request));
});
