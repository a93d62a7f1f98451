// The last mesh on a canvas: racks against racks, and, within a cell, hosts against hosts. A table
// of 250 × 250 cells would be too much for a browser.

import { h, put, colour } from "./dom.js";
import { change, read } from "./state.js";
import { fleetMesh, Failure, inWords } from "./api.js";
import { local, now, parseTime } from "./time.js";
import { bits, seconds, percent, span } from "./units.js";

const widest = { racks: 22, hosts: 22 }; // pixels of a cell
const step = { racks: 256, hosts: 64 };

export class Mesh {
  constructor() {
    this.at = [0, 0];
    this.canvas = h("canvas", { class: "mesh", tabindex: "0", role: "img" });
    this.box = h("div", { class: "mesh-box" }, this.canvas);
    this.said = h("p", { class: "mesh-said small", "aria-live": "polite" });
    this.head = h("div");
    this.foot = h("div", { class: "stack tight" });
    this.element = h("section", { class: "card mesh-card", hidden: true }, this.head, this.box, this.said, this.foot);
    this.canvas.addEventListener("pointermove", (e) => this.point(e));
    this.canvas.addEventListener("click", (e) => { this.point(e); this.open(); });
    this.canvas.addEventListener("keydown", (e) => this.key(e));
    this.canvas.addEventListener("focus", () => this.draw());
    this.canvas.addEventListener("blur", () => this.draw());
    this.watch = new ResizeObserver(() => this.draw());
    this.watch.observe(this.box);
  }

  // update follows the address.
  update(query) {
    const key = JSON.stringify(["row", "column", "row_from", "column_from"].map((k) => query.get(k)));
    if (key === this.asked) return;
    this.asked = key;
    this.load();
  }

  async load() {
    this.abort?.abort();
    this.abort = new AbortController();
    const { query } = read();
    try {
      const params = Object.fromEntries(["row", "column", "row_from", "column_from"].map((k) => [k, query.get(k) ?? ""]));
      this.take(await fleetMesh(params, this.abort.signal));
    } catch (failure) {
      if (failure.name === "AbortError") return;
      if (!(failure instanceof Failure)) throw failure;
      if (!this.grid) put(this.head, h("p", { class: "empty" }, inWords(failure)));
    }
  }

  take(grid) {
    const same = JSON.stringify(grid) === JSON.stringify(this.grid);
    if (same) return;
    const moved = !this.grid || this.grid.of !== grid.of;
    this.grid = grid;
    this.cells = new Map(grid.cells.map((c, i) => [c[0] + " " + c[1], { tests: c[2], bad: c[3], value: grid.values?.[i] }]));
    // Several tests of the same two hosts share a cell: what is bad stays visible.
    for (const [i, c] of grid.cells.entries()) {
      const kept = this.cells.get(c[0] + " " + c[1]);
      if (c[3] > 0 && kept.bad === 0) this.cells.set(c[0] + " " + c[1], { tests: c[2], bad: c[3], value: grid.values?.[i] });
    }
    if (moved) this.at = [0, 0];
    this.at = [Math.min(this.at[0], Math.max(0, grid.rows.length - 1)), Math.min(this.at[1], Math.max(0, grid.columns.length - 1))];
    this.element.hidden = false;
    this.write();
    this.draw();
    this.say();
  }

  write() {
    const g = this.grid, { query } = read();
    if (!g.time) {
      put(this.head, h("h2", {}, "Mesh"), h("p", { class: "empty" }, "The hosts have not measured each other yet: linerate-hub fleet measure."));
      this.box.hidden = this.said.hidden = true;
      put(this.foot);
      return;
    }
    this.box.hidden = this.said.hidden = false;
    const hosts = g.of === "hosts";
    put(this.head, h("div", { class: "row between" }, h("h2", {}, hosts ? "Mesh: " + query.get("row") + " × " + query.get("column") : "Mesh of racks"),
      hosts ? h("button", { type: "button", class: "up", onclick: () => this.leave() }, "All racks") : null),
    h("p", { class: "soft small" }, g.tests_total + " tests among " + g.hosts + " hosts, " + g.bad_tests_total + " bad; ended " + local(parseTime(g.time)) + ", " + span(Math.max(0, now() - parseTime(g.time))) + " ago." + (g.missing_hosts ? " " + g.missing_hosts + " hosts are in no test." : "")));
    const legend = h("p", { class: "legend small" }, h("span", {}, h("i", { class: "cell-good" }), "good"), h("span", {}, h("i", { class: "cell-bad" }), "bad"), h("span", {}, h("i", { class: "cell-none" }), "not measured"),
      h("span", { class: "soft" }, "A full row is a host or rack, a block a pair of sites. Arrow keys move, Enter opens a cell of racks."));
    const part = (name, key, from, all, shown) => (all <= shown ? null : h("span", { class: "row" }, h("span", { class: "soft small" }, name + " " + (from + 1) + " to " + (from + shown) + " of " + all),
      h("button", { type: "button", disabled: from === 0, "aria-label": name + ": back", onclick: () => change({ [key]: Math.max(0, from - step[g.of]) || null }, { push: false }) }, "‹"),
      h("button", { type: "button", disabled: from + shown >= all, "aria-label": name + ": next", onclick: () => change({ [key]: from + step[g.of] }, { push: false }) }, "›")));
    put(this.foot, legend, h("div", { class: "row" }, part("Rows", "row_from", g.row_from, g.rows_total, g.rows.length), part("Columns", "column_from", g.column_from, g.columns_total, g.columns.length)),
      g.culprits.length ? h("div", {}, h("h3", {}, "What the results accuse"), h("ul", { class: "plain-list" }, g.culprits.map((c) => h("li", {}, h("b", {}, c.text), h("span", { class: "soft small" }, " " + c.bad_tests_total + " of " + c.tests_total + " tests across it are bad"))))) :
        h("p", { class: "soft small" }, "The results accuse no host and no rack."));
  }

  // size returns the pixels of a cell.
  size() {
    const g = this.grid, n = Math.max(g.rows.length, g.columns.length, 1);
    return Math.min(widest[g.of], Math.max(1 / (devicePixelRatio || 1), this.box.clientWidth / n));
  }

  draw() {
    const g = this.grid;
    if (!g?.time || this.box.clientWidth === 0) return;
    const dense = devicePixelRatio || 1, size = this.size(), width = size * g.columns.length, height = size * g.rows.length;
    this.canvas.width = Math.max(1, Math.round(width * dense));
    this.canvas.height = Math.max(1, Math.round(height * dense));
    this.canvas.style.width = width + "px";
    this.canvas.style.height = height + "px";
    const ctx = this.canvas.getContext("2d"), s = size * dense;
    ctx.fillStyle = colour("band");
    ctx.fillRect(0, 0, this.canvas.width, this.canvas.height);
    const good = colour("in"), bad = colour("bad");
    // What is bad fills its cell, what is good does not: the shape says it too.
    const inset = s >= 5 ? s * 0.22 : 0, gap = s >= 8 ? 1 : 0;
    for (const wrong of [false, true]) {
      ctx.fillStyle = wrong ? bad : good;
      for (const [key, c] of this.cells) {
        if (c.bad > 0 !== wrong) continue;
        const [i, j] = key.split(" "), d = wrong ? gap : inset;
        ctx.globalAlpha = wrong ? Math.max(0.45, Math.min(1, c.bad / c.tests)) : 0.85;
        ctx.fillRect(j * s + d, i * s + d, Math.max(1, s - 2 * d), Math.max(1, s - 2 * d));
      }
    }
    ctx.globalAlpha = 1;
    if (document.activeElement === this.canvas) {
      ctx.strokeStyle = colour("ink");
      ctx.lineWidth = Math.max(2, dense);
      const grown = Math.max(0, 7 * dense - s) / 2;
      ctx.strokeRect(this.at[1] * s - grown, this.at[0] * s - grown, s + 2 * grown, s + 2 * grown);
    }
  }

  point(e) {
    const size = this.size(), g = this.grid;
    if (!g?.time) return;
    const r = this.canvas.getBoundingClientRect();
    this.at = [Math.min(g.rows.length - 1, Math.max(0, Math.floor((e.clientY - r.top) / size))), Math.min(g.columns.length - 1, Math.max(0, Math.floor((e.clientX - r.left) / size)))];
    this.say();
  }

  key(e) {
    const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], Home: [0, -1e6], End: [0, 1e6], PageUp: [-1e6, 0], PageDown: [1e6, 0] }[e.key], g = this.grid;
    if (moves) {
      this.at = [Math.min(g.rows.length - 1, Math.max(0, this.at[0] + moves[0])), Math.min(g.columns.length - 1, Math.max(0, this.at[1] + moves[1]))];
      this.say();
      this.draw();
    } else if (e.key === "Enter" || e.key === " ") this.open();
    else if ((e.key === "Escape" || e.key === "Backspace") && g.of === "hosts") this.leave();
    else return;
    e.preventDefault();
    e.stopPropagation();
  }

  say() {
    const g = this.grid;
    if (!g?.time || g.rows.length === 0) return;
    const [i, j] = this.at, c = this.cells.get(i + " " + j), v = c?.value;
    const parts = [g.rows[i] + " × " + g.columns[j] + ": "];
    if (!c) parts.push("not measured");
    else if (v) parts.push([v.test, v.rtt_p50_seconds === undefined ? "" : seconds(v.rtt_p50_seconds), v.loss_ratio === undefined ? "" : percent(v.loss_ratio) + " lost", v.throughput_bits_per_second === undefined ? "" : bits(v.throughput_bits_per_second), v.bad ? "bad: " + (v.reason ?? v.error ?? "") : v.error ?? "good"].filter(Boolean).join(", "));
    else parts.push(c.bad + " of " + c.tests + " tests bad");
    this.said.textContent = parts.join("");
    this.canvas.setAttribute("aria-label", "Mesh of " + g.of + ", " + g.rows.length + " by " + g.columns.length + ". " + parts.join(""));
  }

  open() {
    const g = this.grid;
    if (g.of !== "racks" || g.rows.length === 0) return;
    change({ row: g.rows[this.at[0]], column: g.columns[this.at[1]], row_from: null, column_from: null });
  }

  leave() {
    change({ row: null, column: null, row_from: null, column_from: null });
  }

  stop() {
    this.abort?.abort();
    this.watch.disconnect();
  }
}
