// Measurements between hosts: a matrix, and the history of one cell.

import { h, put, once, prose } from "./dom.js";
import { change, read } from "./state.js";
import { matrixOfHosts, Failure, inWords } from "./api.js";
import { Board } from "./board.js";
import { roundTrips } from "./graphs.js";
import { matrix, selector } from "./query.js";
import { Ranges } from "./ranges.js";
import { windowOf, local, utc, now, parseTime } from "./time.js";
import { bits, seconds, percent } from "./units.js";

const usual = "7d";
const shades = 6;

export class MatrixView {
  constructor(place) {
    this.title = "Measurements";
    this.choice = h("div", { class: "joined", role: "group", "aria-label": "Test" });
    this.table = h("div", { class: "card" }, h("p", { class: "empty" }, "Loading …"));
    this.history = h("div", { class: "stack" });
    this.place = place;
    put(place, h("div", { class: "view-head" }, h("div", {}, h("h1", {}, "Measurements between hosts"), h("p", { class: "soft small" }, prose("The newest scheduled result of each pair. Click a cell for its history. What `linerate measure` found by hand is among the events of each graph."))), this.choice), this.table, this.history);
  }

  async update() {
    if (!this.answer) await this.tick(true);
    else this.draw();
    await this.showHistory();
  }

  async tick(first) {
    if (!first && now() - this.asked < 30) return;
    this.asked = now();
    try {
      this.answer = await matrixOfHosts();
      this.draw();
      const win = windowOf(read().query, usual);
      if (first || !this.board || !win.live) return;
      if (win.range === this.windowKey) await this.board.show(win);
      else await this.showHistory();
    } catch (failure) {
      if (!(failure instanceof Failure)) throw failure;
      if (!this.answer) put(this.table, h("p", { class: "empty" }, inWords(failure)));
    }
  }

  draw() {
    const cells = this.answer.cells ?? [];
    if (cells.length === 0) {
      put(this.choice);
      put(this.table, h("p", { class: "empty" }, prose("No scheduled measurements yet. Add schedules to the hub's configuration; each target host must run `linerate serve`. What `linerate measure` found is among the events of each graph.")));
      return;
    }
    const { query } = read();
    // Tests with a rate first: they are what users look for.
    const rated = (k) => cells.some((c) => kindOf(c) === k && c.throughput_bits_per_second !== undefined);
    const kinds = [...new Set(cells.map(kindOf))].sort((a, b) => rated(b) - rated(a) || (a < b ? -1 : 1));
    const kind = kinds.includes(query.get("test")) ? query.get("test") : kinds[0];
    this.kind = kind;
    once(this.choice, [kinds, kind], () => kinds.map((k) => h("button", { type: "button", "aria-pressed": String(k === kind), onclick: () => change({ test: k }, { push: false }) }, k.replace("/", ", "))));
    const shown = cells.filter((c) => kindOf(c) === kind);
    const most = Math.max(...shown.map((c) => c.throughput_bits_per_second ?? 0));
    const at = (from, to) => shown.find((c) => c.from === from && c.to === to);
    const chosen = query.get("pair") ?? "";
    const from = [...new Set([...(this.answer.from ?? []), ...shown.map((c) => c.from)])], to = [...new Set([...(this.answer.to ?? []), ...shown.map((c) => c.to)])];
    once(this.table, [this.answer.cells, kind, chosen], () => [h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Measurements between hosts" },
      h("table", { class: "matrix" }, h("caption", {}, "From the host of the row to that of the column." + (most > 0 ? " The stronger the colour, the higher the rate." : "")),
        h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "From \\ to"), to.map((name) => h("th", { scope: "col" }, name)))),
        h("tbody", {}, from.map((f) => h("tr", {}, h("th", { scope: "row" }, f), to.map((t) => this.cell(at(f, t), f, t, most, chosen)))))))]);
  }

  cell(c, from, to, most, chosen) {
    if (!c) return h("td", { class: "none" }, from === to ? h("span", { class: "soft", "aria-label": "the same host" }, "·") : h("span", { class: "soft" }, "-"));
    const rate = c.throughput_bits_per_second, pair = JSON.stringify([from, to]);
    const shade = rate && most ? Math.max(1, Math.ceil((rate / most) * shades)) : 0;
    const lossy = c.loss_ratio > 0.001;
    return h("td", { class: "shade-" + shade }, h("button", {
      type: "button", class: "cell", "aria-pressed": String(pair === chosen), title: local(parseTime(c.time)) + " · " + utc(parseTime(c.time)),
      onclick: () => change({ pair: pair === chosen ? null : pair, test: kindOf(c) }),
    }, h("b", {}, rate === undefined ? seconds(c.rtt_p50_seconds) : bits(rate)),
    rate !== undefined && c.rtt_p50_seconds !== undefined ? h("span", { class: "small" }, seconds(c.rtt_p50_seconds)) : null,
    c.loss_ratio !== undefined ? h("span", { class: "small" + (lossy ? " lossy" : "") }, (lossy ? "▲ " : "") + percent(c.loss_ratio) + " lost") : null,
    h("span", { class: "hidden-text" }, ", from " + from + " to " + to)));
  }

  async showHistory() {
    const { query } = read();
    let pair;
    try {
      pair = JSON.parse(query.get("pair") ?? "null");
    } catch {
      pair = null; // a malformed address
    }
    if (!Array.isArray(pair) || pair.length !== 2) {
      this.drop();
      return;
    }
    const [from, to] = pair.map(String);
    const [test] = (this.kind ?? "").split("/");
    const key = JSON.stringify([from, to, test]);
    if (key !== this.historyKey) {
      this.drop();
      this.historyKey = key;
      this.board = new Board({ host: from });
      this.ranges = new Ranges(this.board);
      const of = (metric) => (grid, signal) => matrix("max by (test, direction) (last_over_time(" + metric + selector({ host: from, target: to, ...(test ? { test } : {}) }) + "[" + Math.max(grid.step, 15) + "s]))", grid, signal);
      const lines = (format) => async (grid, signal) => (await of(format)(grid, signal)).slice(0, 6).map((r, i) => ({ label: [r.labels.test, r.labels.direction].filter(Boolean).join(", "), colour: "s" + (i + 1), values: r.values }));
      const none = "No such measurement ran in this time.";
      this.board.add({ id: "measured", title: "Throughput from " + from + " to " + to, format: bits, points: true, height: 200, none }, lines("linerate_measurement_throughput_bits_per_second"));
      this.board.add({ id: "measured-rtt", title: "Round trip", about: "of all tests", format: seconds, points: true, height: 150, none }, (grid, signal) => roundTrips(from, to, grid, signal));
      this.board.add({ id: "measured-loss", title: "Loss", format: percent, points: true, height: 130, none, quiet: "Nothing was lost in this time." }, lines("linerate_measurement_loss_ratio"));
      put(this.history, h("div", { class: "view-head" }, h("h2", {}, from + " to " + to), this.ranges.element), this.board.element);
    }
    const win = windowOf(query, usual);
    this.ranges.show(win);
    const wanted = win.live ? win.range : win.start + "-" + win.end;
    if (wanted === this.windowKey) this.board.update();
    else {
      this.windowKey = wanted;
      await this.board.show(win);
    }
  }

  drop() {
    this.board?.stop();
    this.board = undefined;
    this.historyKey = this.windowKey = "";
    put(this.history);
  }

  recolour() {
    this.board?.recolour();
  }

  stop() {
    this.drop();
  }
}

const kindOf = (c) => [c.test, c.direction].filter(Boolean).join("/");
