// Keys. Every mouse action has one; "?" shows them. A focused text field gets its own keys.

import { h } from "./dom.js";
import { change, link, visit, zoomBack, marks, read } from "./state.js";
import { ranges } from "./time.js";

// keysOf returns the keys in groups, for the table of "?" and for the page. app has view() and
// theme().
export function keysOf(app) {
  const board = () => app.view()?.board;
  const go = (view) => () => visit(link(view));
  return [
    { title: "Views", keys: [
      [["o"], "overview", go("overview")], [["f"], "findings", go("findings")], [["c"], "changes", go("changes")], [["m"], "measurements between hosts", go("measurements")], [["h"], "fleet", go("fleet")], [["s"], "switches", go("switches")],
      [["d"], "difference of A and B", () => visit(link("compare", read().view === "interface" ? read().parts : []))],
    ] },
    { title: "Time", keys: [
      ...ranges.map(([name], i) => [[String(i + 1)], "the last " + name.replace("h", " h").replace("d", " d"), () => change({ range: name, from: null, to: null })]),
      [["ArrowLeft"], "earlier", () => board()?.pan(-0.25)], [["ArrowRight"], "later", () => board()?.pan(0.25)],
      [["+", "="], "zoom in", () => board()?.scale(0.5)], [["-"], "zoom out", () => board()?.scale(2)], [["Backspace"], "undo the last zoom", () => zoomBack()],
      [["0"], "the default time, live", () => change({ range: null, from: null, to: null })],
    ] },
    { title: "Compare", keys: [
      [["a"], "mark the visible time as A", () => board()?.markWindow("a")], [["b"], "mark the visible time as B", () => board()?.markWindow("b")],
      [["x"], "clear both marks", () => { const { a, b } = marks(); if (a || b) change({ a: null, b: null }, { push: false }); }],
    ] },
    { title: "Events and lists", keys: [
      [["n"], "next event on the graphs", () => app.view()?.step?.(1)], [["p"], "previous event", () => app.view()?.step?.(-1)],
      [["j"], "next interface, change or host", () => move(1)], [["k"], "previous interface, change or host", () => move(-1)], [["Enter"], "open the focused item", null], [["Escape"], "close", null],
      [["/"], "filter", () => document.querySelector("main input[type=search]")?.focus()],
    ] },
    { title: "Page", keys: [[["t"], "light, dark, as the system", () => app.theme()], [["?"], "these keys", () => showKeys(app)]] },
  ];
}

// move focuses the link of the next row.
function move(by) {
  const all = [...document.querySelectorAll("main .interface-row a, main .change .as-link, main button.cell, main .fleet-list .as-link")];
  if (all.length === 0) return;
  const here = all.indexOf(document.activeElement);
  all[Math.min(Math.max(here + by, 0), all.length - 1)].focus();
}

const names = { ArrowLeft: "←", ArrowRight: "→", Escape: "Esc" };

let dialog;

export function showKeys(app) {
  if (!dialog) {
    dialog = h("dialog", { id: "keys", "aria-labelledby": "keys-title" },
      h("div", { class: "head" }, h("h2", { id: "keys-title" }, "Keys"), h("button", { type: "button", class: "plain", "aria-label": "Close", onclick: () => dialog.close() }, "✕")),
      h("div", { class: "body keys" },
        keysOf(app).map((group) => h("section", {}, h("h3", {}, group.title), h("dl", {}, group.keys.map(([keys, text]) => h("div", {}, h("dt", {}, h("kbd", {}, names[keys[0]] ?? keys[0])), h("dd", {}, text)))))),
        h("section", { class: "mouse" }, h("h3", {}, "Mouse"), h("dl", {}, [["drag", "zoom in"], ["double click", "back"], ["Shift drag", "mark A, then B"], ["click a marker", "open the event"]].map(([k, text]) => h("div", {}, h("dt", {}, h("kbd", {}, k)), h("dd", {}, text)))))));
    document.body.append(dialog);
  }
  dialog.showModal();
}

export function startKeys(app) {
  const table = new Map(keysOf(app).flatMap((g) => g.keys.filter(([, , fn]) => fn).flatMap(([keys, , fn]) => keys.map((k) => [k, fn]))));
  addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.altKey || e.metaKey || document.querySelector("dialog[open]")) return;
    const t = e.target;
    if (t instanceof HTMLInputElement || t instanceof HTMLSelectElement || t instanceof HTMLTextAreaElement) {
      if (e.key === "Escape") t.blur();
      return;
    }
    // A table that scrolls sideways keeps the arrow keys.
    if (e.key.startsWith("Arrow") && t.closest?.(".scroll")) return;
    const fn = table.get(e.key);
    if (!fn) return;
    e.preventDefault();
    fn();
  });
}
