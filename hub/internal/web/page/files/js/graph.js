// One graph: uPlot draws the lines; around it are the title with the time under the cursor, the
// markers of events, and MRTG's table of numbers. uPlot sets styles through element objects, which
// the content security policy allows; nothing here writes styles as text.

import { h, put, colour } from "./dom.js";
import { axis } from "./units.js";
import { age, local, utc, ticks } from "./time.js";
import { statistics } from "./query.js";
import { layMarkers, drawLines, drawSpans } from "./marks.js";

const axisWidth = 78; // of every graph, so that their times stand one below the other
const justBegan = 15; // seconds of a history that may be too short for a rate
const roomRight = 14; // for the half of a label that stands below the last moment

// Graph of a specification {id, title, about, format, mirrored, stacked, points, height}. The board
// has what all graphs share: window, events, marks.
export class Graph {
  constructor(spec, board) {
    this.spec = spec;
    this.board = board;
    this.note = h("span", { class: "soft small" });
    this.when = h("time", { class: "when small", "aria-hidden": "true" });
    this.markers = h("div", { class: "markers" });
    this.plot = h("div", { class: "plot", role: "img", tabindex: "0", "aria-label": spec.title });
    this.legend = h("div", { class: "legend" });
    this.message = h("p", { class: "empty" }, "Loading …");
    this.element = h("section", { class: "card graph", id: "graph-" + spec.id, "aria-labelledby": "title-" + spec.id },
      h("div", { class: "graph-head" }, h("h2", { id: "title-" + spec.id }, spec.title), this.note, this.when),
      this.message,
      h("div", { class: "plot-box" }, this.markers, this.plot), this.legend);
    this.element.dataset.state = "loading";
    if (spec.about) put(this.note, spec.about);
  }

  // say shows a sentence in place of the graph.
  say(text, state) {
    this.destroy();
    put(this.legend);
    put(this.markers);
    put(this.message, text);
    this.element.dataset.state = state;
  }

  // draw shows rows {label, colour, values, tops, below, line} on a grid. Values below the axis are
  // positive, and drawn mirrored. tops is the envelope: the highest value of each step.
  draw(grid, rows) {
    this.grid = grid;
    this.rows = rows;
    if (!rows.some((r) => r.values.some((v) => v !== null))) {
      const young = this.board.win.live && age() < justBegan;
      this.say(young ? "The history has just begun. The first figures appear within seconds." : this.spec.none ?? "Nothing was recorded in this time.", "empty");
      return;
    }
    if (this.spec.quiet && rows.every((r) => r.values.every((v) => !v))) {
      this.say(this.spec.quiet, "quiet");
      return;
    }
    put(this.message);
    const data = [grid.times, ...this.columns(rows)];
    const shape = JSON.stringify(rows.map((r) => [r.label, r.colour, r.below, r.line, !!r.tops]));
    if (this.u && this.shape === shape) {
      this.u.setData(data, false);
      this.u.batch(() => {
        this.u.setScale("x", { min: this.board.win.start, max: this.board.win.end });
      });
      this.u.redraw();
    } else {
      this.destroy();
      this.shape = shape;
      this.make(data);
    }
    this.element.dataset.state = "drawn";
    this.writeLegend();
    this.lay();
    performance.mark("graph-" + this.spec.id);
  }

  // columns returns the data for uPlot: first the envelopes, which lie behind the lines. Stacked rows
  // are summed from the bottom and drawn from the top, each over the ones below it.
  columns(rows) {
    if (!this.spec.stacked) {
      const side = (r, values) => (r.below ? values.map((v) => (v === null ? null : -v)) : values);
      return [...rows.filter((r) => r.tops).map((r) => side(r, r.tops)), ...rows.map((r) => side(r, r.values))];
    }
    const out = [];
    let sum = this.grid.times.map(() => 0);
    for (const r of rows.filter((r) => !r.line)) {
      sum = sum.map((s, i) => (r.values[i] === null || s === null ? null : s + r.values[i]));
      out.push(sum);
    }
    out.reverse();
    for (const r of rows.filter((r) => r.line)) out.push(r.values);
    return out;
  }

  make(data) {
    const { spec, board } = this;
    const ink = colour("soft"), line = colour("line"), card = colour("card");
    const font = "12px system-ui, 'Segoe UI', Roboto, 'Noto Sans', 'DejaVu Sans', sans-serif";
    const stacked = this.rows.filter((r) => !r.line).reverse(), lines = this.rows.filter((r) => r.line);
    const order = spec.stacked ? [...stacked, ...lines] : this.rows;
    // An envelope: thin, and shaded where its line is an area.
    const envelopes = (spec.stacked ? [] : this.rows.filter((r) => r.tops)).map((r) => ({
      label: r.label + ", highest", stroke: colour(r.colour) + "99", width: 0.8, fill: r.filled ? colour(r.colour) + "1a" : undefined, fillTo: 0, spanGaps: false, points: { show: false },
    }));
    const series = order.map((r) => {
      const stroke = colour(r.colour);
      const filled = spec.stacked ? !r.line : r.filled;
      const fill = !filled ? undefined : spec.stacked ? stroke : colour(r.colour + "-fill") || stroke + "33";
      return {
        label: r.label, stroke: spec.stacked && filled ? card : stroke, width: spec.stacked && filled ? 0.75 : 1.6, fill, fillTo: 0, spanGaps: false,
        points: { show: spec.points === true, size: 6, fill: stroke, stroke }, dash: r.dash,
      };
    });
    const options = {
      width: this.width(), height: spec.height ?? 170, legend: { show: false }, padding: [8, roomRight, 0, 0],
      focus: { alpha: 1 },
      cursor: {
        sync: { key: board.key, setSeries: false },
        drag: { x: true, y: false, setScale: false, dist: 5 },
        points: { size: 7, width: 2, show: !spec.stacked },
        bind: {
          mousedown: (_, __, handler) => (e) => {
            board.marking = e.shiftKey;
            board.source = this;
            this.plot.classList.toggle("marking", e.shiftKey);
            return handler(e);
          },
          dblclick: () => () => {
            board.back();
            return null;
          },
        },
      },
      scales: {
        x: { time: true, range: () => [board.win.start, board.win.end] },
        y: { range: (_, low, high) => this.limits(low, high) },
      },
      axes: [
        { stroke: ink, font, grid: { stroke: line, width: 1 }, ticks: { stroke: line, size: 5 }, values: ticks, space: 76, size: 42 },
        { stroke: ink, font, grid: { stroke: line, width: 1 }, ticks: { show: false }, size: axisWidth, gap: 8, values: (_, all) => all.map(axis(spec.format)), space: 32 },
      ],
      series: [{}, ...envelopes, ...series],
      hooks: {
        drawClear: [(u) => this.shade(u)],
        draw: [(u) => this.overlay(u)],
        setSelect: [(u) => this.selected(u)],
        setCursor: [(u) => this.point(u)],
      },
    };
    this.u = new globalThis.uPlot(options, data, this.plot);
  }

  // limits returns the range of the vertical axis: it includes zero, and leaves room around a flat
  // line of zeros.
  limits(low, high) {
    if (low === null || high === null) return [this.spec.mirrored ? -1 : 0, 1];
    const room = 1.06;
    let top = Math.max(high, 0) * room, bottom = Math.min(low, 0) * room;
    if (this.spec.most !== undefined) top = Math.min(top, this.spec.most);
    if (top === 0 && bottom === 0) top = 1;
    if (this.spec.mirrored) {
      // A direction with almost no traffic keeps a strip, so that its line is visible beside the axis.
      if (top < -bottom / 12) top = -bottom / 12;
      if (-bottom < top / 12) bottom = -top / 12;
    }
    return [bottom, top];
  }

  width() {
    return Math.max(240, Math.floor(this.plot.clientWidth || this.element.clientWidth - 34));
  }

  resize() {
    if (!this.u) return;
    const width = this.width();
    if (width !== this.u.width) this.u.setSize({ width, height: this.u.height });
    this.lay();
  }

  // shade draws what is below the lines: gaps in the history, and the two marked intervals with their
  // letters.
  shade(u) {
    const ctx = u.ctx, { top, height, left, width } = u.bbox;
    const x = (t) => Math.min(Math.max(u.valToPos(t, "x", true), left), left + width);
    ctx.save();
    for (const e of this.board.events) {
      if (e.kind !== "gap") continue;
      const from = x(e.start), to = x(e.end ?? this.board.win.end);
      if (to <= from) continue;
      ctx.fillStyle = colour("band");
      ctx.fillRect(from, top, to - from, height);
    }
    for (const [name, one] of Object.entries(this.board.marks)) {
      if (!one) continue;
      const from = x(one.start), to = x(one.end);
      if (to <= from) continue;
      ctx.fillStyle = colour(name + "-fill");
      ctx.fillRect(from, top, to - from, height);
      ctx.fillStyle = colour(name);
      ctx.fillRect(from, top, 2, height);
      ctx.fillRect(to - 2, top, 2, height);
    }
    ctx.restore();
  }

  // overlay draws what is above the lines: the axis between in and out, the link speed, a line for
  // each event.
  overlay(u) {
    const ctx = u.ctx, { left, width, top, height } = u.bbox;
    ctx.save();
    if (this.spec.mirrored) {
      ctx.fillStyle = colour("soft");
      ctx.fillRect(left, Math.round(u.valToPos(0, "y", true)), width, 1);
    }
    for (const at of this.spec.reference ? [this.spec.reference, -this.spec.reference] : []) {
      const y = u.valToPos(at, "y", true);
      if (y < top || y > top + height) continue;
      ctx.strokeStyle = colour("bad");
      ctx.setLineDash([8, 5]);
      ctx.beginPath();
      ctx.moveTo(left, y);
      ctx.lineTo(left + width, y);
      ctx.stroke();
    }
    ctx.restore();
    drawSpans(u, this.board);
    drawLines(u, this.groups ?? [], this.board);
    this.letters(u);
  }

  // letters draws the names of the marked intervals above everything, in the middle of their visible
  // part.
  letters(u) {
    const ctx = u.ctx, { top, height, left, width } = u.bbox, size = 17 * devicePixelRatio;
    ctx.save();
    ctx.font = "700 " + 12 * devicePixelRatio + "px system-ui, sans-serif";
    ctx.textAlign = "center";
    ctx.textBaseline = "middle";
    for (const [name, one] of Object.entries(this.board.marks)) {
      if (!one) continue;
      const from = Math.max(u.valToPos(one.start, "x", true), left), to = Math.min(u.valToPos(one.end, "x", true), left + width);
      if (to <= from) continue;
      const x = (from + to) / 2, y = top + height - size * 0.75;
      ctx.fillStyle = colour(name);
      ctx.fillRect(x - size / 2, y - size / 2, size, size);
      ctx.fillStyle = colour("card");
      ctx.fillText(name.toUpperCase(), x, y + devicePixelRatio);
    }
    ctx.restore();
  }

  // selected handles the end of a drag: zoom, or with Shift a mark.
  selected(u) {
    const { left, width } = u.select;
    if (width < 5) return;
    const from = u.posToVal(left, "x"), to = u.posToVal(left + width, "x");
    u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    this.plot.classList.remove("marking");
    // uPlot shows the selection on all graphs and calls each at its end; one drag is one step.
    if (this.board.source === this) this.board.dragged(from, to);
  }

  // point shows the time and the values under the cursor; uPlot synchronises the other graphs.
  point(u) {
    const i = u.cursor.idx;
    const at = i === null || i === undefined || u.cursor.left < 0 ? undefined : this.grid.times[i];
    put(this.when, at === undefined ? "" : local(at) + " · " + utc(at));
    this.rows.forEach((r, n) => {
      if (this.cells?.[n]) this.cells[n].textContent = at === undefined ? "" : this.spec.format(r.values[i]);
    });
  }

  // writeLegend writes the numbers that MRTG prints below its graphs, over the drawn points. The
  // maximum is that of the envelope; a graph without one has the highest mean of a step.
  writeLegend() {
    this.cells = [];
    const body = this.rows.map((r) => {
      const s = statistics(r.values, r.tops);
      const cell = h("td", { class: "num at" });
      this.cells.push(cell);
      const numbers = s ? [s.current, s.average, s.maximum, s.p95] : [null, null, null, null];
      const swatch = h("span", { class: "swatch c-" + r.colour + (r.filled || this.spec.stacked && !r.line ? " filled" : ""), "aria-hidden": "true" });
      return h("tr", {}, h("th", { scope: "row" }, swatch, r.label), cell, numbers.map((v) => h("td", { class: "num" }, this.spec.format(v))));
    });
    const mean = "Over the drawn points; each is the mean of " + this.grid.step + " s";
    const tops = this.rows.some((r) => r.tops);
    const names = [["Current", mean], ["Average", mean], tops || this.spec.points ? ["Maximum", tops ? "The highest rate between two readings, a second apart" : mean] : ["Highest mean", mean], ["95th pct.", mean]];
    put(this.legend, h("table", { class: "mrtg" },
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, h("span", { class: "hidden-text" }, "Line")), h("th", { scope: "col", class: "num at" }, h("span", { class: "hidden-text" }, "At the cursor")),
        names.map(([name, title]) => h("th", { scope: "col", class: "num", title }, name)))),
      h("tbody", {}, body)));
    const first = statistics(this.rows[0].values);
    this.plot.setAttribute("aria-label", this.spec.title + ", a graph. " + this.rows.slice(0, 4).map((r) => {
      const s = statistics(r.values, r.tops);
      return r.label + ": " + (s ? "average " + this.spec.format(s.average) + (r.tops ? ", maximum " : ", highest mean ") + this.spec.format(s.maximum) : "nothing");
    }).join("; ") + (first ? "." : ""));
  }

  // lay places the markers of events at their times.
  lay() {
    if (!this.u) return;
    // Use the size that uPlot was given, not its elements': it lays itself out a moment after
    // construction.
    this.groups = layMarkers(this.markers, this.board, this.plot.offsetLeft + axisWidth, this.u.width - axisWidth - roomRight, this.spec.first);
    this.u.redraw(false, false);
  }

  // recolour redraws with the colours of the other theme.
  recolour() {
    if (!this.u) return;
    this.shape = "";
    this.draw(this.grid, this.rows);
  }

  destroy() {
    this.u?.destroy();
    this.u = undefined;
    this.shape = "";
  }
}
