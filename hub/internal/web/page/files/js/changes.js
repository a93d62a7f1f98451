// All changes: knob, old and new value, state, and the undo command.

import { h, put, once, command } from "./dom.js";
import { events, storedDocument, Failure, inWords } from "./api.js";
import { local, utc, now } from "./time.js";
import { openEvents, remember } from "./eventdialog.js";
import { timed } from "./board.js";

const atOnce = 4; // documents that are asked for side by side

const states = {
  trial: { sign: "◐", tone: "warn", text: "reverts unless it is confirmed" }, committed: { sign: "●", tone: "good", text: "stays until it is undone or the host reboots" },
  persisted: { sign: "■", tone: "good", text: "survives a reboot" }, undone: { sign: "○", tone: "soft", text: "" },
};

export class ChangesView {
  constructor(place) {
    this.title = "Changes";
    this.documents = new Map();
    this.list = h("div", { class: "stack" }, h("p", { class: "empty" }, "Loading …"));
    put(place, h("div", { class: "view-head" }, h("div", {}, h("h1", {}, "Changes"), h("p", { class: "soft small" }, "Changes that the journals of these hosts recorded, newest first."))), this.list);
  }

  async update() {
    if (!this.asked) await this.tick(true);
  }

  async tick(first) {
    if (!first && now() - this.asked < 10) return;
    this.asked = now();
    this.abort = new AbortController();
    try {
      const answer = await events({ start: 0, end: (now() + 60).toFixed(0), kind: "change", limit: 500 }, this.abort.signal);
      const list = answer.events.map(timed).sort((a, b) => b.start - a.start);
      remember(list);
      once(this.list, [list, answer.truncated], () => this.make(list, answer.truncated));
      await this.complete(list);
    } catch (failure) {
      if (failure.name === "AbortError") return;
      if (!(failure instanceof Failure)) throw failure;
      if (!this.list.dataset.shown) put(this.list, h("p", { class: "card empty" }, inWords(failure)));
    }
  }

  make(list, truncated) {
    this.cells = new Map();
    if (list.length === 0) {
      return h("p", { class: "card empty" }, "No changes yet. Changes by linerate set, linerate tune and linerate confirm on these hosts appear here within seconds, each with the command that undoes it.");
    }
    return [truncated ? h("p", { class: "soft small" }, "The newest 500. The graphs show older changes.") : null,
      h("ul", { class: "changes" }, list.map((e) => this.row(e)))];
  }

  row(e) {
    const s = states[e.state] ?? { sign: "·", tone: "soft", text: "" };
    const values = h("p", { class: "from-to" }), more = h("p", { class: "soft small" });
    this.cells.set(e.id, { values, more });
    this.fill(e);
    return h("li", { class: "card change" },
      h("div", { class: "change-what" },
        h("p", { class: "soft small" }, h("time", { datetime: e.time, title: utc(e.start) }, local(e.start)), " · ", e.host),
        h("h2", { class: "mono" }, h("button", { type: "button", class: "as-link", onclick: () => openEvents([e]) }, e.subject || e.title)), values, more),
      h("div", { class: "change-state" }, h("p", {}, h("span", { class: "pill " + s.tone, title: s.text }, h("span", { "aria-hidden": "true" }, s.sign), e.state || "unknown")), h("p", { class: "soft small" }, s.text)),
      e.undo && e.state !== "undone" ? h("div", { class: "change-undo" }, h("p", { class: "soft small" }, "Undo it, on " + e.host + ":"), command(e.undo)) : h("div", { class: "change-undo" }));
  }

  // fill writes the old and new value from the event, or from its document once loaded; until then
  // the title.
  fill(e) {
    const cells = this.cells.get(e.id), d = this.documents.get(e.id);
    const from = e.from ?? d?.from, to = e.to ?? d?.to;
    if (from === undefined && to === undefined) put(cells.values, e.subject && e.title !== e.subject ? e.title : "");
    else put(cells.values, h("code", {}, show(from)), h("span", { class: "soft", "aria-label": " to " }, " → "), h("code", { class: "to" }, show(to)));
    put(cells.more, [d?.reason, d?.note === e.state ? "" : d?.note, d?.side === "far" ? "at the far end" : ""].filter(Boolean).join(" · "));
  }

  // complete loads missing documents, a few at a time. The state is part of the key, because an undo
  // changes the document.
  async complete(list) {
    const wanted = list.filter((e) => e.has_document && this.documents.get(e.id)?.of !== e.state).slice(0, 60);
    const { signal } = this.abort;
    const worker = async () => {
      for (let e = wanted.shift(); e && !signal.aborted; e = wanted.shift()) {
        try {
          const stored = await storedDocument(e.id, signal);
          const change = stored.changes?.find((c) => c.id === e.id) ?? stored.change ?? stored;
          this.documents.set(e.id, { ...change, of: e.state });
          this.fill(e);
        } catch (failure) {
          if (failure.name === "AbortError") return;
          if (!(failure instanceof Failure)) throw failure;
          this.documents.set(e.id, { of: e.state });
        }
      }
    };
    await Promise.all(Array.from({ length: atOnce }, worker));
  }

  stop() {
    this.abort?.abort();
  }
}

const show = (v) => (v === undefined || v === null || v === "" ? "(none)" : typeof v === "object" ? JSON.stringify(v) : String(v));
