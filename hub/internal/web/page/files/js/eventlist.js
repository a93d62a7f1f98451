// The list of events beside the graphs, and the buttons that filter it by kind.

import { h, put, once } from "./dom.js";
import { change, read } from "./state.js";
import { kinds, chosen } from "./kinds.js";
import { eventRow } from "./eventdialog.js";

const longest = 120; // rows; more are not read one after the other

export class EventList {
  constructor() {
    this.filters = h("div", { class: "chips no-print", role: "group", "aria-label": "Kinds of events" });
    this.list = h("ul", { class: "event-list" });
    this.said = h("p", { class: "soft small" });
    this.element = h("aside", { class: "card events", "aria-label": "Events" }, h("h2", {}, "Events"), this.filters, this.said, this.list);
  }

  // show lists the given events of the window, newest first.
  show(all, events, truncated) {
    const wanted = chosen(read().query);
    const numbers = kinds.map((k) => all.filter((e) => e.kind === k.kind).length);
    once(this.filters, [wanted, numbers], () => kinds.map((k, i) => h("button", {
      type: "button", class: "chip", "aria-pressed": String(wanted.includes(k.kind)), disabled: numbers[i] === 0 && wanted.includes(k.kind), title: "Show or hide " + k.plural.toLowerCase(),
      onclick: () => this.toggle(k.kind),
    }, h("span", { class: "mark still k-" + k.colour, "aria-hidden": "true" }, k.letter), k.plural, h("span", { class: "soft" }, String(numbers[i])))));
    put(this.said, truncated ? "The hub has more events than it returns at once: choose a shorter time to see all of them." :
      all.length === 0 ? "Nothing happened in this time. Changes, runs, measurements, reboots and links appear here and on the graphs." :
        events.length === 0 ? "The selected kinds hide all events of this time." : events.length > longest ? "The newest " + longest + " of " + events.length + "." : "");
    once(this.list, events.map((e) => [e.id, e.title, e.state, e.end, e.open]), () => events.slice(-longest).reverse().map((e) => eventRow(e)));
  }

  toggle(kind) {
    const wanted = chosen(read().query);
    const next = wanted.includes(kind) ? wanted.filter((k) => k !== kind) : [...wanted, kind];
    const index = kinds.findIndex((k) => k.kind === kind);
    // An empty choice differs from no choice.
    change({ kinds: next.length === kinds.length ? null : kinds.map((k) => k.kind).filter((k) => next.includes(k)).join(",") || "none" }, { push: false });
    this.filters.children[index]?.focus();
  }
}
