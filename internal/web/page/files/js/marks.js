// Events on a graph: a line for each moment, a marker above it, and one marker with a count where many stand close together.

import { h, put, colour } from "./dom.js";
import { local, utc } from "./time.js";
import { openEvents } from "./eventdialog.js";
import { kindOf, rank } from "./kinds.js";

// wide is how many pixels the marker of a group needs: a letter, or a letter and a count.
const wide = (g) => (g.events.length === 1 ? 22 : 31 + 8 * String(g.events.length - 1).length);

// group puts events whose markers would cover each other into one: [{x, events}], from left to right. A group stands at its first event and grows with its
// count, so it is compared with its neighbours until nothing moves.
export function group(events, x, width) {
  let groups = events.map((event) => ({ x: x(event.start), events: [event] })).filter((g) => g.x >= 0 && g.x <= width).sort((a, b) => a.x - b.x);
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

// first of a group is the event of its most telling kind: a change must not vanish behind the measurements around it.
const first = (g) => g.events.reduce((best, e) => (rank(e.kind) < rank(best.kind) ? e : best));
const colourOf = (g) => kindOf(first(g).kind).colour;

// layMarkers puts buttons above the plot and gives the groups, for their lines. Those of the first graph alone are in the order of the tab key: the
// same events stand on every graph, and nobody wants to pass them eight times.
export function layMarkers(strip, board, left, width, reachable) {
  const { win } = board;
  const x = (t) => ((t - win.start) / (win.end - win.start)) * width;
  const groups = group(board.events, x, width);
  put(strip, groups.map((g) => {
    const only = g.events.length === 1 ? g.events[0] : undefined;
    const kind = kindOf(first(g).kind);
    const label = only ? kind.name + ": " + only.title + ", " + local(only.start) : g.events.length + " events around " + local(g.events[0].start);
    const marker = h("button", {
      type: "button", class: "mark k-" + colourOf(g) + (only ? "" : " many"), tabindex: reachable ? "0" : "-1", "aria-label": label,
      onclick: () => openEvents(g.events),
      onmouseenter: () => tell(marker, g.events), onfocus: () => tell(marker, g.events), onmouseleave: quiet, onblur: quiet,
    }, only ? kind.letter : kind.letter + "+" + (g.events.length - 1));
    marker.dataset.ids = g.events.map((e) => e.id).join(" ");
    marker.style.left = Math.round(left + g.x) + "px";
    return marker;
  }));
  return groups;
}

// drawLines draws a line for each group, over the whole height of the plot.
export function drawLines(u, groups) {
  const ctx = u.ctx, { top, height, left } = u.bbox;
  ctx.save();
  ctx.lineWidth = devicePixelRatio;
  ctx.setLineDash([4 * devicePixelRatio, 3 * devicePixelRatio]);
  ctx.globalAlpha = 0.75;
  for (const g of groups) {
    const x = Math.round(left + g.x * devicePixelRatio) + 0.5;
    ctx.strokeStyle = colour(colourOf(g));
    ctx.beginPath();
    ctx.moveTo(x, top);
    ctx.lineTo(x, top + height);
    ctx.stroke();
  }
  ctx.restore();
}

// tell shows what an element stands for, beside it and inside the window.
export function tell(element, events) {
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
