// The page: asks for a token if it must, listens to the events, and shows each.
import { calibration, key, lines } from "./charts.js";
import { showModels } from "./models.js";
import { $, bytes, duration, facts, fraction, percent, request, whole } from "./parts.js";
import { sentence, taskWords } from "./sentence.js";
import { showTasks } from "./tasks.js";

const SILENCE = 5000; // milliseconds without an event, after which the service is asked again

function behind(state, words) {
  const isNumber = words.isNumber, g = state.gauges, age = state.points.length ? Date.now() / 1000 - state.points[0][1] : 0;
  const over = (seconds, name, value) => age > seconds ? [[name, fraction(value)]] : []; // else it is the error of all rows
  facts($("numbers"), [
    ["algorithm", state.model.learner], ["rows judged", whole(state.rows)], ["rows a second", whole(state.rows_a_second)],
    ["rows in the queue", whole(g.queue_rows)], ["features", whole(g.features)], ["error of all rows", fraction(g.error)],
    ...over(3600, "error, last hour", g.error_of_last_hour), ...over(86400, "error, last day", g.error_of_last_day), ["AUC of all rows", fraction(g.auc)],
    ...("coverage" in g ? [[isNumber ? "in their interval" : "in their set", percent(g.coverage)], [`of the worst ${words.one}`, percent(g.coverage_of_worst_task)]] : []), ...("tasks_harmed" in g ? [[`${words.many} harmed, but for the guard`, whole(g.tasks_harmed)]] : []),
    ["since the last snapshot", duration(g.snapshot_age_seconds)], ["log", bytes(g.log_bytes)],
    ["predictions that wait for a label", whole(g.predictions_waiting)], ["median wait, last hour", duration(g.label_lag_seconds)],
    ["labels accepted", whole(g.labels_accepted)], ["came too late", whole(g.labels_late)], ["came twice", whole(g.labels_double)],
    ["for unknown ids", whole(g.labels_unknown)], ["asked for by /v1/query", whole(g.labels_asked)],
  ]);
}

function tell(text, isOff) {
  if ($("status").textContent !== text) $("status").textContent = text; // readers say it again otherwise
  $("status").className = isOff ? "off" : "";
}

function show(state) {
  const isNumber = state.kind === "regression", m = state.model, isQuantile = m.quantiles.length > 0;
  const words = {
    ...taskWords(m.task), isNumber, error: isNumber ? "mean absolute error" : "wrong", loss: isQuantile ? "pinball loss" : isNumber ? "squared error" : "log-loss",
    happened: isNumber ? "mean of what came" : state.kind === "binary" ? `share of ${state.positive}` : "share that was right",
  };
  $("title").textContent = m.name;
  document.title = `${m.name}: ${m.label}`;
  tell("live", false);
  $("main").hidden = false; $("door").hidden = true;
  sentence($("sentence"), state, words);
  $("error-title").textContent = isNumber ? "Mean absolute error over time" : "Share of wrong forecasts over time";
  $("loss-title").textContent = isQuantile ? "Pinball loss over time" : isNumber ? "Squared error over time" : "Log-loss over time";
  $("losses-part").hidden = !state.has_losses;
  $("calibration-part").hidden = !state.has_probabilities;
  $("calibration-note").textContent = `${state.kind === "binary" ? "What happened" : "How often the predicted label was right"}, against what was forecast, of 20 rows or more. On the line, forecasts can be taken at their word.`;
  showModels(state, words); behind(state, words); key($("key"), state.who, words);
  lines($("errors"), state, 0, words);
  if (state.has_losses) lines($("losses"), state, 1, words);
  if (state.has_probabilities) calibration($("calibration"), state.calibration);
  showTasks(state, words);
}

async function listen() {
  const silence = new AbortController();
  let timer = setTimeout(() => silence.abort(), SILENCE);
  try {
    const answer = await request("/v1/events", { signal: silence.signal });
    if (answer.status === 401 || answer.status === 403) {
      clearTimeout(timer);
      $("door").hidden = false; $("main").hidden = true; $("token").focus();
      tell(sessionStorage.getItem("token") ? "this token does not open the page" : "", true);
      return;
    }
    if (!answer.ok) throw new Error(answer.status);
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let held = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) break;
      clearTimeout(timer); timer = setTimeout(() => silence.abort(), SILENCE);
      const events = (held + value).split("\n\n");
      held = events.pop();
      const latest = events.length ? JSON.parse(events[events.length - 1].slice(6)) : null;
      if (latest) queueMicrotask(() => show(latest)); // what goes wrong in drawing is no failure of the service
    }
  } catch { /* told below */ }
  clearTimeout(timer);
  tell("the service does not answer; trying again …", true);
  setTimeout(listen, 1000);
}

$("door").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem("token", $("token").value);
  listen();
});
listen();
