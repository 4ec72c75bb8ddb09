// What all parts of the page share. Everything that comes from the service is shown by textContent or as an attribute
// that is no code, so that no name of a task can be markup.
export const $ = (id) => document.getElementById(id);

const counts = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const values = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });
const isNumber = (value) => typeof value === "number" && Number.isFinite(value);

export function whole(value) { return isNumber(value) ? counts.format(value) : "–"; }
export function fraction(value) { return !isNumber(value) ? "–" : Math.abs(value) < 1 ? value.toFixed(4) : values.format(value); }

export function percent(value) { return !isNumber(value) ? "–" : `${(100 * value).toFixed(Math.abs(value) < 0.0995 ? 1 : 0)}\u00a0%`; }

export function duration(seconds) {
  if (!isNumber(seconds)) return "–";
  const [unit, size] = [["days", 86400], ["h", 3600], ["min", 60]].find(([, long]) => seconds >= 2 * long) ?? ["s", 1];
  return `${values.format(Number((seconds / size).toPrecision(2)))} ${unit}`;
}

export function bytes(n) {
  if (!isNumber(n)) return "–";
  const [unit, size] = [["GB", 1e9], ["MB", 1e6]].find(([, large]) => n >= large) ?? ["kB", 1e3];
  return `${Number((n / size).toPrecision(3))} ${unit}`;
}

export function html(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children); // a string becomes a text
  return made;
}

export function svg(name, attributes = {}, text = null) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== null) made.textContent = text;
  return made;
}

// Pairs of a name and a value, as a list of definitions.
export function facts(box, pairs) {
  box.replaceChildren(...pairs.map(([name, value]) => html("div", {}, html("dt", {}, name), html("dd", {}, value))));
}

export function request(path, options = {}) {
  const token = sessionStorage.getItem("token");
  return fetch(path, token ? { ...options, headers: { Authorization: `Bearer ${token}` } } : options);
}
