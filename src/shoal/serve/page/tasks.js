// The list of tasks, a page at a time, and what is known of one of them.
import { $, facts, fraction, html, request, svg, whole } from "./parts.js";

const MARK = "#task=";
const SHOWN = 6; // ways of sharing
let page = 1, size = Infinity, shownRows = null, asked = 0, opened = null, model = {};

export const linkTo = (task) => MARK + encodeURIComponent(task);

// ---- the list -----------------------------------------------------------------------------------------------

async function list() {
  const mine = ++asked;
  const found = await request(`/v1/tasks?sort=${$("sort").value}&q=${encodeURIComponent($("filter").value)}&page=${page}`);
  if (!found.ok || mine !== asked) return;
  const { tasks, total } = await found.json();
  if (mine !== asked) return;
  if (page === 1) size = tasks.length;
  if (!tasks.length && page > 1) { page = 1; return list(); } // they were forgotten meanwhile
  show(tasks);
  const first = (page - 1) * size;
  $("tasks-note").textContent = total ? `${whole(first + 1)} to ${whole(first + tasks.length)} of ${whole(total)} tasks with rows since the service began`
    : $("filter").value ? "no task has this in its name" : "no row was learned since the service began";
  // Not `disabled`, which would take the focus away from who pages by keyboard.
  $("previous").setAttribute("aria-disabled", page === 1);
  $("next").setAttribute("aria-disabled", first + tasks.length >= total);
}

function show(tasks) {
  const focused = $("tasks").contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
  const body = $("tasks");
  while (body.rows.length > tasks.length) body.deleteRow(-1);
  while (body.rows.length < tasks.length) body.append(html("tr", {}, html("th", { scope: "row" }), html("td"), html("td")));
  tasks.forEach((one, i) => {
    const [name, rows, error] = body.rows[i].cells;
    if (one.task === null) name.textContent = "–";
    else if (name.firstChild?.textContent !== one.task) name.replaceChildren(html("a", { href: linkTo(one.task) }, one.task));
    rows.textContent = whole(one.rows); error.textContent = fraction(one.error);
  });
  if (focused) [...body.querySelectorAll("a")].find((a) => a.getAttribute("href") === focused)?.focus({ preventScroll: true });
}

function turn(by) {
  if ($(by < 0 ? "previous" : "next").getAttribute("aria-disabled") === "true") return;
  page += by;
  list().catch(() => {}); // the events say that the service does not answer
}

function again() {
  page = 1;
  list().catch(() => {});
}

// ---- one task -----------------------------------------------------------------------------------------------

const chosen = () => {
  if (!location.hash.startsWith(MARK)) return null;
  try { return decodeURIComponent(location.hash.slice(MARK.length)); } catch { return null; }
};

async function one() {
  const task = chosen(), box = $("task");
  if (task === null) { leave(); return; }
  const found = await request(`/v1/tasks/${encodeURIComponent(task)}`), about = found.ok ? await found.json() : {};
  if (chosen() !== task) return; // it was left meanwhile
  $("task-name").textContent = task;
  $("task-note").textContent = found.ok ? "" : found.status === 404 ? "The model does not know this task." : "The service does not say.";
  const said = "forecast" in about ? [["mean forecast", fraction(about.forecast)], [model.happened, fraction(about.happened)]] : [];
  facts($("task-facts"), !found.ok ? [] : "rows" in about
    ? [["rows", whole(about.rows)], [model.error, fraction(about.error)], ...("loss" in about ? [[model.loss, fraction(about.loss)]] : []), ...said]
    : [["rows since the service began", "0"]]);
  bars($("ways"), (about.ways ?? []).slice(0, SHOWN).map(({ way, weight }) => [way, weight]));
  bars($("similar"), (about.similar ?? []).map((other) => [html("a", { href: linkTo(other.task) }, other.task), other.similarity]));
  $("ways-part").hidden = !about.ways?.length; $("similar-part").hidden = !about.similar?.length;
  opened = task;
  if (!box.open) box.showModal();
}

function leave() {
  if (opened !== null && chosen() === opened) history.replaceState(null, "", location.pathname);
  opened = null;
  if ($("task").open) $("task").close();
}

function bars(box, pairs) {
  const focused = box.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
  box.replaceChildren(...pairs.map(([name, value]) =>
    html("li", {}, html("span", {}, name), bar(value), html("span", {}, value.toFixed(2)))));
  if (focused) [...box.querySelectorAll("a")].find((a) => a.getAttribute("href") === focused)?.focus({ preventScroll: true });
}

function bar(value) {
  const drawn = svg("svg", { class: "bar", viewBox: "0 0 100 8", preserveAspectRatio: "none", "aria-hidden": "true" });
  drawn.append(svg("rect", { width: 100 * Math.min(Math.max(value, 0), 1), height: 8 }));
  return drawn;
}

// ---- events -------------------------------------------------------------------------------------------------

export function showTasks(state, words) {
  model = words;
  if (state.rows === shownRows && $("tasks").rows.length) return; // nothing was learned meanwhile
  shownRows = state.rows;
  list().catch(() => {});
  if (chosen() !== null) one().catch(() => {});
}

$("filter").addEventListener("input", again);
$("sort").addEventListener("change", again);
$("previous").addEventListener("click", () => turn(-1));
$("next").addEventListener("click", () => turn(1));
$("close").addEventListener("click", leave);
$("task").addEventListener("click", (event) => { if (event.target === $("task")) leave(); }); // beside it
$("task").addEventListener("cancel", leave); // Escape, mostly: browsers may close it without asking
$("task").addEventListener("close", () => { if (!$("task").open) leave(); }); // else another one has been opened
addEventListener("hashchange", () => one().catch(() => {}));
