// A rollout: where it is, and its looks against the boundary that each had to pass.

import { h, svg } from "./dom.js";
import { local, parseTime } from "./time.js";

const phases = { ordering: ["◐", "warn"], soaking: ["◐", "warn"], collecting: ["◐", "warn"], halted: ["■", "bad"], unwinding: ["▲", "warn"], persisting: ["◐", "warn"], done: ["●", "good"] };
const width = 420, height = 170, left = 34, right = 14, top = 12, bottom = 24, most = 6;

const factor = (log) => (100 * (Math.exp(log) - 1)).toFixed(1) + " %";

export function rolloutCard(r) {
  const [sign, tone] = phases[r.phase] ?? ["·", "soft"], stage = r.boundary[r.stage]?.stage ?? "";
  const states = Object.entries(r.states).sort((a, b) => b[1] - a[1]).map(([s, n]) => n + " " + s).join(" · ");
  return h("article", { class: "card rollout" },
    h("div", { class: "rollout-what" }, h("p", {}, h("span", { class: "pill " + tone }, h("span", { "aria-hidden": "true" }, sign), r.phase), " ", h("span", { class: "soft small" }, stage)),
      h("h3", { class: "mono" }, r.knob + " → " + r.to),
      h("p", { class: "soft small" }, r.id + " · begun " + local(parseTime(r.started)) + " · " + r.hosts + " hosts: " + states),
      r.reason ? h("p", { class: r.phase === "halted" ? "bad" : "soft" }, r.reason) : null,
      h("p", {}, r.proven ? "The benefit is proven." : "The benefit is not proven" + (r.phase === "done" ? "." : " yet.")),
      h("details", {}, h("summary", {}, "Stages and looks"), h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Stages and looks of " + r.id }, h("table", {},
        h("thead", {}, h("tr", {}, ["Stage", "Hosts", "Pairs", "Effect", "t", "Proves above", "Halts below"].map((t, i) => h("th", { scope: "col", class: i ? "num" : "" }, t)))),
        h("tbody", {}, r.boundary.map((b, i) => {
          const l = r.looks.find((x) => x.stage === i);
          return h("tr", {}, h("th", { scope: "row" }, b.stage), h("td", { class: "num" }, r.changed_hosts[i]), h("td", { class: "num" }, l ? l.pairs_total : "-"), h("td", { class: "num" }, l ? factor(l.effect_log_ratio) : "-"), h("td", { class: "num" + (l?.harm ? " bad" : "") }, l ? l.t.toFixed(2) + (l.harm ? " ▼" : l.proven ? " ▲" : "") : "-"),
            h("td", { class: "num soft" }, b.benefit_z === undefined ? "-" : b.benefit_z.toFixed(2)), h("td", { class: "num soft" }, b.harm_z.toFixed(2)));
        })))))),
    plot(r));
}

function plot(r) {
  const n = r.boundary.length;
  const x = (i) => left + ((width - left - right) * (i + 0.5)) / n, y = (z) => top + ((height - top - bottom) * (most - Math.max(-most, Math.min(most, z)))) / (2 * most);
  const line = (values) => values.map(([i, z], k) => (k ? "L" : "M") + x(i).toFixed(1) + " " + y(z).toFixed(1)).join("");
  const benefit = r.boundary.map((b, i) => [i, b.benefit_z]).filter(([, z]) => z !== undefined), harm = r.boundary.map((b, i) => [i, b.harm_z]);
  const said = r.looks.length ? r.looks.map((l) => r.boundary[l.stage].stage + ": t " + l.t.toFixed(2) + (l.harm ? ", harm" : l.proven ? ", proven" : "")).join("; ") : "no look yet";
  return h("figure", { class: "boundary" }, svg("svg", { viewBox: "0 0 " + width + " " + height, role: "img", "aria-label": "Looks and their boundary. " + said },
    [-4, -2, 0, 2, 4].map((z) => [svg("line", { x1: left, x2: width - right, y1: y(z), y2: y(z), class: z ? "grid" : "zero" }), svg("text", { x: left - 6, y: y(z) + 4, class: "tick end" }, z)]),
    r.boundary.map((b, i) => svg("text", { x: x(i), y: height - 7, class: "tick middle" }, b.stage.replace("experiment", "exp.").replace("wave ", ""))),
    svg("path", { d: line(benefit), class: "benefit" }), svg("path", { d: line(harm), class: "harm" }),
    benefit.length ? svg("text", { x: x(benefit.at(-1)[0]), y: y(benefit.at(-1)[1]) - 6, class: "tick middle" }, "proves") : null,
    svg("text", { x: x(n - 1), y: y(harm.at(-1)[1]) + 14, class: "tick middle" }, "halts"),
    r.looks.length > 1 ? svg("path", { d: line(r.looks.map((l) => [l.stage, l.t])), class: "looks" }) : null,
    r.looks.map((l) => mark(x(l.stage), y(l.t), l))),
  h("figcaption", { class: "soft small" }, "t of the differences between changed and like hosts, after each stage."));
}

// mark draws a look: a triangle up for proof, down for harm, a circle otherwise.
function mark(x, y, l) {
  if (l.harm) return svg("path", { d: "M" + (x - 6) + " " + (y - 5) + "h12l-6 11z", class: "look-harm" });
  if (l.proven) return svg("path", { d: "M" + (x - 6) + " " + (y + 5) + "h12l-6 -11z", class: "look-proven" });
  return svg("circle", { cx: x, cy: y, r: 4.5, class: "look" });
}
