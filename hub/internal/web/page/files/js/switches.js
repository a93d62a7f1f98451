// The switches that the hub reads: their ports in a table, and the graphs of one port.

import { h, put, once } from "./dom.js";
import { change, link, read } from "./state.js";
import { switches, Failure, inWords } from "./api.js";
import { Board } from "./board.js";
import { forPort } from "./ports.js";
import { Ranges } from "./ranges.js";
import { EventList } from "./eventlist.js";
import { windowOf, now } from "./time.js";
import { bits, count, percent, span, speed } from "./units.js";

const natural = new Intl.Collator("en", { numeric: true }).compare;

// farEnd names what hangs at a port.
const farEnd = (p) => [...p.attached.map((a) => (a.trunk ? "trunk to this host's " : "this host's ") + a.interface), ...(p.attached.length ? [] : p.neighbours.map((n) => [n.system || n.chassis, n.port].filter(Boolean).join(" ")))].join(", ");

const pill = (p) => (p.up ? h("span", { class: "pill good" }, h("span", { "aria-hidden": "true" }, "●"), "up") : h("span", { class: "pill soft" }, h("span", { "aria-hidden": "true" }, "○"), p.enabled ? "down" : "disabled"));

export class SwitchesView {
  constructor(place) {
    this.title = "Switches";
    this.filter = h("input", { type: "search", placeholder: "Filter ports", "aria-label": "Filter ports", "aria-keyshortcuts": "/", oninput: () => change({ filter: this.filter.value }, { push: false }) });
    this.filter.value = read().query.get("filter") ?? "";
    this.list = h("div", { class: "stack" }, h("p", { class: "empty" }, "Loading …"));
    put(place, h("div", { class: "view-head" }, h("h1", {}, "Switches"), h("div", { class: "row no-print" }, this.filter)), this.list);
  }

  async update() {
    if (!this.asked) await this.tick(true);
    else this.draw();
  }

  async tick(first) {
    if (!first && now() - this.asked < 10) return;
    this.asked = now();
    try {
      this.all = (await switches()).switches;
      this.draw();
    } catch (failure) {
      if (!(failure instanceof Failure)) throw failure;
      if (!this.all) put(this.list, h("p", { class: "card empty" }, inWords(failure)));
    }
  }

  draw() {
    if (!this.all) return;
    const wanted = (read().query.get("filter") ?? "").toLowerCase();
    once(this.list, [this.all, wanted], () => (this.all.length === 0 ? h("p", { class: "card empty" }, "No switch is configured. Name switches in the hub's configuration, and the hub reads their ports by SNMP.") : this.all.map((s) => this.one(s, wanted))));
  }

  one(s, wanted) {
    const ports = s.ports.filter((p) => (wanted ? [p.name, p.alias, farEnd(p)].join(" ").toLowerCase().includes(wanted) : p.up));
    const hidden = s.ports.length - ports.length;
    const number = (text) => h("td", { class: "num" }, text);
    const lost = (n) => h("td", { class: n > 0 ? "num bad" : "num" }, count(Math.round(n)));
    const rateOf = (v, of) => bits(v) + (of > 0 && v >= of / 100 ? " (" + percent(v / of) + ")" : "");
    return h("section", { class: "card" },
      h("h2", {}, s.name), h("p", { class: "soft small" }, [s.system_name, s.description, s.address].filter(Boolean).join(" · ")),
      s.error ? h("p", { class: "bad" }, "It does not answer now: " + s.error + (ports.length ? ". The table shows its last answer." : ".")) : null,
      ports.length ? h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Ports of " + s.name }, h("table", {},
        h("thead", {}, h("tr", {}, ["Port", "State", "Speed", "In", "Out", "Errors", "Discards", "Neighbour"].map((t, i) => h("th", { scope: "col", class: i > 2 && i < 7 ? "num" : "" }, t)))),
        h("tbody", {}, ports.sort((a, b) => natural(a.name, b.name)).map((p) => h("tr", { class: "interface-row" },
          h("th", { scope: "row" }, h("a", { href: link("port", [s.name, p.name], { filter: null }) }, p.name), p.alias && p.alias !== p.name ? h("span", { class: "soft small" }, " " + p.alias) : null),
          h("td", {}, pill(p)), h("td", {}, p.speed_bits_per_second ? speed(p.speed_bits_per_second) + (p.duplex === "half" ? ", half duplex" : "") : "-"),
          number(rateOf(p.receive_bits_per_second, p.speed_bits_per_second)), number(rateOf(p.transmit_bits_per_second, p.speed_bits_per_second)),
          lost(p.receive_errors + p.transmit_errors), lost(p.receive_discards + p.transmit_discards), h("td", { class: "small" }, farEnd(p))))))) : null,
      h("p", { class: "soft small" }, [ports[0]?.over_seconds ? "Counts and rates over " + span(ports[0].over_seconds) : "", hidden && !wanted ? hidden + (hidden === 1 ? " port without a link is" : " ports without a link are") + " found by the filter" : ""].filter(Boolean).join(". ")));
  }

  stop() {}
}

const usual = "48h";

export class PortView {
  constructor(place, { parts }) {
    [this.of, this.name] = parts;
    this.title = this.name + " of " + this.of;
    this.facts = h("p", { class: "soft facts" });
    this.list = new EventList();
    // No event is of a port alone: the board shows those of the hub's host.
    this.board = new Board({ usual, onEvents: (all, events, truncated) => this.list.show(all, events, truncated) });
    this.ranges = new Ranges(this.board);
    put(place,
      h("div", { class: "view-head" },
        h("div", {}, h("p", { class: "small no-print" }, h("a", { href: link("switches", []) }, "Switches"), " / ", this.of), h("h1", {}, this.name), this.facts),
        h("div", { class: "stack tight" }, this.ranges.element)),
      h("div", { class: "with-side" }, h("div", { class: "stack" }, this.board.element), h("div", { class: "stack side" }, this.list.element)));
    forPort(this.board, this.of, this.name, {});
    this.loadFacts();
  }

  async loadFacts() {
    try {
      const p = (await switches()).switches.find((s) => s.name === this.of)?.ports.find((x) => x.name === this.name);
      if (!p) {
        put(this.facts, "The switch has no such port now. If it had one, its history is below.");
        return;
      }
      put(this.facts, [p.up ? "up" : p.enabled ? "down" : "disabled", p.alias, p.speed_bits_per_second ? speed(p.speed_bits_per_second) : "", p.duplex ? p.duplex + " duplex" : "", farEnd(p)].filter(Boolean).join(" · "));
      const g = this.board.graphs[0];
      g.spec.reference = p.speed_bits_per_second;
      g.lay();
    } catch (failure) {
      if (!(failure instanceof Failure)) throw failure;
      put(this.facts, inWords(failure));
    }
  }

  async update() {
    const win = windowOf(read().query, usual);
    this.ranges.show(win);
    await this.board.go(win);
    return undefined;
  }

  async tick() {
    const win = windowOf(read().query, usual);
    if (this.board.other(win)) return this.update();
    return this.board.due(win, 10) ? this.board.show(win) : undefined;
  }

  recolour() {
    this.board.recolour();
  }

  stop() {
    this.board.stop();
  }
}
