// The bar above the page: what is wrong, in plain words. It is empty when nothing is wrong.

import { h, once } from "./dom.js";
import { status, events, health, inWords, Failure } from "./api.js";
import { setClock, setHistory, now, local, parseTime } from "./time.js";
import { bytes, span } from "./units.js";

const late = 20; // seconds without a sample until data are called old

let hub, ages = [], gaps = [], failed = "";

// stale takes the age of the newest sample of each host.
export function stale(list) {
  ages = list.filter((one) => one.age > late);
  show();
}

// refresh loads the state of the hub and the gaps of its history.
export async function refresh() {
  try {
    hub = await status();
    setClock(hub.now);
    setHistory(hub.loading ? undefined : hub.oldest ?? hub.started);
    failed = "";
    const answer = await events({ start: (now() - 2 * 86400).toFixed(0), end: now().toFixed(0), kind: "gap", limit: 20 });
    gaps = answer.events;
  } catch (failure) {
    if (!(failure instanceof Failure)) throw failure;
    failed = inWords(failure);
  }
  show();
  return hub;
}

function lines() {
  const out = [];
  const add = (tone, head, text) => out.push({ tone, head, text });
  if (health.failure) add("bad", "No answer.", inWords(health.failure) + " Since " + local(health.since) + ".");
  else if (failed) add("warn", "State unknown.", failed);
  if (hub && !health.failure) {
    const { disk = {} } = hub;
    if (disk.state === "full") {
      add("bad", "The disk is full" + (disk.since ? " since " + local(parseTime(disk.since)) : "") + ".",
        "The hub stores nothing new." + (disk.kept_in_memory_seconds ? " The last " + span(disk.kept_in_memory_seconds) + " are kept in memory and are lost if the hub ends." : "") + " Sampling continues. Free space on the file system of the hub's data (" + bytes(disk.free_bytes ?? 0) + " free); writing then resumes.");
    } else if (disk.state === "failing") {
      add("bad", "The disk fails" + (disk.since ? " since " + local(parseTime(disk.since)) : "") + ".", "New samples may not be stored. The hub's log has the error.");
    }
    if (hub.loading) add("warn", "The hub is still loading its history.", "Older times are empty until it is done; nothing is lost.");
    for (const text of hub.warnings ?? []) add("warn", "Note.", String(text));
  }
  if (!health.failure) {
    for (const { host, age } of ages.slice(0, 4)) add("warn", host + " is silent.", "Its newest sample is " + span(age) + " old; the values shown as current are from then.");
  }
  if (gaps.length > 0) {
    const last = gaps.at(-1), from = parseTime(last.time), to = parseTime(last.end);
    const why = (last.title ?? "").split(": ").slice(1).join(": "); // its head says how long
    add("", gaps.length === 1 ? "There is a gap in the history." : "There are " + gaps.length + " gaps in the history of the last 48 h.",
      (gaps.length === 1 ? "Nothing" : "Last, nothing") + " was recorded from " + local(from) + (to ? " to " + local(to) + " (" + span(to - from) + ")" : " on") + (why ? ": " + why : "") + ". Graphs have no line there.");
  }
  return out;
}

// severe orders notices: what is bad comes first.
const severe = ["bad", "warn", ""];

// notice is one line of the bar; on a phone its text unfolds.
const notice = (l) => h("div", { class: "notice " + l.tone }, h("b", {}, (l.tone === "bad" ? "■ " : l.tone === "warn" ? "▲ " : "● ") + l.head), h("span", {}, l.text));

let unfolded = false;

// show writes the bar. A phone has one line for each of the first two notices, and unfolds the rest.
export function show() {
  const all = lines().sort((a, b) => severe.indexOf(a.tone) - severe.indexOf(b.tone));
  const bar = document.getElementById("notices");
  once(bar, [all, unfolded], () => {
    bar.classList.toggle("folded", !unfolded);
    if (all.length === 0) return [];
    const fold = h("button", { type: "button", class: "plain notices-fold no-print", "aria-expanded": String(unfolded), onclick: () => {
      unfolded = !unfolded;
      show();
      bar.querySelector(".notices-fold").focus();
    } }, unfolded ? "Shorten" : all.length === 1 ? "Read it" : "Read all " + all.length + " notices");
    return [all.map(notice), fold];
  });
}

health.changed = show;
