// One interface over 48 hours: its graphs, events and marks.

import { h, put, once } from "./dom.js";
import { change, link, marks, read } from "./state.js";
import { hosts, switches, Failure, inWords } from "./api.js";
import { Board } from "./board.js";
import { forInterface, forHost } from "./graphs.js";
import { forPort } from "./ports.js";
import { Ranges } from "./ranges.js";
import { EventList } from "./eventlist.js";
import { windowOf, short } from "./time.js";
import { speed, bytes } from "./units.js";
import { openEvents } from "./eventdialog.js";

const usual = "48h";

export class InterfaceView {
  constructor(place, { parts }) {
    [this.host, this.name] = parts;
    this.title = this.name + " on " + this.host;
    this.overlaid = read().query.get("out") === "line";
    this.facts = h("p", { class: "soft facts" });
    this.marked = h("div", { class: "marked no-print" });
    this.list = new EventList();
    this.board = new Board({ host: this.host, interface: this.name, usual, onEvents: (all, events, truncated) => this.list.show(all, events, truncated) });
    this.ranges = new Ranges(this.board);
    this.style = h("button", { type: "button", class: "no-print style", "aria-pressed": String(this.overlaid), title: "Draw out as a line over in, as MRTG does, or mirrored below the axis", onclick: () => change({ out: this.overlaid ? null : "line" }) }, "Out as a line");
    put(place,
      h("div", { class: "view-head" },
        h("div", {}, h("p", { class: "small no-print" }, h("a", { href: link("overview", [], { out: null }) }, "Overview"), " / ", this.host), h("h1", {}, this.name), this.facts),
        h("div", { class: "stack tight" }, this.ranges.element)),
      this.marked,
      h("div", { class: "with-side" }, h("div", { class: "stack" }, this.board.element, h("p", { class: "soft small no-print hint" }, "Drag over a graph to zoom in, double-click to zoom back. Drag with ", h("kbd", {}, "Shift"), " to mark A, then B, and compare them. ", h("kbd", {}, "?"), " shows all keys.")),
        h("div", { class: "stack side" }, this.list.element)));
    this.build();
  }

  build() {
    forInterface(this.board, this.host, this.name, { speed: this.speed, overlaid: this.overlaid });
    forHost(this.board, this.host);
    this.board.graphs[0].note.after(this.style);
    this.factsAsked = this.loadFacts();
    this.loadPort();
  }

  async loadFacts() {
    try {
      const all = await hosts();
      const one = all.hosts.find((x) => x.host === this.host)?.interfaces?.find((i) => i.name === this.name);
      if (!one) {
        put(this.facts, "The hub has no such interface now. If it had one, its history is below.");
        return;
      }
      const parts = [one.up ? "up" : "down", one.kind, one.driver, one.speed_bits_per_second ? speed(one.speed_bits_per_second) : "", one.mtu_bytes ? "MTU " + one.mtu_bytes : "", one.parent ? "on " + one.parent : ""];
      put(this.facts, parts.filter(Boolean).join(" · "));
      this.speed = one.speed_bits_per_second;
      const g = this.board.graphs[0];
      g.spec.reference = this.speed;
      g.lay();
    } catch (failure) {
      if (!(failure instanceof Failure)) throw failure;
      put(this.facts, inWords(failure));
    }
  }

  // loadPort adds the graphs of the switch's port at which the interface hangs, if one is known.
  async loadPort() {
    try {
      for (const s of (await switches()).switches) {
        const p = s.ports.find((x) => x.attached.some((a) => a.interface === this.name));
        if (!p || this.stopped) continue;
        forPort(this.board, s.name, p.name, { title: "Port " + p.name + " of switch " + s.name, short: true });
        if (this.board.win) await this.board.show(this.board.win);
        return;
      }
    } catch (failure) {
      if (!(failure instanceof Failure)) throw failure; // the graphs of the host need no switch
    }
  }

  // update handles the address; tick, the time. A graph reloads when a new point is due.
  async update() {
    const { query } = read();
    if ((query.get("out") === "line") !== this.overlaid) return "again";
    const win = windowOf(query, usual);
    this.ranges.show(win);
    this.showMarks();
    await this.board.go(win);
    return undefined;
  }

  async tick() {
    const win = windowOf(read().query, usual);
    if (this.board.other(win)) return this.update();
    return this.board.due(win) ? this.board.show(win) : undefined;
  }

  showMarks() {
    const { a, b } = marks();
    once(this.marked, [a, b, read().query.toString()], () => (a || b ? h("div", { class: "card marked-row" },
      [["A", a], ["B", b]].map(([name, one]) => h("span", { class: "interval i-" + name.toLowerCase() }, h("b", {}, name), one ? " " + short(one.start) + " – " + short(one.end) : " not marked: drag with Shift, or key " + name.toLowerCase())),
      h("span", { class: "row" }, a && b ? h("a", { class: "button", href: link("compare", [this.host, this.name]) }, "Compare A with B") : null,
        h("button", { type: "button", onclick: () => change({ a: null, b: null }, { push: false }) }, "Clear"))) : []));
  }

  // step goes to the next or previous event on the graphs. The address has the current one.
  step(by) {
    const all = this.board.events;
    if (all.length === 0) return;
    const markers = [...this.board.graphs[0].markers.querySelectorAll("button")];
    if (markers.length === 0) {
      openEvents([all.at(by > 0 ? 0 : -1)]);
      return;
    }
    const here = markers.indexOf(document.activeElement);
    const next = here < 0 ? (by > 0 ? 0 : markers.length - 1) : (here + by + markers.length) % markers.length;
    markers[next].focus();
  }

  recolour() {
    this.board.recolour();
  }

  stop() {
    this.stopped = true;
    this.board.stop();
  }
}
