"use strict";

// Requests to the function or the server.

// Fetch a route of the API at `base`, with a body by POST. Returns the reply and its content; throws an Error with the
// server's own message.
export async function fetchRoute(base, key, path, { body, signal } = {}) {
  const authorization = key && { authorization: `Bearer ${key}` };
  const options = body && { method: "POST", headers: { "content-type": "application/json", ...authorization }, body };
  let reply;
  try {
    reply = await fetch(base + path, { headers: { ...authorization }, signal, ...options });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The server cannot be reached.");
  }
  const content = await reply.json().catch((error) => {
    if (error.name === "AbortError") throw error;
    return null;
  });
  if (!reply.ok || content === null) {
    const said = content?.error?.message ?? content?.error ?? content?.message; // the last is API Gateway's
    const error = new Error(said ?? `The server answered ${reply.status} without saying why.`);
    throw Object.assign(error, { status: reply.status });
  }
  return { content, reply };
}
