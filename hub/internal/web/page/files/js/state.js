// All state is in the address, so that a link shows somebody else the same: #/view/parts?range=48h&kinds=change,run&a=FROM/TO&b=FROM/TO&event=ID.
// It stands behind the number sign: names of hosts and interfaces are in no server's log.

import { iso, parseTime } from "./time.js";

const listeners = [];

// read takes the address apart. What is no address of ours is the overview.
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

// kept are the keys that a link to another view takes along: the time looked at, what is filtered, what is marked.
const kept = ["range", "from", "to", "kinds", "a", "b"];

// link is the address of a view.
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

// tidy keeps readable what is allowed to stand in a fragment.
const tidy = (q) => q.toString().replaceAll("%3A", ":").replaceAll("%2F", "/").replaceAll("%2C", ",");

// change sets keys of the address (null takes one away) and tells everyone. A step that one wants to come back from is pushed, others replace.
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
  tell();
}

export function visit(address) {
  history.pushState(null, "", address);
  tell();
}

export function listen(fn) {
  listeners.push(fn);
}

function tell() {
  for (const fn of listeners) fn();
}

addEventListener("hashchange", tell);
addEventListener("popstate", tell);

// Zooms are remembered one by one, so that a double click goes back as often as one went in, whatever else the browser's history holds.
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

// mark puts an interval where one is free: first a, then b; when both are set, it begins anew.
export function mark(start, end) {
  const { a, b } = marks();
  const text = interval(start, end);
  if (a && !b) change({ b: text }, { push: false });
  else change({ a: text, b: null }, { push: false });
}
