// The worst tasks; all tasks, of which the rows in sight are fetched a page at a time; and what is known of one.
import { $, facts, fraction, html, percent, request, svg, whole } from "./parts.js";
import { MARK, columnsOf, fill, head, linkTo } from "./rows.js";

const PAGE = 50, MORE = 6; // rows of a page of the service, and rows drawn beyond those in sight
const FEW = 12, MOST_HEIGHT = 3e7; // worst tasks (wide screens show eight), and pixels, beyond which browsers draw no more
const FEWEST = 20; // rows, before which a task comes behind those that have them
let pages = new Map(), total = 0, version = 0, shownRows = null, opened = null, model = {}, columns = [], titles = "", wait = null;

const asked = (sort, text, page) => request(`/v1/tasks?sort=${sort}&q=${encodeURIComponent(text)}&page=${page}`).then((found) => found.ok ? found.json() : null);

// ---- the worst ----------------------------------------------------------------------------------------------

async function worst(state) {
  const found = await asked(state.has_losses ? "loss" : "error", "", 1);
  if (!found) return;
  $("worst-part").hidden = !found.tasks.length || !state.model.task.length;
  const few = found.tasks[0]?.rows < FEWEST ? ` of fewer than ${FEWEST} rows` : "";
  $("worst-title").textContent = `Worst ${model.many}${few}, by ${state.has_losses ? model.loss : "error"}`;
  fill($("worst"), found.tasks.slice(0, FEW), columns);
}

// ---- all ----------------------------------------------------------------------------------------------------

const height = () => $("tasks").rows[0]?.getBoundingClientRect().height || 34;

// The first and the last task in sight.
function sight() {
  const row = height(), first = Math.max(0, Math.floor($("scroller").scrollTop / row) - MORE);
  return [first, Math.min(total, first + Math.ceil($("scroller").clientHeight / row) + 2 * MORE)];
}

// Rows in sight, between spaces for the others.
function draw() {
  const [first, last] = sight(), body = $("tasks");
  const focused = body.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
  fill(body, Array.from({ length: last - first }, (_, i) => pages.get(Math.floor((first + i) / PAGE) + 1)?.[(first + i) % PAGE] ?? null), columns);
  const row = height(), most = Math.min(total, MOST_HEIGHT / row);
  $("above").style.height = `${first * row}px`; $("below").style.height = `${Math.max(0, most - last) * row}px`;
  if (focused) [...body.querySelectorAll("a")].find((a) => a.getAttribute("href") === focused)?.focus({ preventScroll: true });
}

// Fetch the pages in sight, all anew or those that are not there.
async function fetchSight(anew) {
  const mine = anew ? ++version : version, [first, last] = sight(), kept = anew ? new Map() : pages;
  const wanted = [];
  for (let page = Math.floor(first / PAGE) + 1; page <= Math.max(1, Math.ceil(last / PAGE)); page += 1) if (!kept.has(page)) wanted.push(page);
  const found = await Promise.all(wanted.map((page) => asked($("sort").value, $("filter").value, page)));
  if (mine !== version || found.some((one) => !one)) return;
  found.forEach((one, i) => kept.set(wanted[i], one.tasks));
  pages = kept;
  if (found.length) total = found[0].total;
  $("tasks-note").textContent = total ? `${whole(total)} ${total === 1 ? model.one : model.many}` : $("filter").value ? `no ${model.one} has this in its name` : "no row was learned since the service began";
  draw();
  if (sight()[1] > last) draw(); // the table has its height only now
}

function again() {
  $("scroller").scrollTop = 0;
  fetchSight(true).catch(() => {}); // the events say that the service does not answer
}

// ---- one ----------------------------------------------------------------------------------------------------

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
  const share = model.isNumber ? fraction : percent;
  const said = "forecast" in about ? [["mean forecast", share(about.forecast)], [model.happened, share(about.happened)]] : [];
  const kept = [...("coverage" in about ? [[model.isNumber ? "in their interval" : "in their set", percent(about.coverage)]] : []), ...("trust" in about ? [["trust in sharing", percent(about.trust)], ["harmed, but for the guard", about.harmed ? "yes" : "no"]] : [])];
  facts($("task-facts"), !found.ok ? [] : "rows" in about
    ? [["rows", whole(about.rows)], [model.error, share(about.error)], ...("auc" in about ? [["AUC", fraction(about.auc)]] : []), ...("loss" in about ? [[model.loss, fraction(about.loss)]] : []), ...said, ...kept]
    : [["rows since the service began", "0"], ...kept]);
  why(about.latest);
  const alike = (about.similar ?? []).filter(({ similarity }) => similarity > 0);
  bars($("ways"), (about.ways ?? []).map(({ way, weight }) => [way.replace("the task's", `the ${model.one}'s`).replace("all tasks", `all ${model.many}`), weight, percent(weight)]));
  bars($("similar"), alike.map((other) => [html("a", { href: linkTo(other.task) }, other.task), other.similarity, other.similarity.toFixed(2)]));
  $("similar-title").textContent = `${model.many[0].toUpperCase()}${model.many.slice(1)} most like it`;
  $("ways-part").hidden = !about.ways?.length; $("similar-part").hidden = !alike.length;
  opened = task;
  if (!box.open) box.showModal();
}

// The forecast that was asked for last, what is usual, and what each reason adds.
function why(latest) {
  $("why-part").hidden = !latest;
  if (!latest) return;
  const isShare = latest.unit.startsWith("probability"), say = (value) => isShare ? percent(value) : fraction(value);
  const ends = "set" in latest ? `, may be ${latest.set.join(" or ") || "no label"}` : !("low" in latest) ? "" : latest.low === null ? ", no interval yet" : `, from ${fraction(latest.low)} to ${fraction(latest.high)}`;
  $("why-note").textContent = `${latest.unit}: ${say(latest.forecast)}${ends}; usual ${latest.usual_of}: ${say(latest.usual)}`;
  const most = Math.max(...latest.reasons.map((reason) => Math.abs(reason.share)), 1e-12);
  bars($("why"), latest.reasons.map(({ what, share }) => [what, share / most, `${share < 0 ? "−" : "+"}${say(Math.abs(share))}`]));
}

function leave() {
  if (opened !== null && chosen() === opened) history.replaceState(null, "", location.pathname);
  opened = null;
  if ($("task").open) $("task").close();
}

function bars(box, rows) {
  const focused = box.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
  box.replaceChildren(...rows.map(([name, value, text]) => html("li", {}, html("span", {}, name), bar(value), html("span", {}, text))));
  if (focused) [...box.querySelectorAll("a")].find((a) => a.getAttribute("href") === focused)?.focus({ preventScroll: true });
}

function bar(value) {
  const drawn = svg("svg", { class: value < 0 ? "bar less" : "bar", viewBox: "0 0 100 8", preserveAspectRatio: "none", "aria-hidden": "true" });
  drawn.append(svg("rect", { width: 100 * Math.min(Math.abs(value), 1), height: 8 }));
  return drawn;
}

// ---- events -------------------------------------------------------------------------------------------------

export function showTasks(state, words) {
  model = words; columns = columnsOf(state, words);
  $("tasks-title").textContent = state.model.task.length ? `All ${words.many}` : "All rows";
  const now = columns.map(([, title]) => title).join();
  if (titles !== now) {
    titles = now;
    for (const box of ["worst-head", "tasks-head"]) head($(box), columns);
    for (const [sort, kind] of [["auc", "auc"], ["loss", "loss"]]) $("sort").querySelector(`[value=${sort}]`).hidden = !columns.some(([name]) => name === kind);
  }
  if (state.rows === shownRows && $("tasks").rows.length) return; // nothing was learned meanwhile
  shownRows = state.rows;
  worst(state).catch(() => {});
  fetchSight(true).catch(() => {});
  if (chosen() !== null) one().catch(() => {});
}

$("filter").addEventListener("input", again);
$("sort").addEventListener("change", again);
$("scroller").addEventListener("scroll", () => {
  draw();
  clearTimeout(wait);
  wait = setTimeout(() => fetchSight(false).catch(() => {}), 60);
});
$("close").addEventListener("click", leave);
$("task").addEventListener("click", (event) => { if (event.target === $("task")) leave(); }); // beside it
$("task").addEventListener("cancel", leave); // Escape, mostly: browsers may close it without asking
$("task").addEventListener("close", () => { if (!$("task").open) leave(); }); // else another one has been opened
addEventListener("hashchange", () => one().catch(() => {}));
