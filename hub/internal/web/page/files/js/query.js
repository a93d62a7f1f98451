// PromQL queries, and answers as columns on a regular grid. A graph gets at most one point for
// every two pixels. A step without a value is null, and is drawn as a gap.

import { queryRange, query } from "./api.js";

// steps that divide minutes, hours or days, so that points keep their times when the window moves.
const steps = [1, 2, 5, 10, 15, 30, 60, 90, 120, 180, 240, 300, 600, 900, 1200, 1800, 3600, 7200, 10800, 21600, 43200, 86400];

export function stepFor(win, points) {
  const wanted = (win.end - win.start) / Math.max(points, 20);
  return steps.find((s) => s >= wanted) ?? Math.ceil(wanted / 86400) * 86400;
}

// grid returns the grid of a window: its ends are multiples of the step, so that all viewers send
// the same query.
export function gridOf(win, step) {
  const first = Math.floor(win.start / step), last = Math.floor(win.end / step);
  const times = new Array(last - first + 1);
  for (let i = 0; i < times.length; i++) times[i] = (first + i) * step;
  return { start: first * step, end: last * step, step, times };
}

// selector returns a selector of labels: {host: "a", interface: "eth0"} becomes
// {host="a",interface="eth0"}. JSON strings are valid Go strings. It does not escape further
// matchers: they come from this page alone.
export function selector(labels, ...further) {
  const parts = Object.entries(labels).filter(([, v]) => v !== undefined).map(([k, v]) => k + "=" + JSON.stringify(v.toWellFormed ? v.toWellFormed() : v));
  return "{" + [...parts, ...further].join(",") + "}";
}

// rate is the mean over each step. A step needs two samples, which come each second; very short
// steps use a window of four seconds.
export const rate = (metric, labels, step) => "rate(" + metric + selector(labels) + "[" + Math.max(step, 4) + "s])";

// highest returns the highest rate of a counter between two readings, a second apart, in each step.
// The hub keeps it for each minute; a shorter step looks at each second.
export function highest(metric, labels, step) {
  if (step < 60) return "max_over_time(irate(" + metric + selector(labels) + "[2s])[" + step + "s:1s])";
  return "max_over_time(" + metric.replace(/_total$/, "_peak_per_second") + selector(labels) + "[" + step + "s])";
}

// grew returns the growth of counters over a time, from two look-ups each instead of all samples
// between: over hours, a millisecond instead of a second. After a reset of the counter it returns
// what was counted since: never too much, sometimes too little.
export function grew(metric, labels, span) {
  const m = metric + selector(labels);
  const before = m + " offset " + span + "s";
  return "(" + m + " - ((" + before + " <= " + m + ") or (" + m + " * 0)))";
}

// several joins queries into one. The label q of a row names its query.
export function several(named) {
  return Object.entries(named).map(([name, expression]) => "label_replace(" + expression + ", \"q\", \"" + name + "\", \"\", \"\")").join(" or ");
}

// matrix queries a window and returns rows {labels, values} on its grid.
export async function matrix(expression, grid, signal) {
  const result = await queryRange(expression, grid.start, grid.end, grid.step, signal);
  return result.map((row) => {
    const values = new Array(grid.times.length).fill(null);
    for (const [t, text] of row.values) {
      const i = Math.round((t - grid.start) / grid.step), v = Number(text);
      if (i >= 0 && i < values.length && Number.isFinite(v)) values[i] = v;
    }
    return { labels: row.metric, values };
  });
}

// vector queries one time and returns {labels, value}.
export async function vector(expression, time, signal) {
  const result = await query(expression, time, signal);
  return result.map((row) => ({ labels: row.metric, value: Number(row.value[1]) })).filter((row) => Number.isFinite(row.value));
}

// envelope returns the highest value of each step: that of tops if it is known, never below the mean.
export function envelope(values, tops) {
  return values.map((v, i) => (v === null ? null : Math.max(v, tops[i] ?? 0)));
}

// statistics returns the numbers of a column as MRTG prints them, over the existing points;
// undefined without points. tops are the highest values of the steps, if they are known.
export function statistics(values, tops) {
  const known = values.filter((v) => v !== null);
  if (known.length === 0) return undefined;
  const sorted = Float64Array.from(known).sort();
  let sum = 0;
  for (const v of known) sum += v;
  return {
    current: values.at(-1) ?? values.at(-2) ?? null, // the last step may not be over yet
    average: sum / known.length,
    maximum: (tops ?? []).reduce((most, v) => Math.max(most, v ?? 0), sorted.at(-1)),
    p95: sorted[Math.ceil(0.95 * sorted.length) - 1],
  };
}
