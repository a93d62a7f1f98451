// The graphs of a switch's port: their queries, and how answers become lines.

import { matrix, rate, several } from "./query.js";
import { bits, packets } from "./units.js";

// least is the shortest window of a rate, in seconds: switches are read at most a minute apart.
const least = 150;

const each = (metric, labels, step) => rate(metric, labels, Math.max(step, least));

const colours = ["s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8"];

// mirrored asks for a counter in both directions.
const mirrored = async (names, times, labels, grid, signal) => {
  const rows = await matrix(several({ in: each(names[0], labels, grid.step) + times, out: each(names[1], labels, grid.step) + times }), grid, signal);
  const pick = (q) => rows.find((r) => r.labels.q === q)?.values;
  return [
    { label: "In", colour: "in", filled: true, values: pick("in") },
    { label: "Out", colour: "out", filled: true, below: true, values: pick("out") },
  ].filter((r) => r.values);
};

// byKind makes a line of each row: receiving above the axis, sending below.
const byKind = (rows, name) => rows.filter((r) => r.values.some((v) => v > 0)).slice(0, colours.length).map((r, i) => ({
  label: (r.labels.direction === "transmit" ? "out: " : "in: ") + name(r.labels), colour: colours[i], values: r.values, below: r.labels.direction === "transmit",
})).concat(rows.length && rows.every((r) => !r.values.some((v) => v > 0)) ? [{ label: "any", colour: "s1", values: rows[0].values }] : []);

// forPort adds the graphs of a port to a board. Seen from the switch: in is what the port receives.
export function forPort(board, of, port, { title = "", short = false }) {
  const labels = { switch: of, port };
  board.add({
    id: "port-throughput", title: title || "Throughput", about: "as the switch counts: in above, out below", format: bits, mirrored: true, height: short ? 150 : 250,
    none: "The switch has given no figures in this time.",
  }, (grid, signal) => mirrored(["linerate_switch_port_receive_bytes_total", "linerate_switch_port_transmit_bytes_total"], " * 8", labels, grid, signal));
  if (!short) {
    board.add({ id: "port-packets", title: "Frames", about: "in above, out below", format: packets, mirrored: true, height: 150, none: "The switch has given no figures in this time." },
      (grid, signal) => mirrored(["linerate_switch_port_receive_packets_total", "linerate_switch_port_transmit_packets_total"], "", labels, grid, signal));
  }
  board.add({
    id: "port-losses", title: short ? "Losses at the switch's port" : "Discards and errors", about: "receiving above, sending below", format: packets, mirrored: true, height: 150,
    quiet: "The port lost no frame in this time.", none: "The switch has given no figures in this time.",
  }, async (grid, signal) => byKind(await matrix(several({
    discards: "sum by (direction) (" + each("linerate_switch_port_discards_total", labels, grid.step) + ")",
    errors: "sum by (direction, kind) (" + each("linerate_switch_port_errors_total", labels, grid.step) + ")",
  }), grid, signal), (l) => (l.q === "discards" ? "discards" : l.kind === "any" ? "errors" : l.kind)));
}
