// Documents for people. All documents of linerate have units in their keys, so one writer shows all
// of them: scalars as a list of terms, equal objects as a table, the rest nested.

import { h } from "./dom.js";
import { byKey, plainKey } from "./units.js";
import { local, parseTime } from "./time.js";

const deepest = 6; // levels that are unfolded; below that is the raw document
const longest = 60; // rows of a table

const isScalar = (v) => v === null || typeof v !== "object";
const isTime = (v) => typeof v === "string" && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d/.test(v) && parseTime(v) !== undefined;

function scalar(key, v) {
  if (v === null || v === undefined || v === "") return h("span", { class: "soft" }, "-");
  if (typeof v === "boolean") return v ? "yes" : "no";
  if (isTime(v)) return h("time", { datetime: v, title: v }, local(parseTime(v)));
  if (typeof v === "number") return h("span", { title: key + " " + v }, byKey(key, v));
  return String(v);
}

// pretty renders any value of a document.
export function pretty(key, v, depth = 0) {
  if (isScalar(v)) return scalar(key, v);
  if (depth >= deepest) return h("code", {}, JSON.stringify(v));
  if (!Array.isArray(v)) return terms(v, depth);
  if (v.length === 0) return h("span", { class: "soft" }, "none");
  if (v.every(isScalar)) {
    return v.every((one) => typeof one === "string" && one.length > 40) ? h("ul", { class: "plain-list" }, v.map((one) => h("li", {}, one))) : v.slice(0, 200).map((one, i) => [i ? ", " : "", scalar(key, one)]);
  }
  if (v.every((one) => one && typeof one === "object" && !Array.isArray(one))) return records(key, v, depth);
  return h("ol", {}, v.slice(0, longest).map((one) => h("li", {}, pretty(key, one, depth + 1))));
}

function terms(object, depth) {
  const entries = Object.entries(object).filter(([key]) => depth > 0 || key !== "schema");
  if (entries.length === 0) return h("span", { class: "soft" }, "none");
  // Scalars first: they are easy to find, and nested values follow below.
  entries.sort((a, b) => !isScalar(a[1]) - !isScalar(b[1]));
  return h("dl", { class: "terms" }, entries.map(([key, v]) => [h("dt", { title: key }, plainKey(key)), h("dd", {}, pretty(key, v, depth + 1))]));
}

// records is a table if every value fits on one line, otherwise a list of terms for each record.
function records(key, list, depth) {
  const columns = [...new Set(list.flatMap((one) => Object.keys(one)))];
  const flat = columns.filter((c) => list.every((one) => isScalar(one[c] ?? null)));
  if (flat.length < columns.length || columns.length > 9) {
    return h("ol", { class: "records" }, list.slice(0, longest).map((one) => h("li", {}, terms(one, depth + 1))), more(list));
  }
  // Names before numbers.
  const words = (c) => list.some((one) => typeof one[c] === "string" && !isTime(one[c]));
  columns.sort((a, b) => words(b) - words(a));
  const numeric = (c) => list.every((one) => one[c] === undefined || typeof one[c] === "number");
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": plainKey(key) },
    h("table", {}, h("thead", {}, h("tr", {}, columns.map((c) => h("th", { scope: "col", title: c, class: numeric(c) ? "num" : "" }, plainKey(c))))),
      h("tbody", {}, list.slice(0, longest).map((one) => h("tr", {}, columns.map((c) => h("td", { class: numeric(c) ? "num" : "" }, scalar(c, one[c]))))))), more(list));
}

const more = (list) => (list.length > longest ? h("p", { class: "soft" }, "and " + (list.length - longest) + " more, in the raw document") : null);
