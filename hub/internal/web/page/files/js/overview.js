// All hosts and their interfaces, current findings and the last changes.

import { h, put, once } from "./dom.js";
import { change, link, read } from "./state.js";
import { hosts, findings, events, Failure, inWords } from "./api.js";
import { gridOf, stepFor, matrix, vector, rate, grew, several } from "./query.js";
import { recorded, windowOf, now } from "./time.js";
import { bits, packets, percent, speed, count, span } from "./units.js";
import { sparkline } from "./sparkline.js";
import { Ranges } from "./ranges.js";
import { eventRow } from "./eventdialog.js";
import { findingCard } from "./findings.js";
import { timed } from "./board.js";
import { stale } from "./status.js";

// Six hours show the changes of today, and cost a quarter of a day for forty interfaces.
const usual = "6h";
const natural = new Intl.Collator("en", { numeric: true }).compare;

// columns: title, sort order and rendering. On a phone the titles are beside the values.
const columns = [
  { id: "name", name: "Interface" }, { id: "state", name: "State" }, { id: "graph", name: "Traffic" }, { id: "in", name: "In", num: true }, { id: "out", name: "Out", num: true },
  { id: "use", name: "Utilisation" }, { id: "pin", name: "Packets in", num: true }, { id: "pout", name: "Packets out", num: true }, { id: "drops", name: "Drops", num: true }, { id: "errors", name: "Errors", num: true },
];

export class OverviewView {
  constructor(place) {
    this.title = "Overview";
    this.rows = new Map();
    this.ranges = new Ranges();
    this.filter = h("input", { type: "search", placeholder: "Filter interfaces", "aria-label": "Filter interfaces", "aria-keyshortcuts": "/", oninput: () => change({ filter: this.filter.value }, { push: false }) });
    this.filter.value = read().query.get("filter") ?? "";
    this.table = h("div", { class: "card wide-table" }, h("p", { class: "empty" }, "Loading …"));
    this.findings = h("section", { class: "card", "aria-labelledby": "now-found" }, h("h2", { id: "now-found" }, "Findings now"));
    this.foundList = h("div", { class: "stack tight" }, h("p", { class: "empty" }, "Loading …"));
    this.findings.append(this.foundList);
    this.changed = h("ul", { class: "event-list" });
    put(place,
      h("div", { class: "view-head" }, h("h1", {}, "Overview"), h("div", { class: "row no-print" }, this.filter, this.ranges.element)),
      h("div", { class: "overview-parts" }, this.table,
        h("div", { class: "stack" }, this.findings,
          h("section", { class: "card" }, h("h2", {}, "Latest changes"), this.changed, h("p", { class: "small" }, h("a", { href: link("changes") }, "All changes"))))));
  }

  async update() {
    const { query } = read();
    const win = windowOf(query, usual);
    this.ranges.show(win);
    const key = win.live ? win.range : win.start + "-" + win.end;
    if (key === this.key) {
      this.draw();
      return;
    }
    this.key = key;
    await this.load(win);
  }

  async tick() {
    const win = windowOf(read().query, usual);
    if (!this.grid || !win.live) return;
    if (win.range !== this.key) await this.update();
    else if (now() - this.asked >= 10) await this.load(win);
  }

  // load requests everything in parallel, and shows answers as they arrive.
  async load(win) {
    this.abort?.abort();
    this.abort = new AbortController();
    const { signal } = this.abort;
    this.asked = now();
    this.win = win;
    const part = recorded(win);
    const grid = gridOf(part, stepFor(part, 110));
    const length = Math.round(win.end - win.start);
    const guard = (promise, fn, failed) => promise.then((answer) => { if (!signal.aborted) fn(answer); }, (failure) => {
      if (failure.name === "AbortError") return;
      if (!(failure instanceof Failure)) throw failure;
      if (!signal.aborted) failed?.(failure);
    });
    const iface = (metric, step) => rate("linerate_interface_" + metric + "_total", {}, step);
    const traffic = (q, metric) => matrix(several({ [q]: iface(metric, grid.step) + " * 8" }), grid, signal);
    const growth = (metric) => "sum by (host, interface) (" + grew("linerate_interface_" + metric + "_total", {}, length) + ")";
    // In and out are two queries, because the hub evaluates each on its own CPU. Losses take almost as
    // long, and come after them.
    const graphs = guard(Promise.all([traffic("in", "receive_bytes"), traffic("out", "transmit_bytes")]), (rows) => { this.grid = grid; this.traffic = byInterface(rows.flat()); this.draw(); });
    await Promise.all([
      graphs,
      guard(hosts(signal), (answer) => { this.hosts = answer.hosts; this.draw(); }, (failure) => { if (!this.hosts) put(this.table, h("p", { class: "empty" }, inWords(failure))); }),
      guard(vector(several({
        in: iface("receive_bytes", 15) + " * 8", out: iface("transmit_bytes", 15) + " * 8", pin: iface("receive_packets", 15), pout: iface("transmit_packets", 15),
        last: "max by (host) (timestamp(linerate_interface_up))",
      }), win.end, signal), (rows) => { this.rates = byInterface(rows); this.tellAge(rows, win); this.draw(); }),
      guard(graphs.then(() => vector(several({ drops: growth("drops"), errors: growth("errors") }), win.end, signal)), (rows) => { this.losses = byInterface(rows); this.draw(); }),
      guard(findings(signal), (answer) => this.showFindings(answer), (failure) => put(this.foundList, h("p", { class: "empty" }, inWords(failure)))),
      guard(events({ start: 0, end: (now() + 60).toFixed(0), kind: "change", limit: 8 }, signal), (answer) => this.showChanges(answer)),
    ]);
  }

  tellAge(rows, win) {
    if (!win.live) return stale([]);
    return stale(rows.filter((r) => r.labels.q === "last").map((r) => ({ host: r.labels.host ?? "this host", age: win.end - r.value })));
  }

  showFindings(answer) {
    const list = answer.findings ?? [];
    once(this.foundList, list, () => (list.length === 0 ? h("p", { class: "empty" }, "No findings: nothing limits these hosts.") : list.slice(0, 6).map((f) => findingCard(f, true))));
  }

  showChanges(answer) {
    const list = answer.events.map(timed).sort((a, b) => b.start - a.start).slice(0, 8);
    once(this.changed, list, () => (list.length === 0 ? h("li", { class: "empty" }, "No changes yet. Changes by linerate set and linerate tune on these hosts appear here, each with the command that undoes it.") : list.map((e) => eventRow(e))));
  }

  // draw makes the table when the set of interfaces changes, and otherwise updates the rows.
  draw() {
    if (!this.hosts) return;
    const { query } = read();
    const filter = (query.get("filter") ?? "").toLowerCase(), sort = query.get("sort") ?? "";
    if (this.filter !== document.activeElement) this.filter.value = query.get("filter") ?? "";
    const sorted = this.hosts.map((host) => ({ host, list: this.order(host, sort).filter((i) => !filter || (i.name + " " + host.host + " " + (i.driver ?? "") + " " + (i.kind ?? "")).toLowerCase().includes(filter)) }));
    const key = JSON.stringify([filter, sort, sorted.map((s) => [s.host.host, s.list.map((i) => [i.name, i.parent, i.kind, i.driver])])]);
    if (key !== this.drawn) {
      this.drawn = key;
      this.make(sorted, sort);
    }
    for (const { host, list } of sorted) for (const i of list) this.write(host.host, i);
    if (this.grid) performance.mark("overview");
  }

  // numbers returns the known numbers of an interface.
  numbers(host, i) {
    const key = keyOf(host, i.name);
    return { ...this.rates?.get(key), ...this.losses?.get(key) };
  }

  value(host, i, id) {
    const n = this.numbers(host, i);
    if (id === "use") return i.speed_bits_per_second > 0 && n.in !== undefined ? Math.max(n.in, n.out ?? 0) / i.speed_bits_per_second : undefined;
    if (id === "state") return i.up ? 1 : 0;
    return n[id];
  }

  // order sorts by name, with stacked interfaces below their parents; or by a column, largest first.
  order(host, sort) {
    const list = [...(host.interfaces ?? [])];
    if (sort && sort !== "name") return list.sort((a, b) => (this.value(host.host, b, sort) ?? -1) - (this.value(host.host, a, sort) ?? -1) || natural(a.name, b.name));
    list.sort((a, b) => natural(a.name, b.name));
    const names = new Set(list.map((i) => i.name));
    const out = [], placed = new Set();
    const place = (i, depth) => {
      if (placed.has(i.name)) return; // a cycle of parents, which no kernel makes but a document could have
      placed.add(i.name);
      out.push(Object.assign(i, { depth }));
      for (const child of list) if (child.parent === i.name) place(child, Math.min(depth + 1, 3));
    };
    for (const i of list) if (!i.parent || !names.has(i.parent)) place(i, 0);
    for (const i of list) place(i, 0);
    return out;
  }

  make(sorted, sort) {
    this.rows.clear();
    if (this.hosts.length === 0 || sorted.every((s) => s.host.interfaces?.length === 0)) {
      put(this.table, h("p", { class: "empty" }, "No interface has been sampled yet. The hub samples this host each second; the first numbers appear a few seconds after it started."));
      return;
    }
    const length = span(this.win.end - this.win.start);
    const head = h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, columns.map((c) => {
      const active = (sort || "name") === c.id;
      const what = c.id === "drops" || c.id === "errors" ? c.name + " in\u00a0" + length.replace(" ", "\u00a0") : c.name;
      return h("th", { scope: "col", role: "columnheader", class: (c.num ? "num " : "") + "col-" + c.id, "aria-sort": active ? (c.id === "name" ? "ascending" : "descending") : undefined },
        c.id === "graph" ? what : h("button", { type: "button", class: "sort plain", onclick: () => change({ sort: c.id === "name" ? null : c.id }, { push: false }) }, what, active ? h("span", { "aria-hidden": "true" }, c.id === "name" ? " ▴" : " ▾") : null));
    })));
    const bodies = sorted.map(({ host, list }) => h("tbody", { role: "rowgroup" },
      h("tr", { role: "row", class: "host-row" }, h("th", { scope: "rowgroup", role: "rowheader", colspan: String(columns.length) }, host.host, h("span", { class: "soft" }, " " + list.length + (list.length === 1 ? " interface" : " interfaces")))),
      list.map((i) => this.row(host.host, i))));
    const shown = sorted.reduce((n, s) => n + s.list.length, 0);
    put(this.table, h("table", { class: "interfaces", role: "table", "aria-label": "Interfaces" }, head, bodies), shown === 0 ? h("p", { class: "empty" }, "No interface matches the filter.") : null);
  }

  row(host, i) {
    const cells = {};
    const cell = (c) => {
      cells[c.id] = h("td", { role: "cell", class: (c.num ? "num " : "") + "col-" + c.id, "data-label": c.name });
      return cells[c.id];
    };
    const canvas = h("canvas", { class: "spark", role: "img", "aria-label": "Traffic unknown" });
    const row = h("tr", { role: "row", class: "interface-row" },
      h("th", { scope: "row", role: "rowheader", class: "col-name depth-" + (i.depth ?? 0) }, h("a", { href: link("interface", [host, i.name], { filter: null, sort: null }) }, i.name), h("span", { class: "soft small" }, [i.kind, i.driver !== i.kind ? i.driver : ""].filter(Boolean).join(" · "))),
      columns.slice(1).map(cell));
    cells.graph.append(canvas);
    this.rows.set(keyOf(host, i.name), { cells, canvas, row });
    return row;
  }

  write(host, i) {
    const entry = this.rows.get(keyOf(host, i.name));
    if (!entry) return;
    const { cells, canvas } = entry;
    const n = this.numbers(host, i), t = this.traffic?.get(keyOf(host, i.name));
    const wait = (known) => (known ? "-" : "…");
    once(cells.state, i.up, () => (i.up ? h("span", { class: "pill good" }, h("span", { "aria-hidden": "true" }, "●"), "up") : h("span", { class: "pill soft" }, h("span", { "aria-hidden": "true" }, "○"), "down")));
    const set = (id, text) => { if (cells[id].textContent !== text) cells[id].textContent = text; };
    set("in", n.in === undefined ? wait(this.rates) : bits(n.in));
    set("out", n.out === undefined ? wait(this.rates) : bits(n.out));
    set("pin", n.pin === undefined ? wait(this.rates) : packets(n.pin));
    set("pout", n.pout === undefined ? wait(this.rates) : packets(n.pout));
    for (const id of ["drops", "errors"]) {
      const v = n[id];
      set(id, v === undefined ? wait(this.losses) : count(Math.round(v)));
      cells[id].classList.toggle("bad", v > 0);
    }
    const use = this.value(host, i, "use");
    once(cells.use, [use === undefined ? null : Math.round(use * 1000), i.speed_bits_per_second], () => {
      if (use === undefined) return h("span", { class: "soft small" }, i.speed_bits_per_second ? "of " + speed(i.speed_bits_per_second) : "-");
      const text = percent(use) + " of " + speed(i.speed_bits_per_second);
      const bar = h("meter", { min: "0", max: "1", high: "0.9", value: String(Math.min(use, 1)), "aria-label": text });
      return h("span", { class: "use" }, bar, h("span", { class: "small soft" }, text));
    });
    if (t && canvas.dataset.at !== this.asked + "") {
      canvas.dataset.at = this.asked;
      const empty = this.grid.times.map(() => null);
      sparkline(canvas, t.in ?? empty, t.out ?? empty, (this.grid.end - this.grid.start) / (this.win.end - this.win.start));
      const top = (v) => (v ?? []).reduce((m, x) => Math.max(m, x ?? 0), 0);
      canvas.setAttribute("aria-label", "Traffic in " + span(this.win.end - this.win.start) + ": means of at most " + bits(top(t.in)) + " in, " + bits(top(t.out)) + " out");
    }
  }

  recolour() {
    for (const entry of this.rows.values()) delete entry.canvas.dataset.at;
    this.draw();
  }

  stop() {
    this.abort?.abort();
  }
}

const keyOf = (host, name) => host + "\n" + name;

function byInterface(rows) {
  const out = new Map();
  for (const { labels, values, value } of rows) {
    const key = keyOf(labels.host ?? "", labels.interface ?? "");
    if (!out.has(key)) out.set(key, {});
    out.get(key)[labels.q] = values ?? value;
  }
  return out;
}
