// All graphs of a view together: one window, one set of events and marks, one cursor. The board asks for the graphs that are on the screen first.

import { change, interval, marks, mark, zoom, zoomBack, look, read } from "./state.js";
import { Graph } from "./graph.js";
import { gridOf, stepFor } from "./query.js";
import { Failure, inWords, events as askEvents } from "./api.js";
import { chosen } from "./kinds.js";
import { now, parseTime } from "./time.js";

let boards = 0;

export class Board {
  // host and interface narrow the events; onEvents gets them for the list beside the graphs.
  constructor({ host, interface: name, usual, onEvents }) {
    Object.assign(this, { host, name, usual, onEvents, key: "board-" + ++boards, graphs: [], events: [], all: [], marks: {}, marking: false, generation: 0 });
    this.element = document.createElement("div");
    this.element.className = "stack graphs";
    this.sizes = new ResizeObserver(() => this.graphs.forEach((g) => g.resize()));
    this.sizes.observe(this.element);
  }

  // add a graph: its specification, and load(grid, signal), which gives rows.
  add(spec, load) {
    const g = new Graph({ ...spec, first: this.graphs.length === 0 }, this);
    g.load = load;
    this.graphs.push(g);
    this.element.append(g.element);
    return g;
  }

  // show asks for everything of a window. What was asked for an older window is given up.
  async show(win) {
    this.win = win;
    this.abort?.abort();
    this.abort = new AbortController();
    const { signal } = this.abort;
    this.marks = marks();
    // As many points as there are pixels for, one for each two at most: what is finer cannot be seen.
    const width = Math.max(280, (this.element.clientWidth || innerWidth) - 130);
    const grid = gridOf(win, stepFor(win, Math.min(width / 1.5, 900)));
    this.grid = grid;
    const visible = [], later = [];
    for (const g of this.graphs) {
      const at = g.element.getBoundingClientRect();
      (at.top < innerHeight && at.bottom > 0 ? visible : later).push(g);
    }
    const one = async (g) => {
      try {
        const rows = await g.load(grid, signal);
        if (!signal.aborted) g.draw(grid, rows);
      } catch (failure) {
        // What is drawn stays when the hub is away for a while; a graph that has nothing says why.
        if (failure.name !== "AbortError" && (!g.u || !(failure instanceof Failure) || failure.kind === "bad")) g.say(failure instanceof Failure ? inWords(failure) : String(failure), "failed");
        if (!(failure instanceof Failure) && failure.name !== "AbortError") console.error(failure);
      }
    };
    await Promise.all([...visible.map(one), this.loadEvents(signal)]);
    if (!signal.aborted) await Promise.all(later.map(one));
  }

  async loadEvents(signal) {
    try {
      const answer = await askEvents({ start: this.win.start.toFixed(0), end: this.win.end.toFixed(0), host: this.host, limit: 1000 }, signal);
      if (signal.aborted) return;
      this.truncated = answer.truncated;
      this.all = answer.events.map(timed).filter((e) => this.concerns(e)).sort((a, b) => a.start - b.start);
      this.filter();
    } catch (failure) {
      if (failure.name !== "AbortError" && !(failure instanceof Failure)) throw failure;
    }
  }

  // concerns tells whether an event belongs beside these graphs: of this interface, or of none.
  concerns(e) {
    return !this.name || e.kind !== "link" || !e.subject || e.subject === this.name;
  }

  // filter shows the kinds that are chosen.
  filter() {
    const wanted = chosen(read().query);
    this.events = this.all.filter((e) => wanted.includes(e.kind));
    this.graphs.forEach((g) => g.lay());
    this.onEvents?.(this.all, this.events, this.truncated);
  }

  // update is called when the address changed: marks and filters are drawn at once, and a new window is asked for.
  update() {
    this.marks = marks();
    this.filter();
  }

  // dragged is told the end of a drag over a graph: into the time, or, with shift, a mark.
  dragged(from, to) {
    if (this.marking) mark(from, to);
    else zoom(from, to);
    this.marking = false;
  }

  back() {
    zoomBack();
  }

  // pan moves the window by a part of itself, never past now.
  pan(part) {
    const length = this.win.end - this.win.start;
    const end = Math.min(this.win.end + part * length, now());
    look(end - length, end);
  }

  // scale makes the window longer or shorter around its middle, or, when it is live, before its end.
  scale(by) {
    const length = (this.win.end - this.win.start) * by;
    if (length < 10) return;
    const end = Math.min(this.win.live ? this.win.end : (this.win.start + this.win.end) / 2 + length / 2, now());
    zoom(end - length, end);
  }

  markWindow(name) {
    change({ [name]: interval(this.win.start, this.win.end) }, { push: false });
  }

  recolour() {
    this.graphs.forEach((g) => g.recolour());
  }

  stop() {
    this.abort?.abort();
    this.sizes.disconnect();
    this.graphs.forEach((g) => g.destroy());
  }
}

// timed adds to an event its times in seconds; one that is not over has no end.
export function timed(e) {
  return { ...e, start: parseTime(e.time) ?? 0, end: e.open ? undefined : parseTime(e.end) };
}
