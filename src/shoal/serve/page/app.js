"use strict";
// Everything that comes from the service is shown by textContent, so that no name of a task can be markup.
const $ = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";
const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
let latest = null;

function element(name, attributes = {}, text = null) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== null) made.textContent = text;
  return made;
}

function fraction(value) { return Number.isFinite(value) ? value.toFixed(4) : "–"; }

function request(path) {
  const token = sessionStorage.getItem("token");
  return fetch(path, token ? { headers: { Authorization: `Bearer ${token}` } } : {});
}

// ---- numbers ------------------------------------------------------------------------------------------------

function numbers(state) {
  const g = state.gauges, isNumber = state.kind === "regression";
  const shown = [
    [whole.format(state.rows), "rows judged"], [whole.format(state.rows_a_second), "rows a second"],
    [state.rows ? fraction(state.errors[0]) : "–", isNumber ? "mean absolute error" : "error"],
    [state.rows ? fraction(g.error_of_last_hour) : "–", "of the last hour"], [state.rows ? fraction(g.error_of_last_day) : "–", "of the last day"],
    [whole.format(g.tasks), "tasks"], [whole.format(g.predictions_waiting), "predictions wait for labels"],
    [whole.format(g.queue_rows), "rows in the queue"], [`${whole.format(g.snapshot_age_seconds)} s`, "since the last snapshot"],
    [`${whole.format(g.log_bytes / 1e6)} MB`, "of log"],
  ];
  $("numbers").replaceChildren(...shown.map(([value, name]) => {
    const made = document.createElement("div"), b = document.createElement("b"), span = document.createElement("span");
    made.className = "number"; b.textContent = value; span.textContent = name;
    made.append(b, span);
    return made;
  }));
}

// ---- charts -------------------------------------------------------------------------------------------------

// The mean over the last twentieth of all rows, at every point; the first ones have fewer rows.
function series(state, place) {
  const x = [], found = state.who.map(() => []);
  const total = state.points.reduce((sum, point) => sum + point[0], 0), wide = Math.max(total / 20, 300);
  const sums = state.who.map(() => 0);
  let rows = 0, inside = 0, first = 0;
  state.points.forEach((point, k) => {
    rows += point[0]; inside += point[0];
    state.who.forEach((_, i) => { sums[i] += point[2 + 2 * i + place]; });
    while (first < k && inside - state.points[first][0] >= wide) {
      inside -= state.points[first][0];
      state.who.forEach((_, i) => { sums[i] -= state.points[first][2 + 2 * i + place]; });
      first += 1;
    }
    if (inside < Math.min(wide, total / 2)) return;
    x.push(rows);
    state.who.forEach((_, i) => found[i].push(sums[i] / inside));
  });
  return { x, found };
}

function lines(box, state, place) {
  const { x, found } = series(state, place);
  const W = 560, H = 250, left = 48, right = 96, bottom = 26, top = 10;
  if (x.length < 2) { box.textContent = "Nothing to draw yet: a point is a hundred rows that were learned."; return; }
  const all = found.flat().sort((a, b) => a - b);
  const svg = element("svg", { viewBox: `0 0 ${W} ${H}`, role: "img" });
  let low = Math.min(...all), high = all[Math.floor(0.98 * (all.length - 1))];
  if (high <= low) high = low + 1e-6;
  low = Math.max(0, low - 0.05 * (high - low)); high += 0.05 * (high - low);
  const sx = (value) => left + (W - left - right) * (value - x[0]) / (x[x.length - 1] - x[0]);
  const sy = (value) => top + (H - top - bottom) * (1 - (Math.min(value, high) - low) / (high - low));
  for (const part of [0, 0.5, 1]) {
    const value = low + part * (high - low);
    svg.append(element("line", { class: "axis", x1: left, x2: W - right, y1: sy(value), y2: sy(value) }));
    svg.append(element("text", { x: left - 6, y: sy(value) + 4, "text-anchor": "end" }, value.toFixed(3)));
  }
  svg.append(element("text", { x: left, y: H - 4 }, `${whole.format(x[0])} rows`));
  svg.append(element("text", { x: W - right, y: H - 4, "text-anchor": "end" }, whole.format(x[x.length - 1])));
  const labels = state.who.map((name, i) => ({ name, y: sy(found[i][x.length - 1]) })).sort((a, b) => a.y - b.y);
  labels.forEach((label, i) => { if (i && label.y < labels[i - 1].y + 14) label.y = labels[i - 1].y + 14; });
  [...state.who.keys()].reverse().forEach((i) => {
    const points = x.map((value, k) => `${sx(value).toFixed(1)},${sy(found[i][k]).toFixed(1)}`).join(" ");
    svg.append(element("polyline", { class: `line ${state.who[i]}`, points }));
  });
  for (const { name, y } of labels) svg.append(element("text", { class: name, x: W - right + 6, y: y + 4 }, name));
  svg.append(element("title", {}, state.who.map((name, i) => `${name}: now ${fraction(found[i][x.length - 1])}`).join("; ")));
  box.replaceChildren(svg);
}

function calibration(box, state) {
  const [rows, chance, positive] = state.calibration, W = 260, m = 26;
  const at = (value) => m + (W - 2 * m) * value;
  const svg = element("svg", { viewBox: `0 0 ${W} ${W}`, role: "img" });
  svg.append(element("line", { class: "axis", x1: at(0), y1: W - at(0), x2: at(1), y2: W - at(1) }));
  svg.append(element("text", { x: at(0), y: W - 8 }, "0"), element("text", { x: at(1), y: W - 8, "text-anchor": "end" }, "forecast 1"));
  svg.append(element("text", { x: 6, y: W - at(1) + 4 }, "1"));
  const most = Math.max(...rows, 1);
  rows.forEach((n, i) => {
    if (n) svg.append(element("circle", { class: "dot", cx: at(chance[i] / n), cy: W - at(positive[i] / n), r: 2 + 7 * Math.sqrt(n / most) }));
  });
  svg.append(element("title", {}, rows.map((n, i) => n ? `forecast ${(chance[i] / n).toFixed(2)}: happened ${(positive[i] / n).toFixed(2)} of ${whole.format(n)}` : "").filter(Boolean).join("; ")));
  box.replaceChildren(svg);
}

// ---- tasks --------------------------------------------------------------------------------------------------

let asked = 0;
async function tasks() {
  const mine = ++asked;
  const found = await request(`/v1/tasks?sort=${$("sort").value}&q=${encodeURIComponent($("filter").value)}&page=1`);
  if (!found.ok || mine !== asked) return;
  const { tasks: list, total } = await found.json();
  $("tasks").replaceChildren(...list.slice(0, 25).map((one) => {
    const row = document.createElement("tr");
    for (const text of [String(one.task ?? "–"), whole.format(one.rows), fraction(one.error)]) {
      const cell = document.createElement("td");
      cell.textContent = text; row.append(cell);
    }
    return row;
  }));
  $("tasks-note").textContent = `${whole.format(Math.min(list.length, 25))} of ${whole.format(total)} tasks with rows since the service began`;
}

// ---- events -------------------------------------------------------------------------------------------------

function show(state) {
  latest = state;
  const number = state.kind === "regression", m = state.model;
  $("title").textContent = `${m.learner} · ${m.label}`;
  document.title = `shoal: ${m.label}`;
  $("status").textContent = "live"; $("status").className = "";
  $("main").hidden = false; $("door").hidden = true;
  $("error-title").textContent = number ? "Mean absolute error over time" : "Error over time";
  $("error-column").textContent = number ? "mean absolute error" : "error";
  $("loss-title").textContent = number ? "Squared error over time" : "Log-loss over time";
  $("key").textContent = state.who.length > 1 ? "learner: sharing as it has learned to; independent: one model per task; pooled: one model for all" : "";
  $("losses").parentElement.hidden = state.kind === "multiclass";
  $("calibration-part").hidden = state.kind !== "binary";
  numbers(state);
  lines($("errors"), state, 0); lines($("losses"), state, 1);
  if (state.kind === "binary") calibration($("calibration"), state);
  tasks().catch(() => { /* the events say that the service does not answer */ });
}

async function listen() {
  try {
    const answer = await request("/v1/events");
    if (answer.status === 401 || answer.status === 403) {
      $("door").hidden = false; $("main").hidden = true;
      $("status").textContent = sessionStorage.getItem("token") ? "this token does not open the page" : "";
      return;
    }
    if (!answer.ok) throw new Error(answer.status);
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let held = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) break;
      held += value;
      const events = held.split("\n\n");
      held = events.pop();
      if (events.length) latest = JSON.parse(events[events.length - 1].slice(6));
      if (events.length) queueMicrotask(() => show(latest)); // what goes wrong in drawing is no failure of the service
    }
  } catch { /* told below */ }
  $("status").textContent = "the service does not answer; trying again …"; $("status").className = "off";
  setTimeout(listen, 1000);
}

$("door").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem("token", $("token").value);
  listen();
});
$("filter").addEventListener("input", () => latest && tasks().catch(() => {}));
$("sort").addEventListener("change", () => latest && tasks().catch(() => {}));
listen();
