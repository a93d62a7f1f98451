// Compares two intervals: medians, 99th percentiles, their ratio, and whether it exceeds chance.

import { h, put, once, svg } from "./dom.js";
import { change, interval, link, marks, read } from "./state.js";
import { compare, hosts, Failure, inWords } from "./api.js";
import { Board } from "./board.js";
import { forInterface } from "./graphs.js";
import { forField, fromField, local, now, parseTime } from "./time.js";
import { bits, byUnit, span } from "./units.js";

export class CompareView {
  constructor(place, { parts }) {
    [this.host, this.name] = parts;
    this.title = "Compare";
    this.place = place;
    this.fields = {};
    const field = (name, end) => {
      const input = h("input", { type: "datetime-local", step: "1", required: true, id: name + "-" + end });
      this.fields[name + end] = input;
      return h("label", { class: "field" }, end === "start" ? "from" : "to", input);
    };
    this.wrong = h("span", { class: "bad small", role: "alert" });
    this.form = h("form", { class: "card compare-form", onsubmit: (e) => { e.preventDefault(); this.submit(); } },
      h("fieldset", { class: "i-a" }, h("legend", {}, "A, before"), h("div", { class: "row" }, field("a", "start"), field("a", "end"))),
      h("fieldset", { class: "i-b" }, h("legend", {}, "B, after"), h("div", { class: "row" }, field("b", "start"), field("b", "end"))),
      h("div", { class: "row" }, h("button", { type: "submit", class: "main" }, "Compare"), h("button", { type: "button", onclick: () => this.swap() }, "Swap A and B"), this.wrong));
    this.which = h("select", { "aria-label": "Host and interface", onchange: () => this.choose() });
    this.only = h("button", { type: "button", onclick: () => change({ all: read().query.get("all") === "1" ? null : "1" }, { push: false }) }, "Show all metrics");
    this.graph = h("div");
    this.said = h("p", { class: "soft small" });
    this.table = h("div", { class: "card", id: "compared" });
    put(place, h("div", { class: "view-head" }, h("div", {}, h("h1", {}, "Compare two intervals"), h("p", { class: "soft small" }, "Before and after a change, or yesterday and today.")), this.which), this.form, this.graph, this.table);
    this.loadHosts();
  }

  async loadHosts() {
    try {
      this.known = (await hosts()).hosts;
    } catch (failure) {
      if (!(failure instanceof Failure)) throw failure;
      this.known = [];
    }
    const option = (host, name) => {
      const value = JSON.stringify(name ? [host, name] : [host]);
      return h("option", { value, selected: value === JSON.stringify([this.host, this.name].filter(Boolean)) }, name ? name + " on " + host : "all of " + host);
    };
    put(this.which, this.host ? null : h("option", { value: "[]" }, "Choose what to compare"), this.known.map((x) => h("optgroup", { label: x.host }, option(x.host), (x.interfaces ?? []).map((i) => option(x.host, i.name)))));
    if (!this.host && this.known.length === 1 && !this.stopped) location.replace(link("compare", [this.known[0].host]));
  }

  choose() {
    const parts = JSON.parse(this.which.value);
    if (parts.length) location.hash = link("compare", parts);
  }

  submit() {
    const of = (name) => [fromField(this.fields[name + "start"].value), fromField(this.fields[name + "end"].value)];
    const a = of("a"), b = of("b");
    const wrong = [["A", a], ["B", b]].find(([, [from, to]]) => !(to > from));
    put(this.wrong, wrong ? wrong[0] + " must end after it begins." : "");
    if (!wrong) change({ a: interval(...a), b: interval(...b) });
  }

  swap() {
    const { a, b } = marks();
    if (a && b) change({ a: interval(b.start, b.end), b: interval(a.start, a.end) });
  }

  async update() {
    const { query } = read();
    const { a, b } = marks(query);
    this.all = query.get("all") === "1";
    put(this.only, this.all ? "Show only what moved" : "Show all metrics");
    // The fields start with a useful choice: the last hour and the one before it.
    const t = Math.floor(now() / 60) * 60;
    const fill = (name, one, usual) => {
      const { start, end } = one ?? usual;
      this.fields[name + "start"].value = forField(start);
      this.fields[name + "end"].value = forField(end);
    };
    const key = JSON.stringify([a, b, query.get("from"), query.get("to"), query.get("range")]);
    if (key === this.key) {
      this.board?.update();
      if (this.answer) this.show();
      return;
    }
    this.key = key;
    fill("a", a, { start: t - 7200, end: t - 3600 });
    fill("b", b, { start: t - 3600, end: t });
    if (!this.host || !a || !b) {
      put(this.table, h("p", { class: "empty" }, !this.host ? "Choose a host or an interface above." : "Mark two intervals: drag over a graph with Shift, press a and b to mark the visible time, or fill in the fields above. Each event has a button that marks the hour before and the hour after it."));
      return;
    }
    await Promise.all([this.draw(a, b, query), this.ask(a, b)]);
  }

  async draw(a, b, query) {
    if (!this.name) return;
    if (!this.board) {
      this.board = new Board({ host: this.host, interface: this.name });
      forInterface(this.board, this.host, this.name, { speed: 0, overlaid: false });
      // The throughput alone shows both intervals in context.
      for (const g of this.board.graphs.splice(1)) g.element.remove();
      put(this.graph, this.board.element);
    }
    const from = Math.min(a.start, b.start), to = Math.max(a.end, b.end), room = (to - from) * 0.08;
    const zoomed = parseTime(query.get("from")) !== undefined && parseTime(query.get("to")) > parseTime(query.get("from"));
    await this.board.show(zoomed ? { start: parseTime(query.get("from")), end: parseTime(query.get("to")), live: false } : { start: from - room, end: Math.min(to + room, Math.max(now(), to)), live: false });
  }

  async ask(a, b) {
    this.abort?.abort();
    this.abort = new AbortController();
    put(this.table, h("p", { class: "empty" }, "Comparing …"));
    this.answer = undefined;
    try {
      this.answer = await compare({ before_start: a.start, before_end: a.end, after_start: b.start, after_end: b.end, host: this.host, interface: this.name }, this.abort.signal);
      this.show();
    } catch (failure) {
      if (failure.name === "AbortError") return;
      if (!(failure instanceof Failure)) throw failure;
      put(this.table, h("p", { class: "empty" }, inWords(failure)));
    }
  }

  show() {
    const { a, b } = marks();
    const rows = this.answer.rows ?? [];
    const moved = rows.filter((r) => r.moved);
    const shown = this.all ? rows : moved;
    put(this.said, moved.length + " of " + rows.length + " moved. A: " + local(a.start) + ", " + span(a.end - a.start) + ". B: " + local(b.start) + ", " + span(b.end - b.start) + ".");
    once(this.table, [shown, this.all], () => [h("div", { class: "row between" }, h("h2", {}, "What moved"), rows.length > moved.length ? this.only : null), this.said,
      rows.length === 0 ? h("p", { class: "empty" }, "The two intervals have no metric in common. Choose intervals in which the hub was running.") :
        shown.length === 0 ? h("p", { class: "empty" }, "Nothing moved by more than chance explains.") : this.rowsTable(shown)]);
  }

  rowsTable(rows) {
    const group = (name, of) => h("th", { scope: "colgroup", colspan: "2", class: "num " + of }, name);
    const col = (text, cls) => h("th", { scope: "col", class: cls }, text);
    return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "What moved" }, h("table", { class: "compared" },
      h("thead", {}, h("tr", {}, h("td", {}), group("A, before", "i-a"), group("B, after", "i-b"), h("th", { scope: "colgroup", colspan: "2" }, "B : A")),
        h("tr", {}, col("What", ""), col("median", "num"), col("99th pct.", "num"), col("median", "num"), col("99th pct.", "num"), col("ratio, interval", "num"), col(h("span", { class: "hidden-text" }, "Drawn"), "drawn"))),
      h("tbody", {}, rows.map((r) => this.row(r)))));
  }

  row(r) {
    const labels = Object.entries(r.labels ?? {}).filter(([k]) => k !== "host" && k !== "__name__" && !(k === "interface" && r.labels.interface === this.name)).map(([k, v]) => k + " " + v).join(", ");
    const value = (side, key) => h("td", { class: "num" }, side?.[key] === undefined || side?.[key] === null ? "-" : written(r, side[key]));
    const known = typeof r.ratio === "number";
    const sign = !known ? "" : r.ratio > 1 ? "▲ " : r.ratio < 1 ? "▼ " : "";
    return h("tr", { class: r.moved ? "moved" : "" }, h("th", { scope: "row", title: r.metric }, words(r.metric), labels ? h("span", { class: "soft small" }, labels) : null),
      value(r.before, "median"), value(r.before, "p99"), value(r.after, "median"), value(r.after, "p99"),
      h("td", { class: "num" }, known ? h("b", {}, (r.moved ? sign : "") + ratio(r.ratio)) : h("span", { class: "soft" }, "-"), typeof r.ratio_low === "number" ? h("span", { class: "soft small" }, " " + ratio(r.ratio_low) + " – " + ratio(r.ratio_high)) : null),
      h("td", { class: "drawn" }, known ? forest(r) : null));
  }

  recolour() {
    this.board?.recolour();
  }

  stop() {
    this.stopped = true;
    this.abort?.abort();
    this.board?.stop();
  }
}

// words returns a metric's name as words: "linerate_interface_receive_bytes_total" is "interface
// receive bytes".
export const words = (metric) => String(metric).replace(/^linerate_/, "").replace(/_total$/, "").replaceAll("_", " ");

// written converts traffic to bits, as everywhere on the page; the metric counts bytes.
const written = (r, v) => (/_bytes_total$/.test(r.metric) && /^B\/s$|^bytes_per_second$/.test(r.unit) ? bits(v * 8) : byUnit(r.unit, v, r.metric));

const ratio = (v) => "×" + (v >= 100 ? v.toFixed(0) : v >= 10 ? v.toFixed(1) : v.toFixed(v < 0.1 ? 3 : 2));

// forest draws a ratio with its interval on a logarithmic axis from a quarter to four times.
function forest(r) {
  const width = 132, middle = width / 2, far = Math.log(4);
  const x = (v) => middle + (Math.max(-1, Math.min(1, Math.log(Math.max(v, 1e-9)) / far)) * (width - 12)) / 2;
  const low = x(r.ratio_low ?? r.ratio), high = x(r.ratio_high ?? r.ratio), at = x(r.ratio);
  return svg("svg", { class: "forest", viewBox: "0 0 " + width + " 18", width, height: 18, "aria-hidden": "true" },
    svg("line", { class: "one", x1: middle, x2: middle, y1: 0, y2: 18 }), svg("line", { class: "span", x1: low, x2: Math.max(high, low + 1), y1: 9, y2: 9 }), svg("circle", { class: "at", cx: at, cy: 9, r: 4 }));
}
