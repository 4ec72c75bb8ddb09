// Rows of tasks: error, AUC, log-loss, forecast beside truth, and the trend of each.
import { fraction, html, percent, svg, whole } from "./parts.js";

export const MARK = "#task=";
export const linkTo = (task) => MARK + encodeURIComponent(task);
const short = (value) => typeof value !== "number" ? "–" : Math.abs(value) < 10 ? value.toFixed(2) : fraction(value);

// Columns that there are for a kind of model, each with its class (which phones may hide), title and cell.
export function columnsOf(state, words) {
  const isNumber = state.kind === "regression", share = isNumber ? short : percent;
  return [
    ["name", words.one, null],
    ["count", "rows", (one) => whole(one.rows)],
    ["error", isNumber ? "error" : "wrong", (one) => share(one.error)],
    ...(state.kind === "binary" && state.has_probabilities ? [["auc", "AUC", (one) => short(one.auc)]] : []),
    ...(state.has_losses ? [["loss", state.model.quantiles.length ? "pinball" : isNumber ? "squared" : "log-loss", (one) => short(one.loss)], ["beside", state.kind === "multiclass" ? "sure / right" : "forecast / truth", (one) => `${share(one.forecast)} / ${share(one.happened)}`.replace("\u00a0%", "")]] : []),
    ["trend", "trend", (one) => trend(one.trend)],
  ];
}

export function head(box, columns) {
  const titles = columns.map(([kind, title]) => html("th", { scope: "col", class: kind }, title));
  box.replaceChildren(html("tr", {}, ...titles));
}

// Fill the rows of a table; rows that are there stay, so that a link keeps its focus.
export function fill(body, tasks, columns) {
  while (body.rows.length > tasks.length) body.deleteRow(-1);
  while (body.rows.length < tasks.length) body.append(html("tr"));
  tasks.forEach((one, i) => {
    const row = body.rows[i];
    if (row.cells.length !== columns.length) row.replaceChildren(...columns.map(([kind], j) => html(j ? "td" : "th", j ? { class: kind } : { scope: "row", class: kind })));
    columns.forEach(([, , cell], j) => {
      const box = row.cells[j];
      if (!one) box.textContent = j ? "" : "…";
      else if (cell) box.replaceChildren(cell(one));
      else if (one.task === null) box.textContent = "all rows";
      else if (box.firstChild?.getAttribute?.("href") !== linkTo(one.task)) box.replaceChildren(html("a", { href: linkTo(one.task), title: one.task }, one.task));
    });
  });
}

// Mean losses of equal parts in order: down is better.
function trend(points) {
  const n = points.length, W = 64, H = 18;
  if (n < 2) return "–";
  const low = Math.min(...points), high = Math.max(...points), reach = Math.max(high - low, 0.2 * Math.abs(high), 1e-9), middle = (low + high) / 2;
  const mean = (some) => some.reduce((sum, value) => sum + value, 0) / some.length, half = Math.ceil(n / 2);
  const step = mean(points.slice(-half)) / Math.max(mean(points.slice(0, half)), 1e-12) - 1;
  const said = step > 0.05 ? "worse" : step < -0.05 ? "better" : "steady";
  const drawn = svg("svg", { class: `spark ${said}`, viewBox: `0 0 ${W} ${H}`, role: "img" });
  const at = points.map((value, i) => [3 + (W - 6) * i / (n - 1), H / 2 - (H - 6) * (value - middle) / reach]);
  drawn.append(svg("title", {}, `${said}: from ${short(points[0])} to ${short(points[n - 1])}`));
  drawn.append(svg("polyline", { points: at.map((xy) => xy.map((v) => v.toFixed(1)).join(",")).join(" ") }));
  drawn.append(svg("circle", { cx: at[n - 1][0], cy: at[n - 1][1], r: 2.5 }));
  return drawn;
}
