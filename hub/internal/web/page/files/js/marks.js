// Events on a graph: a line at its time, a marker above it, and one marker with a count where many
// are close together; every change keeps a line of its own. An event that lasts has a bar at the top
// of the plot.

import { h, put, colour } from "./dom.js";
import { local, utc } from "./time.js";
import { openEvents } from "./eventdialog.js";
import { colourOf, kindOf, rank } from "./kinds.js";

// wide returns the width of a group's marker in pixels: a letter, or a letter and a count.
const wide = (g) => (g.events.length === 1 ? 22 : 31 + 8 * String(g.events.length - 1).length);

// group joins events whose markers would overlap: [{x, events}], from left to right. A group is at
// its first event and grows with its count, so the comparison with its neighbours repeats until
// nothing moves.
export function group(events, x, width) {
  // An event that began before the window and lasted into it is at the left edge.
  const at = (e) => (lasts(e) && (e.open || x(e.end) > 0) ? Math.max(0, x(e.start)) : x(e.start));
  let groups = events.map((event) => ({ x: at(event), events: [event] })).filter((g) => g.x >= 0 && g.x <= width).sort((a, b) => a.x - b.x);
  for (let before = -1; before !== groups.length;) {
    before = groups.length;
    const joined = [];
    for (const g of groups) {
      const last = joined.at(-1);
      if (last && g.x - last.x < (wide(last) + wide(g)) / 2 + 2) last.events.push(...g.events);
      else joined.push(g);
    }
    groups = joined;
  }
  return groups;
}

// lasts reports whether an event has a length: a run has one, a change, which stays until it is
// undone, has not. A gap is drawn differently.
const lasts = (e) => e.kind !== "gap" && e.kind !== "change" && (e.open || e.end > e.start);

// lanes is the number of bars above each other; a bar without a free lane has only its marker.
const lanes = 4;

// spans returns the bars of lasting events, in pixels, each in the first free lane: [{from, to,
// lane, event}].
export function spans(events, x, width) {
  const ends = Array(lanes).fill(-Infinity), bars = [];
  for (const e of events.filter(lasts)) {
    const from = Math.max(0, x(e.start)), to = Math.min(width, e.open ? width : x(e.end));
    const lane = ends.findIndex((end) => end < from);
    if (to - from < 6 || lane < 0) continue;
    ends[lane] = to;
    bars.push({ from, to, lane, event: e });
  }
  return bars;
}

// first returns the event of a group's highest kind: measurements around a change must not hide it.
const first = (g) => g.events.reduce((best, e) => (rank(e.kind) < rank(best.kind) ? e : best));

// layMarkers puts buttons above the plot and returns the groups, for their lines. Only those of the
// first graph are in the tab order, because every graph has the same events. A marker of the same
// events stays: one that is replaced loses the focus, and a click that has begun.
export function layMarkers(strip, board, left, width, reachable) {
  const { win } = board;
  const x = (t) => ((t - win.start) / (win.end - win.start)) * width;
  const groups = group(board.events, x, width);
  const old = new Map([...strip.children].map((m) => [m.dataset.ids, m]));
  const markers = groups.map((g) => {
    const only = g.events.length === 1 ? g.events[0] : undefined;
    const kind = kindOf(first(g).kind);
    const label = only ? kind.name + ": " + only.title + ", " + local(only.start) : g.events.length + " events around " + local(g.events[0].start);
    const ids = g.events.map((e) => e.id).join(" ");
    const marker = old.get(ids) ?? h("button", {
      type: "button", tabindex: reachable ? "0" : "-1", onclick: () => openEvents(marker.events),
      onmouseenter: () => showTip(marker, marker.events), onfocus: () => showTip(marker, marker.events), onmouseleave: quiet, onblur: quiet,
    }, only ? kind.letter : kind.letter + "+" + (g.events.length - 1));
    marker.events = g.events;
    marker.dataset.ids = ids;
    marker.className = "mark k-" + colourOf(first(g)) + (only ? "" : " many");
    marker.setAttribute("aria-label", label);
    marker.style.left = Math.round(left + g.x) + "px";
    return marker;
  });
  for (const m of old.values()) if (!markers.includes(m)) m.remove();
  markers.forEach((m, i) => { if (strip.children[i] !== m) strip.insertBefore(m, strip.children[i] ?? null); });
  return groups;
}

// lines returns where lines stand: at the first event of each group, and at every change, because
// what changed must be seen at the time at which it changed: [{x, event}], the changes last and so
// above the others.
export function lines(groups, x) {
  const out = new Map();
  const add = (at, event) => out.set(Math.round(at) + event.kind, { x: at, event });
  for (const g of groups) if (g.events[0].kind !== "change") add(g.x, g.events[0]);
  for (const e of groups.flatMap((g) => g.events)) if (e.kind === "change") add(x(e.start), e);
  return [...out.values()];
}

// drawLines draws the lines of groups over the whole height of the plot.
export function drawLines(u, groups, board) {
  const ctx = u.ctx, { top, height, left, width } = u.bbox, { win } = board;
  ctx.save();
  ctx.lineWidth = devicePixelRatio;
  ctx.setLineDash([4 * devicePixelRatio, 3 * devicePixelRatio]);
  ctx.globalAlpha = 0.75;
  for (const line of lines(groups, (t) => ((t - win.start) / (win.end - win.start)) * (width / devicePixelRatio))) {
    const x = Math.round(left + line.x * devicePixelRatio) + 0.5;
    ctx.strokeStyle = colour(colourOf(line.event));
    ctx.beginPath();
    ctx.moveTo(x, top);
    ctx.lineTo(x, top + height);
    ctx.stroke();
  }
  ctx.restore();
}

// drawSpans draws the bars below the top of the plot.
export function drawSpans(u, board) {
  const { win } = board, ctx = u.ctx, { top, left, width } = u.bbox;
  const x = (t) => ((t - win.start) / (win.end - win.start)) * width;
  const thick = 3 * devicePixelRatio;
  ctx.save();
  ctx.globalAlpha = 0.85;
  for (const bar of spans(board.events, x, width)) {
    ctx.fillStyle = colour(colourOf(bar.event));
    ctx.fillRect(left + bar.from, top + bar.lane * (thick + devicePixelRatio), bar.to - bar.from, thick);
  }
  ctx.restore();
}

// showTip shows the tooltip of an element, beside it and inside the window.
export function showTip(element, events) {
  const tip = document.getElementById("tip");
  const shown = events.slice(-6);
  put(tip, shown.map((e) => h("p", {}, h("b", {}, e.title), h("br"), h("span", { class: "soft" }, kindOf(e.kind).name + " · " + local(e.start) + " · " + utc(e.start)))),
    events.length > shown.length ? h("p", { class: "soft" }, "and " + (events.length - shown.length) + " before") : null);
  tip.hidden = false;
  const at = element.getBoundingClientRect(), size = tip.getBoundingClientRect();
  const x = Math.min(Math.max(10, at.left + at.width / 2 - size.width / 2), innerWidth - size.width - 10);
  const above = at.top - size.height - 8;
  tip.style.transform = "translate(" + Math.round(x) + "px," + Math.round(above > 4 ? above : at.bottom + 8) + "px)";
}

export function quiet() {
  document.getElementById("tip").hidden = true;
}
