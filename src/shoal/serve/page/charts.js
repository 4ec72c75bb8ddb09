// Error and loss over time, and calibration, as SVG in the size that there is.
import { fraction, html, percent, svg, whole } from "./parts.js";

const NARROW = 480; // pixels: below, lines are named in the key alone
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const date = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
const FEWEST = 20; // rows of a bin that is drawn
const meaning = (name, words) => ({ learner: "with sharing", independent: `a model for each ${words.one}`, pooled: "one model for all" })[name] ?? name;

// The mean over the last twentieth of all rows, at every point; the first ones have fewer rows.
function series(state, place) {
  const found = state.who.map(() => []), sums = state.who.map(() => 0), x = [], times = [];
  const total = state.points.reduce((sum, point) => sum + point[0], 0), wide = Math.max(total / 20, 300);
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
    x.push(rows); times.push(point[1]);
    state.who.forEach((_, i) => found[i].push(sums[i] / inside));
  });
  return { x, times, found };
}

function moment(seconds, other) {
  const [one, two] = [seconds, other].map((value) => new Date(1000 * value));
  return (one.toDateString() === two.toDateString() ? clock : date).format(one);
}

export function lines(box, state, place, words) {
  const { x, times, found } = series(state, place);
  if (x.length < 2) { box.textContent = "Nothing to draw yet: a point is a hundred rows that were learned."; return; }
  const W = Math.max(box.clientWidth, 240), H = 266, isNarrow = W < NARROW || state.who.length < 2;
  const left = 48, right = isNarrow ? 8 : 150, top = 10, bottom = 42, last = x.length - 1;
  const all = found.flat().sort((a, b) => a - b);
  const most = all[Math.floor(0.98 * (all.length - 1))]; // what was said of the very first rows may be far off
  let low = all[0], high = Math.min(all[all.length - 1], low + 1.6 * (most - low));
  if (high <= low) high = low + 1e-6;
  low = Math.max(0, low - 0.05 * (high - low)); high += 0.05 * (high - low);
  const isShare = place === 0 && state.kind !== "regression";
  const sx = (value) => left + (W - left - right) * (value - x[0]) / (x[last] - x[0]);
  const sy = (value) => top + (H - top - bottom) * (1 - (Math.min(value, high) - low) / (high - low));
  const drawn = svg("svg", { viewBox: `0 0 ${W} ${H}`, role: "img" });
  drawn.append(svg("title", {}, state.who.map((name, i) => `${meaning(name, words)}: now ${fraction(found[i][last])}`).join("; ")));
  for (const part of [0, 0.5, 1]) {
    const value = low + part * (high - low);
    drawn.append(svg("line", { class: "axis", x1: left, x2: W - right, y1: sy(value), y2: sy(value) }));
    drawn.append(svg("text", { x: left - 6, y: sy(value) + 4, "text-anchor": "end" }, isShare ? percent(value) : high < 10 ? value.toFixed(3) : whole(value)));
  }
  for (const [k, other, place] of [[0, last, { x: left }], [last, 0, { x: W - right, "text-anchor": "end" }]]) {
    drawn.append(svg("text", { ...place, y: H - 22 }, `${whole(x[k])} rows`));
    drawn.append(svg("text", { ...place, y: H - 6 }, moment(times[k], times[other])));
  }
  [...state.who.keys()].reverse().forEach((i) => {
    const points = x.map((value, k) => `${sx(value).toFixed(1)},${sy(found[i][k]).toFixed(1)}`).join(" ");
    drawn.append(svg("polyline", { class: `line ${state.who[i]}`, points }));
  });
  if (!isNarrow) {
    const labels = state.who.map((name, i) => ({ name, y: sy(found[i][last]) })).sort((a, b) => a.y - b.y);
    labels.forEach((label, i) => { if (i && label.y < labels[i - 1].y + 14) label.y = labels[i - 1].y + 14; });
    for (const { name, y } of labels) drawn.append(svg("text", { class: name, x: W - right + 6, y: y + 4 }, meaning(name, words)));
  }
  box.replaceChildren(drawn);
}

export function key(box, who, words) {
  box.hidden = who.length < 2;
  box.replaceChildren(...who.map((name) => {
    const swatch = svg("svg", { viewBox: "0 0 28 8", "aria-hidden": "true" });
    swatch.append(svg("line", { class: `line ${name}`, x1: 0, x2: 28, y1: 4, y2: 4 }));
    return html("span", {}, swatch, meaning(name, words));
  }));
}

export function calibration(box, bins) {
  const [rows, forecast, happened] = bins.map((part) => part.filter((_, i) => bins[0][i] >= FEWEST)), W = Math.min(Math.max(box.clientWidth, 200), 340), left = 34, m = 14, low = W - 24;
  const sx = (value) => left + (W - left - m) * value, sy = (value) => low - (low - m) * value;
  if (!rows.length) { box.textContent = `Nothing to draw yet: a point is ${FEWEST} rows or more of like forecasts.`; return; }
  const drawn = svg("svg", { viewBox: `0 0 ${W} ${W + 8}`, role: "img" });
  drawn.append(svg("title", {}, rows.map((n, i) => `forecast ${(forecast[i] / n).toFixed(2)}: happened ${(happened[i] / n).toFixed(2)} of ${whole(n)}`).join("; ")));
  for (const value of [0, 0.5, 1]) {
    drawn.append(svg("line", { class: "axis", x1: sx(0), x2: sx(1), y1: sy(value), y2: sy(value) }));
    drawn.append(svg("text", { x: left - 6, y: sy(value) + 4, "text-anchor": "end" }, `${value}`));
    drawn.append(svg("text", { x: sx(value), y: low + 16, "text-anchor": "middle" }, `${value}`));
  }
  drawn.append(svg("line", { class: "axis", x1: sx(0), y1: sy(0), x2: sx(1), y2: sy(1) }));
  drawn.append(svg("text", { x: (sx(0) + sx(1)) / 2, y: W + 6, "text-anchor": "middle" }, "forecast"));
  const most = Math.max(...rows, 1);
  rows.forEach((n, i) => {
    drawn.append(svg("circle", { class: "dot", cx: sx(forecast[i] / n), cy: sy(happened[i] / n), r: 2.5 + 7 * Math.sqrt(n / most) }));
  });
  box.replaceChildren(drawn);
}
