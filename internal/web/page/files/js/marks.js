// Events on a graph: a line for each moment, a marker above it, and one marker with a count where many stand close together.

import { h, put, colour } from "./dom.js";
import { local, utc } from "./time.js";
import { openEvents } from "./eventdialog.js";
import { kindOf } from "./kinds.js";

const apart = 24; // pixels between two markers

// group puts events that would stand on each other into one: [{x, events}], from left to right.
export function group(events, x, width) {
  const groups = [];
  const sorted = events.map((event) => ({ event, x: x(event.start) })).filter((e) => e.x >= 0 && e.x <= width).sort((a, b) => a.x - b.x);
  for (const { event, x: at } of sorted) {
    const last = groups.at(-1);
    if (last && at - last.x < apart) last.events.push(event);
    else groups.push({ x: at, events: [event] });
  }
  return groups;
}

// colourOf a group: that of its kind, or the one of ink when kinds are mixed.
const colourOf = (g) => (g.events.every((e) => e.kind === g.events[0].kind) ? kindOf(g.events[0].kind).colour : "ink");

// layMarkers puts buttons above the plot and gives the groups, for their lines. Those of the first graph alone are in the order of the tab key: the
// same events stand on every graph, and nobody wants to pass them eight times.
export function layMarkers(strip, board, left, width, first) {
  const { win } = board;
  const x = (t) => ((t - win.start) / (win.end - win.start)) * width;
  const groups = group(board.events, x, width);
  put(strip, groups.map((g) => {
    const only = g.events.length === 1 ? g.events[0] : undefined;
    const kind = only ? kindOf(only.kind) : undefined;
    const label = only ? kind.name + ": " + only.title + ", " + local(only.start) : g.events.length + " events around " + local(g.events[0].start);
    const marker = h("button", {
      type: "button", class: "mark k-" + colourOf(g) + (only ? "" : " many"), tabindex: first ? "0" : "-1", "aria-label": label,
      onclick: () => openEvents(g.events),
      onmouseenter: () => tell(marker, g.events), onfocus: () => tell(marker, g.events), onmouseleave: quiet, onblur: quiet,
    }, only ? kind.letter : String(g.events.length));
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
