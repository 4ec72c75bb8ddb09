// The first sentence: what the model forecasts, how often it is wrong, against last week, and what sharing saves.
import { fraction, html, percent, whole } from "./parts.js";

const plain = /^[a-z]+$/i;
export const FEW = 100; // rows; a point of the lines is as many

// The tasks in the words of the table: "shop" and "shops"; a name that is no word is quoted.
export function taskWords(columns) {
  const name = columns.join(" and ");
  if (!columns.length) return { one: "all rows", many: "rows" };
  if (!plain.test(name)) return { one: `task (${name})`, many: `tasks (${name})` };
  return { one: name, many: /[^aeiou]y$/.test(name) ? `${name.slice(0, -1)}ies` : /(s|x|ch|sh)$/.test(name) ? `${name}es` : `${name}s` };
}

// How much less than another's the errors are; null: as good as nothing.
export function saved(mine, other, isNumber) {
  const part = other > 0 ? (other - mine) / other : 0;
  if (Math.abs(part) < 0.005) return null;
  const text = isNumber || Math.abs(part) > 0.5 ? `${percent(Math.abs(part))} of the error` : `one error in ${whole(Math.round(1 / Math.abs(part)))}`;
  return { text, verb: part > 0 ? "saves" : "costs" };
}

export function strong(text) { return html("strong", {}, text); }

export function sentence(box, state, words) {
  const g = state.gauges, isNumber = state.kind === "regression", say = (value) => isNumber ? fraction(value) : percent(value), said = [];
  said.push("Forecasts ", ...(state.kind === "binary" ? ["whether ", strong(state.model.label), ` is ${state.positive}`] : [strong(state.model.label)]));
  said.push(...(state.model.task.length ? [" for ", strong(`${whole(g.tasks)} ${g.tasks === 1 ? words.one : words.many}`), ". "] : [". "]));
  if (!state.rows) { box.replaceChildren(...said, "Nothing was learned here yet."); return; }
  if (state.rows < FEW) {
    box.replaceChildren(...said, `It was judged on ${whole(state.rows)} ${state.rows === 1 ? "row" : "rows"} so far, too few to say how often it is wrong.`);
    return;
  }
  const now = g.error_of_last_week ?? g.error, before = g.error_of_week_before;
  said.push(isNumber ? "It is off by " : "It is wrong in ", strong(say(now)), isNumber ? " on average" : " of cases");
  if (before === undefined) said.push(` so far, ${whole(state.rows)} rows. `);
  else {
    const step = now - before, near = Math.abs(step) < 0.02 * before;
    said.push(" this week, ", near ? "as good as last week. " : `${step < 0 ? "better" : "worse"} than ${say(before)} last week. `);
  }
  const own = saved(state.errors[0], state.errors[state.who.indexOf("independent")], isNumber);
  const all = saved(state.errors[0], state.errors[state.who.indexOf("pooled")], isNumber);
  if (state.who.length > 1 && state.model.task.length) {
    const than = [[own, `a model for each ${words.one}`], [all, "one model for all"]];
    const again = own?.verb === all?.verb; // the verb stands once
    const parts = than.map(([gain, other], i) => [!i ? "Sharing " : again ? " and " : ", and ", ...(gain ? [i && again ? "" : `${gain.verb} `, strong(gain.text), ` against ${other}`] : [i && again ? other : `is as good as ${other}`])]);
    said.push(...parts.flat(), ".");
  }
  box.replaceChildren(...said);
}
