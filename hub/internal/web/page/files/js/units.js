// Numbers for people: three significant digits, SI prefixes, and "-" for an unknown value.

const prefixes = [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];

// digits returns a number with three significant digits: 9.41, 94.1, 941.
function digits(v) {
  const size = Math.abs(v);
  if (size >= 99.95) return v.toFixed(0);
  return v.toFixed(size >= 9.995 ? 1 : 2);
}

// scaled returns a number with an SI prefix and its unit.
export function scaled(v, unit) {
  if (v === null || v === undefined || !Number.isFinite(v)) return "-";
  const size = Math.abs(v);
  for (const [by, prefix] of prefixes) {
    if (size >= by * 0.9995) return digits(v / by) + " " + prefix + unit;
  }
  const text = Number.isInteger(v) ? String(v) : size < 0.005 ? (size === 0 ? "0" : "< 0.01") : digits(v);
  return unit ? text + " " + unit : text;
}

export const bits = (v) => scaled(v, "b/s");
export const perSecond = (v) => scaled(v, "/s");
export const packets = (v) => scaled(v, "p/s");
export const count = (v) => (Number.isInteger(v) && Math.abs(v) < 10000 ? String(v) : scaled(v, "").trim());

// bytes has binary prefixes: sizes of memory and disks are powers of two.
export function bytes(v) {
  if (v === null || v === undefined || !Number.isFinite(v)) return "-";
  const names = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let i = 0;
  while (Math.abs(v) >= 1024 && i < names.length - 1) {
    v /= 1024;
    i++;
  }
  return (i === 0 ? String(Math.round(v)) : digits(v)) + " " + names[i];
}

// packetSize reports whether a name is of the size of a packet or a part of one. Such sizes are
// exact: an MTU is 1500 B and not 1.46 KiB.
const packetSize = (name) => /(^|[_ ])(p?mtu|(adv)?mss|packet|segment|payload|datagram|frame|message|request|response)([_ ]|$)/i.test(name ?? "");

const exactBytes = (v) => (v < 10000 ? String(v) : v.toLocaleString("en").replaceAll(",", "\u202f")) + " B";

// sizeOf formats a number of bytes by the name of what has it.
const sizeOf = (name, v) => (packetSize(name) && Number.isInteger(v) ? exactBytes(v) : bytes(v));

// seconds formats a short time: a round trip, a wait.
export function seconds(v) {
  if (v === null || v === undefined || !Number.isFinite(v)) return "-";
  const size = Math.abs(v);
  if (size === 0) return "0 s";
  if (size < 1e-6) return digits(v * 1e9) + " ns";
  if (size < 1e-3) return digits(v * 1e6) + " µs";
  if (size < 1) return digits(v * 1e3) + " ms";
  return digits(v) + " s";
}

// span formats a time for people: 45 s, 12 min, 3 h, 2 d.
export function span(s) {
  if (!Number.isFinite(s)) return "-";
  const plain = (v) => (v < 10 && v % 1 >= 0.05 ? v.toFixed(1) : v.toFixed(0));
  if (s < 90) return s.toFixed(0) + " s";
  if (s < 3600) return plain(s / 60) + " min";
  if (s < 172800 + 3600) return plain(s / 3600) + " h";
  return plain(s / 86400) + " d";
}

export function percent(v) {
  if (v === null || v === undefined || !Number.isFinite(v)) return "-";
  const p = v * 100;
  if (p === 0) return "0 %";
  if (Math.abs(p) < 0.01) return "< 0.01 %";
  return (Math.abs(p) >= 9.995 ? p.toFixed(Math.abs(p) >= 99.95 ? 0 : 1) : p.toFixed(2)) + " %";
}

// speed formats a link speed without rounding: 1 Gb/s, 2.5 Gb/s.
export function speed(v) {
  if (!(v > 0)) return "-";
  for (const [by, prefix] of prefixes) {
    if (v >= by) return Number((v / by).toFixed(2)) + " " + prefix + "b/s";
  }
  return v + " b/s";
}

// axis shortens a number for an axis: no insignificant digits.
export function axis(format) {
  return (v) => format(Math.abs(v)).replace(/(\.\d*?)0+(?=\D|$)/, "$1").replace(/\.(?=\D|$)/, "");
}

const endings = [
  ["_bits_per_second", bits], ["_bytes_per_second", (v) => bytes(v) + "/s"], ["_packets_per_second", packets],
  ["_transactions_per_second", (v) => scaled(v, "trans/s")], ["_per_second", perSecond], ["_seconds", seconds], ["_bytes", bytes], ["_ratio", (v) => String(Number(v.toPrecision(4)))],
];

// byKey formats a value of a document by the unit in its key.
export function byKey(key, v) {
  if (typeof v !== "number") return String(v);
  if (key.endsWith("_bytes")) return sizeOf(key, v);
  for (const [ending, format] of endings) {
    if (key.endsWith(ending)) return format(v);
  }
  return Number.isInteger(v) ? v.toLocaleString("en").replaceAll(",", "\u202f") : String(Number(v.toPrecision(6)));
}

// byUnit formats a value whose unit is a word of the API, and which has a name.
export function byUnit(unit, v, name) {
  switch (unit) {
    case "bits_per_second": case "b/s": case "bit/s": return bits(v);
    case "packets_per_second": case "p/s": case "packets/s": return packets(v);
    case "bytes_per_second": case "B/s": case "bytes/s": return bytes(v) + "/s";
    case "bytes": case "B": return sizeOf(name, v);
    case "seconds": case "s": return seconds(v);
    case "seconds_per_second": return scaled(v, "");
    case "1": case "ratio": return v === undefined || v === null ? "-" : String(Number(v.toPrecision(3)));
    case "per_second": case "/s": case "1/s": return perSecond(v);
    default: return scaled(v, unit ?? "");
  }
}

// plainKey turns a key into words: "throughput_bits_per_second" is "throughput".
export function plainKey(key) {
  for (const [ending] of endings) {
    if (key.endsWith(ending) && key.length > ending.length && ending !== "_ratio") return key.slice(0, -ending.length).replaceAll("_", " ");
  }
  return key.replace(/_total$/, "").replaceAll("_", " ");
}
