// All graphs of a view: one window, one set of events and marks, one cursor. The board loads the
// graphs on the screen first.

import { change, interval, marks, mark, zoom, zoomBack, look, read } from "./state.js";
import { Graph } from "./graph.js";
import { gridOf, stepFor } from "./query.js";
import { Failure, inWords, events as askEvents } from "./api.js";
import { chosen } from "./kinds.js";
import { now, parseTime, recorded } from "./time.js";

let boards = 0;

export class Board {
  // host and interface filter the events; onEvents gets them for the list beside the graphs.
  constructor({ host, interface: name, usual, onEvents }) {
    Object.assign(this, { host, name, usual, onEvents, key: "board-" + ++boards, graphs: [], events: [], all: [], marks: {}, marking: false, generation: 0 });
    this.element = document.createElement("div");
    this.element.className = "stack graphs";
    this.sizes = new ResizeObserver(() => this.graphs.forEach((g) => g.resize()));
    this.sizes.observe(this.element);
  }

  // add adds a graph: its specification, and load(grid, signal), which returns rows.
  add(spec, load) {
    const g = new Graph({ ...spec, first: this.graphs.length === 0 }, this);
    g.load = load;
    this.graphs.push(g);
    this.element.append(g.element);
    return g;
  }

  // show loads everything of a window, and aborts requests for an older window.
  async show(win) {
    this.win = win;
    this.abort?.abort();
    this.abort = new AbortController();
    const { signal } = this.abort;
    this.marks = marks();
    // One point for every two pixels at most: finer detail is invisible.
    const narrowest = Math.min(...this.graphs.map((g) => g.element.clientWidth || innerWidth));
    const width = Math.max(280, narrowest - 130);
    const part = recorded(win);
    const grid = gridOf(part, stepFor(part, Math.min(width / 1.5, 900)));
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
        // A drawn graph stays while the hub is away; an empty one shows the reason.
        if (failure.name !== "AbortError" && (!g.u || !(failure instanceof Failure) || failure.kind === "bad")) g.say(failure instanceof Failure ? inWords(failure) : String(failure), "failed");
        if (!(failure instanceof Failure) && failure.name !== "AbortError") console.error(failure);
      }
    };
    await Promise.all([...visible.map(one), this.loadEvents(signal)]);
    if (!signal.aborted) await Promise.all(later.map(one));
  }

  async loadEvents(signal) {
    try {
      const answer = await askEvents({ start: this.win.start.toFixed(0), end: this.win.end.toFixed(0), host: this.host, limit_per_kind: 1000 }, signal);
      if (signal.aborted) return;
      this.truncated = answer.truncated;
      this.all = answer.events.map(timed).filter((e) => this.concerns(e)).sort((a, b) => a.start - b.start);
      this.filter();
    } catch (failure) {
      if (failure.name !== "AbortError" && !(failure instanceof Failure)) throw failure;
    }
  }

  // concerns reports whether an event belongs to these graphs: to this interface, or to none.
  concerns(e) {
    return !this.name || e.kind !== "link" || !e.subject || e.subject === this.name;
  }

  // filter shows the chosen kinds.
  filter() {
    const wanted = chosen(read().query);
    this.events = this.all.filter((e) => wanted.includes(e.kind));
    this.graphs.forEach((g) => g.lay());
    this.onEvents?.(this.all, this.events, this.truncated);
  }

  // update handles a change of the address: it draws marks and filters at once, and loads a new
  // window.
  update() {
    this.marks = marks();
    this.filter();
  }

  // dragged handles the end of a drag over a graph: zoom, or with Shift a mark.
  dragged(from, to) {
    if (this.marking) mark(from, to);
    else zoom(from, to);
    this.marking = false;
  }

  back() {
    zoomBack();
  }

  // pan moves the window by a part of its length, never past now.
  pan(part) {
    const length = this.win.end - this.win.start;
    const end = Math.min(this.win.end + part * length, now());
    look(end - length, end);
  }

  // scale changes the length of the window around its middle, or before its end if it is live.
  scale(by) {
    const length = (this.win.end - this.win.start) * by;
    if (length < 10) return;
    const end = Math.min(this.win.live ? this.win.end : (this.win.start + this.win.end) / 2 + length / 2, now());
    zoom(end - length, end);
  }

  markWindow(name) {
    change({ [name]: interval(this.win.start, this.win.end) }, { push: false });
  }

  // go shows an interval: another one loads, the same one catches up with the address.
  async go(win) {
    const key = win.live ? win.range : win.start + "-" + win.end;
    if (key === this.key) {
      this.update();
      return;
    }
    this.key = key;
    await this.show(win);
  }

  // other reports whether a live view has another range than the one shown; due, whether a new point
  // is there, of which there is at most one in this many seconds.
  other(win) {
    return win.live && Boolean(this.key) && win.range !== this.key;
  }

  due(win, least = 1) {
    const step = Math.max(this.grid?.step ?? 1, least);
    return win.live && Math.floor(win.end / step) !== Math.floor(this.win.end / step);
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

// timed adds to an event its times in seconds; an open event has no end.
export function timed(e) {
  return { ...e, start: parseTime(e.time) ?? 0, end: e.open ? undefined : parseTime(e.end) };
}
