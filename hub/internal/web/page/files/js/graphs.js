// The graphs of an interface and its host: their queries, and how answers become lines.

import { envelope, highest, matrix, rate, selector, several } from "./query.js";
import { bits, packets, perSecond, percent, seconds } from "./units.js";

const palette = ["s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8"];
const natural = new Intl.Collator("en", { numeric: true }).compare;

// inOut returns the two lines of a mirrored graph.
const inOut = (rows, overlaid) => [
  { label: "In", colour: "in", filled: true, values: pick(rows, "in") },
  { label: "Out", colour: "out", filled: !overlaid, below: !overlaid, values: pick(rows, "out") },
].filter((r) => r.values);

// withTops adds to lines the envelope of their steps; of returns the row of tops for a line.
const withTops = (lines, of) => lines.map((line) => {
  const tops = of(line)?.values;
  return tops ? { ...line, tops: envelope(line.values, tops) } : line;
});

// inOutTops does so for the lines of in and out.
const inOutTops = (lines, tops) => withTops(lines, (line) => tops.find((r) => r.labels.q === line.label.toLowerCase()));

const pick = (rows, name) => rows.find((r) => r.labels.q === name)?.values;

// biggest keeps the largest lines and sums the rest: eight lines are distinguishable, sixty-four
// are not.
function biggest(rows, name, most = 8) {
  const size = (r) => r.values.reduce((sum, v) => sum + (v ?? 0), 0);
  const sorted = rows.map((r) => ({ label: name(r.labels), values: r.values, size: size(r) })).filter((r) => r.size > 0).sort((a, b) => b.size - a.size);
  const kept = sorted.slice(0, sorted.length > most ? most - 1 : most).sort((a, b) => natural(a.label, b.label));
  const others = sorted.slice(kept.length);
  const out = kept.map((r, i) => ({ label: r.label, values: r.values, colour: palette[i % palette.length] }));
  if (others.length) {
    const sum = others[0].values.map((_, i) => (others.every((r) => r.values[i] === null) ? null : others.reduce((s, r) => s + (r.values[i] ?? 0), 0)));
    out.push({ label: others.length + " others", values: sum, colour: "s8", dash: [4, 3] });
  }
  return out.length || rows.length === 0 ? out : [{ label: name(rows[0].labels), values: rows[0].values, colour: "s1" }];
}

// twoWays puts receive losses above the axis and transmit losses below it.
function twoWays(rows, label) {
  const above = biggest(rows.filter((r) => r.labels.direction !== "transmit"), label, 6);
  const below = biggest(rows.filter((r) => r.labels.direction === "transmit"), label, 4).map((r, i) => ({ ...r, below: true, colour: palette[(above.length + i) % palette.length] }));
  const all = [...above, ...below];
  all.forEach((r, i) => Object.assign(r, { colour: palette[i % palette.length], filled: false }));
  return all;
}

const way = (labels) => (labels.direction === "transmit" ? "out: " : "in: ");

// counted asks for a counter by some labels, makes lines of it with arrange and their names, and
// adds the envelope to each.
async function counted(metric, by, labels, grid, signal, arrange, name) {
  const [rows, tops] = await Promise.all([
    matrix("sum by (" + by + ") (" + rate(metric, labels, grid.step) + ")", grid, signal),
    matrix("max by (" + by + ") (" + highest(metric, labels, grid.step) + ")", grid, signal),
  ]);
  return withTops(arrange(rows, name), (line) => tops.find((r) => name(r.labels) === line.label));
}

// modes of CPU time from the bottom of the stack to its top; those unrelated to the network are at
// the bottom.
const modes = [
  ["user", "s1"], ["nice", "s6"], ["system", "s2"], ["iowait", "s7"], ["steal", "s8"], ["irq", "s4"], ["softirq", "s5"],
];

// forInterface adds the graphs of an interface to a board. speed is that of the link in bits per
// second; 0: unknown.
export function forInterface(board, host, name, { speed, overlaid }) {
  const of = { host, interface: name };
  board.add({
    id: "throughput", title: "Throughput", about: overlaid ? "in as an area, out as a line" : "in above, out below", format: bits, mirrored: !overlaid, height: 250, reference: speed,
    none: "No traffic was recorded in this time.",
  }, async (grid, signal) => {
    const ask = (expression) => matrix(several({
      in: expression("linerate_interface_receive_bytes_total", of, grid.step) + " * 8", out: expression("linerate_interface_transmit_bytes_total", of, grid.step) + " * 8",
    }), grid, signal);
    const [rows, tops] = await Promise.all([ask(rate), ask(highest)]);
    return inOutTops(inOut(rows, overlaid), tops);
  });
  board.add({ id: "packets", title: "Packets", about: "in above, out below", format: packets, mirrored: true, height: 150 }, async (grid, signal) => {
    const ask = (expression) => matrix(several({
      in: expression("linerate_interface_receive_packets_total", of, grid.step), out: expression("linerate_interface_transmit_packets_total", of, grid.step),
      multicast: expression("linerate_interface_receive_multicast_packets_total", of, grid.step),
    }), grid, signal);
    const [rows, tops] = await Promise.all([ask(rate), ask(highest)]);
    const multicast = pick(rows, "multicast");
    const more = multicast?.some((v) => v > 0) ? [{ label: "of in: multicast", colour: "s2", values: multicast }] : [];
    return [...inOutTops(inOut(rows), tops), ...withTops(more, () => tops.find((r) => r.labels.q === "multicast"))];
  });
  board.add({
    id: "drops", title: "Drops", about: "by place; receiving above, sending below", format: packets, mirrored: true, height: 150,
    quiet: "No packet was dropped in this time.", none: "No drop counter was recorded in this time.",
  }, (grid, signal) => counted("linerate_interface_drops_total", "direction, place", of, grid, signal, twoWays, (l) => way(l) + (l.place ?? "?")));
  board.add({
    id: "errors", title: "Errors", about: "by kind; receiving above, sending below", format: packets, mirrored: true, height: 150,
    quiet: "No error was counted in this time.", none: "No error counter was recorded in this time.",
  }, (grid, signal) => counted("linerate_interface_errors_total", "direction, kind", of, grid, signal, twoWays, (l) => way(l) + (l.kind ?? "?")));
  board.add({
    id: "interrupts", title: "Interrupts by queue", format: perSecond, height: 150, none: "No interrupts by queue were recorded for this interface.", quiet: "No queue interrupted in this time.",
  }, async (grid, signal) => biggest(await matrix("sum by (queue) (" + rate("linerate_queue_interrupts_total", of, grid.step) + ")", grid, signal), (l) => l.queue ?? "?"));
}

// ruleName names a counter by its comment and what it compares.
const ruleName = (l) => (l.rule && l.match ? l.rule + ": " + l.match : l.rule || l.match || "everything");

// forHost adds the graphs that all interfaces of a host share.
export function forHost(board, host) {
  const of = { host };
  board.add({ id: "cpu", title: "CPU time by mode", about: "all CPUs, stacked", format: percent, stacked: true, height: 180, most: 1.02 }, async (grid, signal) => {
    const rows = await matrix(several({
      mode: "avg by (mode) (" + rate("linerate_cpu_seconds_total", of, grid.step) + ")",
      busiest: "1 - min(" + rate("linerate_cpu_seconds_total", { host, mode: "idle" }, grid.step) + ")",
    }), grid, signal);
    const out = [];
    for (const [mode, colour] of modes) {
      const row = rows.find((r) => r.labels.mode === mode);
      if (row?.values.some((v) => v > 0)) out.push({ label: mode, colour, values: row.values });
    }
    const busiest = pick(rows, "busiest");
    if (busiest) out.push({ label: "busiest CPU", colour: "ink", values: busiest, line: true, dash: [2, 2] });
    return out;
  });
  board.add({
    id: "card-interrupts", title: "NIC interrupts by CPU", format: perSecond, height: 150, none: "No NIC interrupts were recorded.", quiet: "No NIC interrupted in this time.",
  }, async (grid, signal) => biggest(await matrix("sum by (cpu) (" + rate("linerate_cpu_card_interrupts_total", of, grid.step) + ")", grid, signal), (l) => "cpu " + (l.cpu ?? "?")));
  board.add({
    id: "host-drops", title: "Drops behind the NICs", about: "by place, of the whole host", format: packets, height: 150, quiet: "No packet was dropped behind the NICs in this time.", none: "No drop counter was recorded in this time.",
  }, (grid, signal) => counted("linerate_host_drops_total", "place", of, grid, signal, biggest, (l) => l.place ?? "?"));
  board.add({
    id: "rules", title: "Traffic by firewall rule", about: "the busiest counters, with the comments of their rules", format: bits, height: 220,
    none: "No counting rules were recorded. The hub reads them through linerate agent, which runs as root.", quiet: "No counting rule matched in this time.",
  }, async (grid, signal) => biggest(
    // Rules are read each ten seconds.
    await matrix("sum by (rule, match) (" + rate("linerate_firewall_rule_bytes_total", of, Math.max(grid.step, 30)) + ") * 8", grid, signal), ruleName, 10));
  board.add({
    id: "retransmits", title: "TCP retransmits", about: "of the whole host", format: perSecond, height: 150, quiet: "Nothing was retransmitted in this time.", none: "No TCP counters were recorded in this time.",
  }, async (grid, signal) => {
    const ask = (expression) => matrix(several({
      retransmits: expression("linerate_tcp_retransmits_total", of, grid.step), timeouts: expression("linerate_tcp_timeouts_total", of, grid.step),
    }), grid, signal);
    const [rows, tops] = await Promise.all([ask(rate), ask(highest)]);
    const line = (label, colour, q) => withTops([{ label, colour, values: pick(rows, q) }].filter((r) => r.values), () => tops.find((r) => r.labels.q === q));
    return [...line("Retransmitted segments", "s5", "retransmits"), ...line("Timeouts", "s1", "timeouts")];
  });
  board.add({
    id: "rtt", title: "Round trip of scheduled measurements", format: seconds, points: true, height: 150,
    none: "No measurement ran in this time. Schedules in the hub's configuration measure named targets at intervals.",
  }, (grid, signal) => roundTrips(host, undefined, grid, signal));
}

// roundTrips returns median and 99th percentile to each target. Measurements are minutes apart:
// each step shows its last one, as a point.
export async function roundTrips(host, target, grid, signal) {
  const span = Math.max(grid.step, 15);
  const rows = await matrix("max by (target, quantile) (last_over_time(linerate_measurement_rtt_seconds" + selector({ host, target }, "quantile=~\"0.5|0.99\"") + "[" + span + "s]))", grid, signal);
  rows.sort((a, b) => natural(a.labels.target ?? "", b.labels.target ?? "") || natural(a.labels.quantile ?? "", b.labels.quantile ?? ""));
  return rows.slice(0, 8).map((r, i) => ({ label: (r.labels.target ?? "?") + (r.labels.quantile === "0.5" ? ", median" : ", 99th pct."), colour: palette[i], values: r.values }));
}
