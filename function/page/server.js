"use strict";

// Requests to the server, and the API key that it may need.

// the address of the routes, also behind a stage or another prefix and without a slash at the end
const base = location.origin + location.pathname.replace(/\/?$/, "/");
let key = readKey();
const isServer = true; // export/site/browser/server.js takes the place of this file in a static site, without a server
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

// Fetch a route. Returns its reply's content and headers; throws an Error with the server's own message.
async function ask(path, options = {}) {
  const headers = { ...options.headers, ...(key && { authorization: `Bearer ${key}` }) };
  let reply;
  try {
    reply = await fetch(base + path, { ...options, headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The server cannot be reached.");
  }
  const content = await reply.json().catch((error) => {
    if (error.name === "AbortError") throw error;
    return null;
  });
  if (reply.status === 401) askForKey();
  if (!reply.ok || content === null) {
    const said = content?.error?.message ?? content?.error ?? content?.message; // the last is API Gateway's
    throw new Error(said ?? `The server answered ${reply.status} without saying why.`);
  }
  return { content, phases: readTiming(reply.headers.get("server-timing")) };
}

function askForKey() {
  byId("key").hidden = false;
  if (document.activeElement !== query || !query.value) byId("key-value").focus();
}
