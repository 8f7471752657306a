"use strict";

// Requests to the server, and the API key that it may need.

// the address of the routes, also behind a stage or another prefix and without a slash at the end
const base = location.origin + location.pathname.replace(/\/?$/, "/");
let key = readKey();
const isServer = true; // semsearch/site/browser/server.js takes the place of this file in a static site, without a server
const documents = undefined; // the folder of relative links: a server does not know where the documents are
const availableMode = (mode) => mode; // every mode; a static site searches words until its model has arrived

function readKey() {
  try {
    return sessionStorage.getItem("api-key") ?? "";
  } catch {
    return ""; // a browser that keeps nothing for pages: the key is asked for again
  }
}

function keepKey(value) {
  key = value;
  try {
    sessionStorage.setItem("api-key", value);
  } catch {
    // then it lasts until the page is left
  }
}

// Fetch a route. Returns its reply's content and phases; throws an Error with the server's own message.
async function ask(path, options) {
  try {
    const { content, reply } = await fetchRoute(base, key, path, options);
    return { content, phases: readTiming(reply.headers.get("server-timing")) };
  } catch (error) {
    if (error.status === 401) askForKey();
    throw error;
  }
}

function askForKey() {
  byId("key").hidden = false;
  if (document.activeElement !== query || !query.value) byId("key-value").focus();
}
