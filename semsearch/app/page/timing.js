"use strict";

// Where the time went: the phases of a request from its Server-Timing header, and those of the cold start.

// Return {phase: milliseconds} of a Server-Timing header such as "embed;dur=4.20, total;dur=5.10".
function readTiming(header) {
  const phases = {};
  for (const entry of (header ?? "").split(",")) {
    const [name, ...parameters] = entry.trim().split(";");
    const duration = parameters.find((parameter) => parameter.trim().startsWith("dur="));
    if (name && duration) phases[name] = Number(duration.trim().slice(4));
  }
  return phases;
}

// Draw the phases as one bar, with what the request spent between the browser and the server at its end.
function drawPhases(phases, roundTrip) {
  const box = byId("phases");
  const { total = 0, ...named } = phases;
  const own = Object.entries(named).filter(([name]) => !name.startsWith("init-"));
  const inPhases = own.reduce((sum, [, milliseconds]) => sum + milliseconds, 0);
  const all = [...own, ["other", Math.max(0, total - inPhases)], ["network", Math.max(0, roundTrip - total)]];
  const whole = all.reduce((sum, [, milliseconds]) => sum + milliseconds, 0) || 1;
  box.hidden = !own.length;
  box
    .querySelector(".stack")
    .replaceChildren(...all.map(([name, milliseconds]) => bar(`phase ${name}`, milliseconds / whole)));
  box
    .querySelector(".legend")
    .replaceChildren(
      ...all
        .filter(([name]) => name !== "other")
        .map(([name, milliseconds]) => make("li", {}, swatch(name), `${name} ${milliseconds.toFixed(1)}`)),
    );
}

// Return the phases of the cold start that a reply tells of, null if it was no first reply.
function startIn(phases) {
  const start = Object.entries(phases).filter(([name]) => name.startsWith("init-"));
  return start.length ? Object.fromEntries(start.map(([name, ms]) => [name.slice(5), ms])) : null;
}

// Return the phases of the cold start that the reply with this page told of, null if it told of none.
function startInNavigation() {
  const [navigation] = performance.getEntriesByType("navigation");
  return startIn(Object.fromEntries((navigation?.serverTiming ?? []).map((entry) => [entry.name, entry.duration])));
}

// Draw a cold start as a waterfall: each phase begins where the one before ends.
function drawStart(start, isOurs) {
  const box = byId("start");
  const total = Object.values(start).reduce((sum, milliseconds) => sum + milliseconds, 0);
  if (!total || (box.dataset.ours && !isOurs)) return;
  if (isOurs) box.dataset.ours = "yes";
  box.hidden = false;
  box.open ||= isOurs;
  box.querySelector("summary").textContent = `Cold start: ${Math.round(total)} ms`;
  box.querySelector(".note").textContent = isOurs
    ? "Your request started this server. This is what it did before it could answer."
    : "How this server started. Your requests did not wait for it.";
  let before = 0;
  box.querySelector(".waterfall").replaceChildren(
    ...Object.entries(start).map(([name, milliseconds]) => {
      const row = make("li", {}, make("span", {}, name));
      const fill = bar("fill", milliseconds / total, before / total);
      row.append(make("span", { class: "lane", "aria-hidden": "true" }, fill));
      row.append(make("span", { class: "number" }, `${milliseconds.toFixed(0)} ms`));
      before += milliseconds;
      return row;
    }),
  );
}
