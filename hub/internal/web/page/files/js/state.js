// All state is in the address, so that a link shows the same:
// #/view/parts?range=48h&kinds=change,run&a=FROM/TO&b=FROM/TO&event=ID. It is in the fragment:
// servers never log names of hosts and interfaces.

import { iso, parseTime } from "./time.js";

const listeners = [];

// read parses the address. An unknown address is the overview.
export function read() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?", 2);
  const parts = path.split("/").filter(Boolean).map((p) => {
    try {
      return decodeURIComponent(p);
    } catch {
      return p;
    }
  });
  return { view: parts[0] ?? "overview", parts: parts.slice(1), query: new URLSearchParams(query ?? "") };
}

// kept are the keys that links to other views keep: time range, filters, marks.
const kept = ["range", "from", "to", "kinds", "a", "b"];

// link returns the address of a view.
export function link(view, parts = [], query = {}) {
  const here = read().query;
  const q = new URLSearchParams();
  for (const key of kept) {
    if (here.has(key)) q.set(key, here.get(key));
  }
  for (const [key, value] of Object.entries(query)) {
    if (value === null || value === undefined || value === "") q.delete(key);
    else q.set(key, value);
  }
  const path = [view, ...parts].map(encodeURIComponent).join("/");
  const text = tidy(q);
  return "#/" + (path === "overview" ? "" : path) + (text ? "?" + text : "");
}

// tidy leaves characters readable that a fragment may have.
const tidy = (q) => q.toString().replaceAll("%3A", ":").replaceAll("%2F", "/").replaceAll("%2C", ",");

// change sets keys of the address (null removes one) and notifies listeners. It pushes steps that
// the user may go back from, and replaces otherwise.
export function change(set, { push = true } = {}) {
  const s = read();
  for (const [key, value] of Object.entries(set)) {
    if (value === null || value === undefined || value === "") s.query.delete(key);
    else s.query.set(key, value);
  }
  const path = [s.view, ...s.parts].map(encodeURIComponent).join("/");
  const text = tidy(s.query);
  const address = "#/" + (path === "overview" ? "" : path) + (text ? "?" + text : "");
  if (address === location.hash) return;
  history[push ? "pushState" : "replaceState"](null, "", address);
  notify();
}

export function visit(address) {
  history.pushState(null, "", address);
  notify();
}

export function listen(fn) {
  listeners.push(fn);
}

function notify() {
  for (const fn of listeners) fn();
}

addEventListener("hashchange", notify);
addEventListener("popstate", notify);

// A stack of zooms, so that a double click undoes them one by one, independent of the browser's
// history.
const zooms = [];

export function zoom(start, end) {
  const q = read().query;
  zooms.push({ range: q.get("range"), from: q.get("from"), to: q.get("to") });
  look(start, end);
}

export function zoomBack() {
  change(zooms.pop() ?? { range: null, from: null, to: null });
}

export const look = (start, end) => change({ from: iso(start), to: iso(Math.max(end, start + 1)), range: null });

// The two marked intervals, a before and b after: "FROM/TO".
export function marks(query = read().query) {
  const of = (key) => {
    const [from, to] = (query.get(key) ?? "").split("/").map(parseTime);
    return from !== undefined && to > from ? { start: from, end: to } : undefined;
  };
  return { a: of("a"), b: of("b") };
}

export const interval = (start, end) => iso(start) + "/" + iso(end);

// mark sets the first free interval: a, then b; with both set, it starts over.
export function mark(start, end) {
  const { a, b } = marks();
  const text = interval(start, end);
  if (a && !b) change({ b: text }, { push: false });
  else change({ a: text, b: null }, { push: false });
}
