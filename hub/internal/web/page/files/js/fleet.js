// The fleet: counts before hosts, the worst before the many, the last mesh and the rollouts. One
// selection, in the address, holds for all of it.

import { h, put, once } from "./dom.js";
import { change, read } from "./state.js";
import { fleet, fleetHosts, fleetRollouts, Failure, inWords } from "./api.js";
import { Mesh } from "./mesh.js";
import { rolloutCard } from "./rollout.js";
import { now, parseTime } from "./time.js";
import { bits, count, seconds, percent, span } from "./units.js";

const every = 10, mostLabels = 4; // seconds between two looks; labels of a host that a row shows
const onPage = 50;

const measures = [
  { id: "differs", name: "settings unlike their class", format: count }, { id: "drift", name: "drifted changes", format: count },
  { id: "findings", name: "findings", format: count }, { id: "silence", name: "silence", format: span },
  { id: "rtt", name: "round trip in the last mesh", format: seconds }, { id: "loss", name: "loss in the last mesh", format: percent },
  { id: "rate", name: "rate in the last mesh, lowest first", format: bits },
];
const measureOf = (id) => measures.find((m) => m.id === id) ?? measures[0];

// silent holds for a host of which three signs of life are missing.
const silent = (x) => !x.last_seen || now() - parseTime(x.last_seen) > 90;

// quote writes a value as a selection has it.
const quote = (v) => (/[\s,"\\*?]/.test(v) ? '"' + v.replaceAll("\\", "\\\\").replaceAll('"', '\\"') + '"' : v);

const orders = [["", "by name"], ...measures.map((m) => [m.id, m.name])];

export class FleetView {
  constructor(place) {
    this.title = "Fleet";
    this.stack = []; // the cursors of the pages before this one
    this.said = h("p", { class: "soft small", role: "status" }, "Loading …");
    this.input = h("input", { type: "search", name: "selection", autocomplete: "off", spellcheck: "false", autocapitalize: "off", placeholder: "class:mlx5-6.12 site:ams drift:yes -host:db*", "aria-keyshortcuts": "/", "aria-describedby": "selection-error" });
    this.wrong = h("p", { class: "bad small", id: "selection-error", role: "alert" });
    this.form = h("form", { class: "selection", role: "search", onsubmit: (e) => { e.preventDefault(); this.choose(this.input.value.trim()); } },
      h("label", { class: "field" }, "Hosts", this.input), h("button", { class: "main" }, "Select"), h("button", { type: "button", class: "clear", onclick: () => this.choose("") }, "All"));
    this.input.addEventListener("search", () => { if (this.input.value === "") this.choose(""); });
    this.tiles = h("div", { class: "tiles" });
    this.counts = h("div", { class: "counts" });
    this.worst = h("section", { class: "card" });
    this.mesh = new Mesh();
    this.rollouts = h("div", { class: "stack" });
    this.hosts = h("section", { class: "card", id: "fleet-hosts" }, h("p", { class: "empty" }, "Loading …"));
    this.by = h("select", { "aria-label": "Compare by", onchange: () => change({ by: this.by.value === "differs" ? null : this.by.value }, { push: false }) }, measures.map((m) => h("option", { value: m.id }, m.name)));
    this.order = h("select", { "aria-label": "Order", onchange: () => this.turn({ order: this.order.value, after: null }, []) }, orders.map(([id, name]) => h("option", { value: id }, name)));
    put(place, h("div", { class: "view-head" }, h("div", {}, h("h1", {}, "Fleet"), this.said)), h("div", { class: "card" }, this.form, this.wrong), this.tiles, this.counts, this.worst, this.mesh.element, this.rollouts, this.hosts);
  }

  // choose begins anew with another selection.
  choose(text) {
    this.stack = [];
    change({ select: text, after: null });
  }

  turn(set, stack) {
    this.stack = stack;
    change(set, { push: false });
  }

  async update() {
    const { query } = read();
    const key = JSON.stringify(["select", "by", "order", "after"].map((k) => query.get(k)));
    if (key !== this.key) {
      if (document.activeElement !== this.input || JSON.parse(this.key ?? "[]")[0] !== query.get("select")) this.input.value = query.get("select") ?? "";
      this.key = key;
      await this.load();
    }
    this.mesh.update(query);
  }

  async tick() {
    if (now() - this.asked < every) return;
    await this.load();
    if (now() - (this.meshAsked ?? 0) > 3 * every) {
      this.meshAsked = now();
      await this.mesh.load();
    }
  }

  async load() {
    this.abort?.abort();
    this.abort = new AbortController();
    const { signal } = this.abort, { query } = read();
    this.asked = now();
    const selection = query.get("select") ?? "", by = measureOf(query.get("by")).id, order = query.get("order") ?? "", after = query.get("after") ?? "";
    try {
      const [counts, page, rollouts] = await Promise.all([fleet({ selection, by }, signal), fleetHosts({ selection, order, after, limit: onPage }, signal), fleetRollouts({}, signal)]);
      this.wrong.textContent = "";
      this.by.value = by;
      this.order.value = order;
      this.showCounts(counts);
      this.showWorst(counts);
      this.showHosts(page);
      once(this.rollouts, rollouts.rollouts, () => (rollouts.rollouts.length ? [h("h2", {}, "Rollouts" + (rollouts.rollouts_total > rollouts.rollouts.length ? ", the newest " + rollouts.rollouts.length + " of " + rollouts.rollouts_total : "")), rollouts.rollouts.map(rolloutCard)] : []));
    } catch (failure) {
      if (failure.name === "AbortError") return;
      if (!(failure instanceof Failure)) throw failure;
      if (failure.kind === "bad") this.wrong.textContent = failure.message.replace(/^invalid parameter "selection": /, "");
      else if (!this.tiles.hasChildNodes()) {
        this.said.textContent = inWords(failure);
        put(this.hosts, h("p", { class: "empty" }, inWords(failure)));
      }
    }
  }

  showCounts(c) {
    this.said.textContent = c.selection ? c.hosts + " of " + c.all_hosts + " hosts" : c.all_hosts + " hosts" + (c.unread_hosts ? ", " + c.unread_hosts + " of them not read yet" : "");
    const narrow = (term) => () => this.choose([c.selection, term].filter(Boolean).join(" "));
    const tile = (n, name, term, tone) => h("button", { type: "button", class: "tile" + (n > 0 ? " " + tone : ""), onclick: narrow(term) }, h("b", {}, count(n)), h("span", {}, (n > 0 && tone ? (tone === "bad" ? "■ " : "▲ ") : "") + name));
    once(this.tiles, [c.selection, c.member_hosts, c.silent_hosts, c.drifted_hosts, c.differing_hosts, c.undecided_hosts], () => [
      tile(c.member_hosts, c.member_hosts === 1 ? "member" : "members", "state:member", ""), tile(c.silent_hosts, "silent", "state:member seen>90s", "bad"), tile(c.drifted_hosts, "with drifted changes", "drift:yes", "warn"),
      tile(c.differing_hosts, "differ from their class", "differs>0", "warn"), tile(c.undecided_hosts, "to decide", "state:waiting,quarantined", "warn")]);
    const link = (name, term) => h("button", { type: "button", class: "as-link", onclick: narrow(term) }, name);
    const table = (title, list) => (list.length === 0 ? null : h("section", { class: "card" }, h("table", {}, h("caption", {}, title), h("tbody", {}, list.map((x) => h("tr", {}, h("th", { scope: "row" }, link(x.name, x.selection)), h("td", { class: "num" }, count(x.hosts))))))));
    once(this.counts, [c.selection, c.classes, c.findings, c.versions, c.sites, c.more], () => [
      c.classes.length ? h("section", { class: "card classes" }, h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Classes" }, h("table", {}, h("caption", {}, "Classes of like hosts"),
        h("thead", {}, h("tr", {}, ["Class", "Hosts", "Silent", "Drifted", "Differ"].map((t, i) => h("th", { scope: "col", class: i ? "num" : "" }, t)))),
        h("tbody", {}, c.classes.map((x) => h("tr", {}, h("th", { scope: "row" }, x.name === "unknown" ? "not read yet" : link(x.name, "class:" + quote(x.name))), [x.hosts, x.silent_hosts, x.drifted_hosts, x.differing_hosts].map((n, i) => h("td", { class: "num" + (i && n ? " warn" : "") }, count(n))))))))) : null,
      table("Findings", c.findings), table("Versions", c.versions), table("Sites", c.sites),
      c.more ? h("p", { class: "soft small" }, c.more + " more classes, findings, versions or sites have fewer hosts. A selection shows them.") : null]);
  }

  showWorst(c) {
    const m = measureOf(c.by), d = c.distribution;
    once(this.worst, [c.by, c.worst, d], () => [h("div", { class: "row between" }, h("h2", {}, "Unlike their class"), this.by),
      d.hosts === 0 ? h("p", { class: "empty" }, "No host has this measure. A mesh gives round trip, loss and rate: linerate-hub fleet measure.") : h("p", { class: "soft small" }, "Of " + d.hosts + " hosts: median " + m.format(d.p50) + ", 95 % at most " + m.format(d.p95) + ", the highest " + m.format(d.max) + "."),
      d.hosts && c.worst.length === 0 ? h("p", { class: "empty" }, "No host is worse than its class.") : null,
      c.worst.length ? h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Hosts unlike their class" }, h("table", {}, h("caption", { class: "hidden-text" }, "Hosts unlike their class, the farthest first"),
        h("thead", {}, h("tr", {}, ["Host", "Value", "Usual", "Distance"].map((t, i) => h("th", { scope: "col", class: i ? "num" : "" }, t)))),
        h("tbody", {}, c.worst.map((w) => h("tr", {}, h("th", { scope: "row" }, h("button", { type: "button", class: "as-link", onclick: () => this.choose("id:" + w.id) }, w.name), h("span", { class: "soft small class-of" }, w.class)),
          h("td", { class: "num" }, m.format(w.value)), h("td", { class: "num soft" }, m.format(w.class_p50)), h("td", { class: "num" + (w.distance > 3 ? " bad" : "") }, w.distance === undefined ? "-" : w.distance.toFixed(1) + " σ")))))) : null]);
  }

  showHosts(p) {
    const last = p.first + p.hosts.length - 1, seen = (t) => (t ? span(Math.max(0, now() - parseTime(t))) : "never");
    const page = (name, off, fn) => h("button", { type: "button", "aria-disabled": off ? "true" : undefined, disabled: off, onclick: fn }, name);
    const after = read().query.get("after") ?? "";
    // The times are written afterwards: a list that is made anew loses the focus of its buttons.
    once(this.hosts, [p.hosts.map((x) => ({ ...x, last_seen: silent(x) })), p.first, p.selected_hosts, p.next, this.stack.length, after], () => [
      h("div", { class: "row between" }, h("h2", {}, "Hosts"), this.order),
      p.hosts.length === 0 ? h("p", { class: "empty" }, p.selection ? "No host fits this selection." : "No host has joined. linerate-hub invite prints the line for one.") :
        h("ul", { class: "fleet-list" }, p.hosts.map((x) => h("li", {},
          h("div", {}, h("button", { type: "button", class: "as-link", onclick: () => this.choose("id:" + x.id) }, x.name), h("span", { class: "soft small" }, [x.class, x.version].filter(Boolean).join(" · ")), this.labels(x)),
          h("div", { class: "fleet-state" }, this.pills(x)), h("span", { class: "soft small num" }, seen(x.last_seen))))),
      h("nav", { class: "row between pages", "aria-label": "Pages of hosts" },
        h("span", { class: "soft small" }, p.hosts.length ? p.first + " to " + last + " of " + p.selected_hosts : "0 hosts"),
        h("span", { class: "row" }, page("First", !after, () => this.turn({ after: null }, [])), page("Back", !after, () => this.turn({ after: this.stack.at(-1) ?? null }, this.stack.slice(0, -1))), page("Next", !p.next, () => this.turn({ after: p.next }, [...this.stack, after]))))]);
    for (const [i, e] of this.hosts.querySelectorAll(".fleet-list li > .num").entries()) e.textContent = seen(p.hosts[i].last_seen);
  }

  labels(x) {
    const all = [...Object.entries(x.labels ?? {}).map(([k, v]) => k + "=" + v), ...(x.groups ?? [])];
    if (all.length === 0) return null;
    return h("span", { class: "soft small" }, all.slice(0, mostLabels).join(" ") + (all.length > mostLabels ? " and " + (all.length - mostLabels) + " more" : ""));
  }

  pills(x) {
    const out = [], pill = (tone, text) => out.push(h("span", { class: "pill " + tone }, h("span", { "aria-hidden": "true" }, tone === "bad" ? "■" : "▲"), text));
    if (x.state !== "member") pill(x.state === "quarantined" ? "bad" : "warn", x.state);
    if (silent(x)) pill("bad", "silent");
    if (x.drifted_knobs?.length) pill("warn", "drift: " + x.drifted_knobs[0].replace(/^sysctl:/, "") + (x.drifted_knobs.length > 1 ? " + " + (x.drifted_knobs.length - 1) : ""));
    if (x.differing_settings) pill("warn", "differs in " + x.differing_settings);
    for (const code of (x.findings ?? []).slice(0, 3)) out.push(h("code", { class: "small" }, code));
    return out;
  }

  recolour() {
    this.mesh.draw();
  }

  stop() {
    this.abort?.abort();
    this.mesh.stop();
  }
}
