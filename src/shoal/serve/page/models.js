// The candidate beside the model in place, on the same rows; and the buttons that put another model in place.
import { $, fraction, html, percent, request, whole } from "./parts.js";
import { FEW, saved, strong } from "./sentence.js";

const WAYS = {
  promote: ["POST", "/v1/model/promote", "Promote the candidate", "The candidate answers from now on, with all that it has learned. Unless --keep-models is 0, the model in place is kept and can be returned to."],
  drop: ["DELETE", "/v1/model/shadow", "End the candidate", "The candidate and what it has learned are dropped. Nothing else changes."],
  rollback: ["POST", "/v1/model/rollback", "Return to the older model", "The older model answers from now on, as it was when it was replaced: what was learned since went to the other one."],
};
let way = null;

function compared({ live, scores: mine }, words) {
  if (mine.rows < FEW) return [`Judged on ${whole(mine.rows)} ${mine.rows === 1 ? "row" : "rows"} so far, too few to say which model is better.`];
  const gain = saved(mine.error, live.error, words.isNumber), share = words.isNumber ? fraction : percent;
  const said = [`On the same ${whole(mine.rows)} rows it is ${words.isNumber ? "off by" : "wrong in"} `, strong(share(mine.error)), ` ${words.isNumber ? "on average" : "of cases"}, the model in place ${words.isNumber ? "by" : "in"} `, strong(share(live.error)), ": "];
  return [...said, ...(gain ? [strong(gain.text), gain.verb === "saves" ? " less." : " more."] : ["as good."])];
}

function measures({ live, scores: mine }, words) {
  const named = [["error", words.isNumber ? words.error : "share of wrong forecasts"], ["loss", words.loss], ["calibration_error", "calibration error"]];
  const cell = (value) => html("td", {}, fraction(value));
  return named.filter(([name]) => mine[name] !== null).map(([name, title]) => html("tr", {}, html("th", { scope: "row", class: "name" }, title), cell(live[name]), cell(mine[name])));
}

export function showModels(state, words) {
  const candidate = state.candidate, mayChange = state.may_change;
  $("candidate-part").hidden = !candidate;
  if (candidate) {
    $("candidate-note").replaceChildren(`${candidate.learner}, ${whole(candidate.tasks)} ${words.many}, learns the same rows and answers nothing. `, ...compared(candidate, words));
    $("measures").replaceChildren(...measures(candidate, words));
  }
  $("older-part").hidden = !state.replaced;
  $("older-note").textContent = state.replaced === 1 ? "The model that was replaced is kept." : `The last ${whole(state.replaced)} models that were replaced are kept.`;
  for (const name of Object.keys(WAYS)) $(name).hidden = !mayChange;
  $("candidate-scope").hidden = mayChange;
}

function ask(name) {
  way = WAYS[name];
  $("sure-title").textContent = `${way[2]}?`; $("sure-note").textContent = way[3];
  $("go").textContent = way[2];
  $("sure").showModal();
}

async function go() {
  $("go").disabled = true;
  try {
    const answer = await request(way[1], { method: way[0] });
    if (answer.ok) { $("sure").close(); return; } // the next event shows it
    $("sure-note").textContent = `Not done: ${(await answer.json()).detail ?? answer.status}`;
  } catch { $("sure-note").textContent = "The service does not answer; try again."; } finally { $("go").disabled = false; }
}

for (const name of Object.keys(WAYS)) $(name).addEventListener("click", () => ask(name));
$("go").addEventListener("click", go);
$("stay").addEventListener("click", () => $("sure").close());
