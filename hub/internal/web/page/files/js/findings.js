// The findings of the hub: current verdicts, each with evidence, what was ruled out, and what to
// do.

import { h, put, once, prose } from "./dom.js";
import { findings, events, Failure, inWords } from "./api.js";
import { placeOf, severityOf } from "./kinds.js";
import { percent, byKey, byUnit } from "./units.js";
import { local, now, parseTime } from "./time.js";
import { eventRow } from "./eventdialog.js";
import { timed } from "./board.js";

// findingCard renders a finding; short, as on the overview, without evidence.
export function findingCard(f, short) {
  const s = severityOf(f.severity);
  const where = [f.host, placeOf(f.where)].filter(Boolean).join(" · ");
  const head = [h("p", {}, h("span", { class: "pill " + s.tone }, h("span", { "aria-hidden": "true" }, s.sign), s.word), " ", h("span", { class: "soft small" }, where)), short ? h("h3", {}, f.title) : h("h2", {}, f.title)];
  if (short) return h("article", { class: "finding" }, head, f.remedy?.text ? h("p", { class: "small" }, prose(f.remedy.text)) : null);
  const evidence = f.evidence ?? [], rejected = f.rejected ?? [], knobs = f.remedy?.knobs ?? [];
  return h("article", { class: "card finding" }, head,
    h("p", { class: "soft small" }, h("code", {}, f.code), f.confidence_ratio === undefined ? "" : " · " + percent(f.confidence_ratio) + " confidence"),
    f.remedy?.text ? h("p", {}, h("b", {}, "What to do: "), prose(f.remedy.text)) : null,
    knobs.length ? h("p", { class: "small" }, "Knobs: ", knobs.map((k, i) => [i ? ", " : "", h("code", {}, typeof k === "string" ? k : k.knob ?? JSON.stringify(k))])) : null,
    evidence.length ? h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Evidence" }, h("table", {}, h("caption", {}, "Evidence"),
      h("thead", {}, h("tr", {}, ["What", "Value", "Read from"].map((t, i) => h("th", { scope: "col", class: i === 1 ? "num" : "" }, t)))),
      h("tbody", {}, evidence.map((e) => h("tr", {}, h("th", { scope: "row" }, e.name), h("td", { class: "num" }, typeof e.value === "number" ? (e.unit ? byUnit(e.unit, e.value, e.name) : byKey(e.name, e.value)) : String(e.value ?? "-") + (e.unit ? " " + e.unit : "")), h("td", { class: "soft small" }, e.source ?? "")))))) : null,
    rejected.length ? h("details", {}, h("summary", {}, "Ruled out: " + rejected.length), h("ul", { class: "plain-list" }, rejected.map((r) => h("li", {}, typeof r === "string" ? r : JSON.stringify(r))))) : null);
}

export class FindingsView {
  constructor(place) {
    this.title = "Findings";
    this.said = h("p", { class: "soft small" });
    this.list = h("div", { class: "stack" }, h("p", { class: "empty" }, "Loading …"));
    this.past = h("ul", { class: "event-list" }, h("li", { class: "empty" }, "Loading …"));
    put(place, h("div", { class: "view-head" }, h("div", {}, h("h1", {}, "Findings"), this.said)),
      h("div", { class: "with-side" }, this.list, h("section", { class: "card side" }, h("h2", {}, "Earlier, and alerts"), this.past)));
  }

  async update() {
    if (!this.asked) await this.tick(true);
  }

  async tick(first) {
    if (!first && now() - this.asked < 15) return;
    this.asked = now();
    try {
      const answer = await findings();
      put(this.said, answer.time ? "Judged " + local(parseTime(answer.time)) : "");
      const list = answer.findings ?? [];
      once(this.list, list, () => (list.length === 0 ? h("p", { class: "card empty" }, "No findings: nothing limits these hosts. To find what limits the path to another host, run linerate diagnose TARGET.") : list.map((f) => findingCard(f))));
      const all = await Promise.all(["finding", "alert"].map((kind) => events({ start: 0, end: (now() + 60).toFixed(0), kind, limit: 100 })));
      const past = all.flatMap((a) => a.events).map(timed).sort((a, b) => b.start - a.start);
      once(this.past, past, () => (past.length === 0 ? h("li", { class: "empty" }, "None yet. The hub keeps each finding with the times at which it began and ended.") : past.map((e) => eventRow(e))));
    } catch (failure) {
      if (!(failure instanceof Failure)) throw failure;
      if (!this.list.dataset.shown) put(this.list, h("p", { class: "card empty" }, inWords(failure)));
    }
  }

  stop() {}
}
