// Times: the visible part of the history, and how a time is written.

// skew is how far the hub's clock is ahead of the browser's, in seconds: the history has the hub's
// time, and a laptop's clock may be off by minutes.
let skew = 0;

export function setClock(iso) {
  const hub = Date.parse(iso);
  if (Number.isFinite(hub)) skew = (hub - Date.now()) / 1000;
}

// now returns the hub's time in seconds.
export const now = () => Date.now() / 1000 + skew;

// began is the time of the oldest sample of the history, or of the hub's start before the first one;
// undefined while the hub loads its history.
let began;

export function setHistory(iso) {
  began = parseTime(iso);
}

// age returns how long there has been a history, in seconds; undefined: unknown.
export const age = () => (began === undefined ? undefined : Math.max(0, now() - began));

// recorded returns the part of a window that the history covers, at least its last ten seconds: a
// young history has short steps, and so its first points within seconds.
export function recorded(win) {
  return { ...win, start: Math.max(win.start, Math.min(began ?? win.start, win.end - 10)) };
}

export const ranges = [["1h", 3600], ["6h", 6 * 3600], ["24h", 86400], ["48h", 2 * 86400], ["7d", 7 * 86400]];

// parseSpan returns "90m", "6h" or "2d" in seconds; undefined for other texts.
export function parseSpan(text) {
  const m = /^(\d{1,5})(m|h|d)$/.exec(text ?? "");
  return m && m[1] > 0 ? Number(m[1]) * { m: 60, h: 3600, d: 86400 }[m[2]] : undefined;
}

export function parseTime(text) {
  if (!text) return undefined;
  const t = /^\d+(\.\d+)?$/.test(text) ? Number(text) : Date.parse(text) / 1000;
  return Number.isFinite(t) && t >= 0 && t < 4e9 ? t : undefined;
}

// fitting returns the usual range, or a shorter one while that holds the whole history.
function fitting(usual) {
  const length = parseSpan(usual);
  return ranges.find(([, seconds]) => seconds < length && age() <= seconds)?.[0] ?? usual;
}

// windowOf returns the window in the address: the last hours, which move with the time, or a fixed
// part.
export function windowOf(query, usual) {
  const from = parseTime(query.get("from")), to = parseTime(query.get("to"));
  if (from !== undefined && to !== undefined && to > from) return { start: from, end: to, live: false, range: "" };
  let range = query.get("range");
  let length = parseSpan(range);
  if (!length) {
    range = fitting(usual);
    length = parseSpan(range);
  }
  const end = now();
  return { start: end - length, end, live: true, range };
}

// iso returns a time for addresses: UTC, whole seconds.
export const iso = (t) => new Date(Math.round(t) * 1000).toISOString().replace(".000Z", "Z");

const two = (n) => String(n).padStart(2, "0");
const weekdays = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

export const clock = (d) => two(d.getHours()) + ":" + two(d.getMinutes()) + ":" + two(d.getSeconds());
export const day = (d) => weekdays[d.getDay()] + " " + d.getDate() + " " + months[d.getMonth()];

// local returns a time in the browser's zone, with the year if it differs from the current one.
export function local(t) {
  const d = new Date(t * 1000);
  const year = d.getFullYear() === new Date().getFullYear() ? "" : " " + d.getFullYear();
  return day(d) + year + " " + clock(d);
}

export function utc(t) {
  const d = new Date(t * 1000);
  return d.toISOString().slice(0, 19).replace("T", " ") + " UTC";
}

// short returns a time in the shortest unambiguous form: the time of today, otherwise day and time.
export function short(t) {
  const d = new Date(t * 1000);
  const hm = two(d.getHours()) + ":" + two(d.getMinutes());
  return d.toDateString() === new Date(now() * 1000).toDateString() ? hm : d.getDate() + " " + months[d.getMonth()] + " " + hm;
}

// ticks returns the labels of a time axis: hours and minutes, and the day where one begins; a long
// axis has days alone.
export function ticks(_, splits, _axis, _space, step) {
  let before = "";
  return splits.map((t) => {
    const d = new Date(t * 1000);
    const date = day(d);
    const hm = two(d.getHours()) + ":" + two(d.getMinutes());
    const time = step >= 86400 ? date : step < 60 ? hm + ":" + two(d.getSeconds()) : hm;
    const first = step < 86400 && date !== before;
    before = date;
    return first ? time + "\n" + date : time;
  });
}

// forField returns a time for a datetime-local field.
export function forField(t) {
  const d = new Date(t * 1000);
  return d.getFullYear() + "-" + two(d.getMonth() + 1) + "-" + two(d.getDate()) + "T" + clock(d);
}

export const fromField = (text) => {
  const t = new Date(text).getTime() / 1000;
  return Number.isFinite(t) ? t : undefined;
};
