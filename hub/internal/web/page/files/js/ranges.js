// The control of the time range: buttons for the usual ranges, fields for any other, and buttons
// that move in time.

import { h, put } from "./dom.js";
import { change, look } from "./state.js";
import { ranges, forField, fromField, short, now, utc } from "./time.js";

export class Ranges {
  // act has pan(part), scale(factor) and back().
  constructor(act) {
    this.buttons = ranges.map(([name]) => h("button", { type: "button", "aria-pressed": "false", onclick: () => change({ range: name, from: null, to: null }) }, name));
    this.custom = h("button", { type: "button", "aria-pressed": "false", "aria-expanded": "false", "aria-controls": "custom-range", onclick: () => this.unfold(this.form.hidden) }, "custom");
    this.from = h("input", { type: "datetime-local", step: "1", required: true, id: "range-from" });
    this.to = h("input", { type: "datetime-local", step: "1", required: true, id: "range-to" });
    this.wrong = h("span", { class: "bad small", role: "alert" });
    this.form = h("form", {
      class: "row", id: "custom-range", hidden: true, onsubmit: (e) => {
        e.preventDefault();
        const from = fromField(this.from.value), to = fromField(this.to.value);
        put(this.wrong, from < to ? "" : "The end must come after the beginning.");
        if (from < to) look(from, to);
      },
    }, h("label", { class: "field" }, "From", this.from), h("label", { class: "field" }, "To", this.to), h("button", { type: "submit", class: "main" }, "Show"), this.wrong);
    this.said = h("span", { class: "soft small range-said" });
    const step = (label, text, fn, key) => h("button", { type: "button", "aria-label": label, title: label + " (" + key + ")", onclick: fn }, text);
    this.element = h("div", { class: "ranges no-print" },
      h("div", { class: "row" },
        h("div", { class: "joined", role: "group", "aria-label": "Time range" }, this.buttons, this.custom),
        act ? h("div", { class: "joined", role: "group", "aria-label": "Move in time" },
          step("Earlier", "◀", () => act.pan(-0.5), "←"), step("Later", "▶", () => act.pan(0.5), "→"), step("Zoom in", "+", () => act.scale(0.5), "+"), step("Zoom out", "−", () => act.scale(2), "-"), step("Back", "↶", () => act.back(), "Backspace")) : null,
        this.said),
      this.form);
  }

  unfold(open) {
    this.form.hidden = !open;
    this.custom.setAttribute("aria-expanded", String(open));
    if (open) this.from.focus();
  }

  // show displays the current range.
  show(win) {
    this.buttons.forEach((b) => b.setAttribute("aria-pressed", String(win.live && b.textContent === win.range)));
    this.custom.setAttribute("aria-pressed", String(!win.live));
    this.from.value = forField(win.start);
    this.to.value = forField(win.end);
    put(this.said, win.live ? [h("span", { class: "live", "aria-hidden": "true" }), "live"] :
      h("span", { title: utc(win.start) + " to " + utc(win.end) }, short(win.start) + " to " + (win.end > now() - 2 ? "now" : short(win.end))));
  }
}
