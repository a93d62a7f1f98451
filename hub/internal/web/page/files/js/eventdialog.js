// The dialog of an event: what happened, the undo command, and the document, readable and as
// stored. The address has the event, so that a link leads to it.

import { h, put, command } from "./dom.js";
import { iso, local, utc, now } from "./time.js";
import { span } from "./units.js";
import { storedDocument, Failure, inWords, events as ask } from "./api.js";
import { colourOf, kindOf, severityOf, stateOf } from "./kinds.js";
import { change, interval, link, read, visit } from "./state.js";
import { pretty } from "./document.js";

const known = new Map(); // events that were shown somewhere, by id, so that a click needs no question
let dialog, body, title, shown = "", opener;

// remember caches events for the dialog.
export function remember(events) {
  if (known.size > 5000) known.clear();
  for (const e of events) known.set(e.id, e);
}

// openEvents opens one event, or a choice of several under one marker.
export function openEvents(events) {
  remember(events);
  change({ event: events.map((e) => e.id).join(",") });
}

// follow opens or closes the dialog to match the address.
export async function follow() {
  const wanted = read().query.get("event") ?? "";
  if (wanted === shown) return;
  shown = wanted;
  if (!wanted) {
    dialog?.close();
    return;
  }
  build();
  const events = await find(wanted.split(",").slice(0, 100));
  if (shown !== wanted) return;
  if (!dialog.open) {
    opener = document.activeElement;
    dialog.showModal();
  }
  dialog.scrollTop = 0;
  if (events.length === 0) {
    put(title, "No such event");
    put(body, h("p", { class: "empty" }, "The hub has no event with this id. It deletes events that are older than event_retention."));
  } else if (events.length > 1) several(events);
  else await one(events[0]);
}

function build() {
  if (dialog) return;
  title = h("h2", { id: "dialog-title" });
  body = h("div", { class: "body" });
  const shut = h("button", { type: "button", class: "plain no-print", "aria-label": "Close", title: "Close (Esc)", onclick: () => dialog.close() }, "✕");
  dialog = h("dialog", { id: "event", "aria-labelledby": "dialog-title" }, h("div", { class: "head" }, title, shut), body);
  dialog.addEventListener("close", () => {
    if (shown) {
      shown = "";
      change({ event: null });
    }
    // Restore the focus, if its element still exists.
    if (opener?.isConnected) opener.focus({ preventScroll: true });
  });
  dialog.addEventListener("click", (e) => {
    if (e.target === dialog) dialog.close();
  });
  document.body.append(dialog);
}

// find looks up events. For events from a link, it asks the hub for all of its retention.
async function find(ids) {
  if (ids.some((id) => !known.has(id))) {
    try {
      remember((await ask({ start: 0, end: (now() + 86400).toFixed(0), limit_per_kind: 5000 })).events.map((e) => ({ ...e, start: Date.parse(e.time) / 1000, end: e.end ? Date.parse(e.end) / 1000 : undefined })));
    } catch (failure) {
      if (!(failure instanceof Failure)) throw failure;
    }
  }
  return ids.map((id) => known.get(id)).filter(Boolean);
}

function several(events) {
  put(title, events.length + " events");
  put(body, h("ul", { class: "event-list" }, events.map((e) => eventRow(e))));
}

// eventRow returns an event as a row of a list.
export function eventRow(e) {
  const kind = kindOf(e.kind);
  remember([e]);
  return h("li", {}, h("button", { type: "button", class: "event-row plain", onclick: () => openEvents([e]) },
    h("span", { class: "mark still k-" + colourOf(e), "aria-hidden": "true" }, kind.letter),
    h("span", { class: "event-text" }, h("span", { class: "event-title" }, e.title),
      h("span", { class: "soft small" }, h("span", { class: "hidden-text" }, kind.name + ", "), h("time", { datetime: e.time, title: utc(e.start) }, local(e.start)),
        stateOf(e) ? " · " + stateOf(e) : "", e.open ? " · ongoing" : "", e.end ? " · for " + span(e.end - e.start) : ""))));
}

async function one(e) {
  const kind = kindOf(e.kind);
  put(title, h("span", { class: "mark still k-" + colourOf(e), "aria-hidden": "true" }, kind.letter), h("span", {}, e.title));
  const facts = [["What", kind.name + (stateOf(e) ? ", " + stateOf(e) : "")], ["When", h("time", { datetime: e.time, title: utc(e.start) }, local(e.start) + " · " + utc(e.start))]];
  if (e.open) facts.push(["Until", "ongoing, for " + span(now() - e.start)]);
  else if (e.end) facts.push(["Until", local(e.end) + " · " + span(e.end - e.start)]);
  facts.push(["Host", e.host]);
  if (e.subject) facts.push(["Of", e.subject]);
  if (e.severity) facts.push(["Severity", severityOf(e.severity).sign + " " + severityOf(e.severity).word]);
  facts.push(["Id", h("code", {}, e.id)]);
  const place = h("div", { class: "stack" });
  put(body, h("dl", { class: "terms" }, facts.map(([k, v]) => [h("dt", {}, k), h("dd", {}, v)])),
    e.undo ? h("div", {}, h("h3", {}, "Undo it"), h("p", { class: "soft small" }, "On " + e.host + ", as root:"), command(e.undo)) : null,
    h("div", { class: "row no-print" }, beforeAfter(e), look(e)), place);
  if (!e.has_document) return;
  put(place, h("p", { class: "soft" }, "Loading the document …"));
  try {
    const stored = await storedDocument(e.id);
    put(place, h("div", {}, h("h3", {}, "Document ", h("span", { class: "soft small" }, stored.schema ?? "")), pretty("", stored)),
      h("details", { id: "raw" }, h("summary", {}, "Raw JSON"), h("pre", { tabindex: "0" }, JSON.stringify(stored, null, 2))));
  } catch (failure) {
    if (!(failure instanceof Failure)) throw failure;
    put(place, h("p", { class: "empty" }, failure.kind === "missing" ? "The hub no longer has the document of this event." : inWords(failure)));
  }
}

// beforeAfter marks an hour on each side of an event and compares them.
function beforeAfter(e) {
  const until = Math.min((e.end ?? e.start) + 3600, Math.max(now(), e.start + 60));
  return h("button", {
    type: "button", class: "main before-after", onclick: () => {
      const at = read();
      const host = at.view === "interface" ? at.parts[0] : e.host, name = at.view === "interface" ? at.parts[1] : undefined;
      shown = "";
      dialog.close();
      visit(link("compare", name ? [host, name] : [host], { a: interval(e.start - 3600, e.start), b: interval(e.end ?? e.start, until), event: null }));
    },
  }, "Compare the hour before with the hour after");
}

// look shows an event in the middle of two hours.
function look(e) {
  if (read().view !== "interface") return null;
  return h("button", {
    type: "button", onclick: () => {
      shown = "";
      dialog.close();
      change({ from: iso(e.start - 3600), to: iso(e.start + 3600), range: null, event: null });
    },
  }, "Zoom in on it");
}
