// The kinds of events: names, and letter and colour of their markers. Letter and colour carry the
// same information.

export const kinds = [
  { kind: "change", name: "Change", plural: "Changes", letter: "C", colour: "s5" },
  { kind: "run", name: "Tune run", plural: "Tune runs", letter: "T", colour: "s4" },
  { kind: "measurement", name: "Measurement", plural: "Measurements", letter: "M", colour: "s1" },
  { kind: "finding", name: "Finding", plural: "Findings", letter: "F", colour: "s2" },
  { kind: "alert", name: "Alert", plural: "Alerts", letter: "A", colour: "bad" },
  { kind: "link", name: "Link", plural: "Links", letter: "L", colour: "s3" },
  { kind: "reboot", name: "Reboot", plural: "Reboots", letter: "R", colour: "s7" },
  { kind: "gap", name: "Gap", plural: "Gaps", letter: "G", colour: "s8" },
];

// kindOf returns a kind; an unknown kind of a newer hub appears under its own name.
export const kindOf = (kind) => kinds.find((k) => k.kind === kind) ?? { kind, name: String(kind), plural: String(kind), letter: "·", colour: "s8" };

// lost are the states of a link event that is bad news.
const lost = ["link-down", "link-gone", "flapping"];

// colourOf returns the colour of an event: that of its kind, and the one of trouble for a link that
// is lost.
export const colourOf = (e) => (e.kind === "link" && lost.includes(e.state) ? "bad" : kindOf(e.kind).colour);

// rank orders kinds for a group's marker: changes first, scheduled events last.
const order = ["change", "run", "alert", "finding", "reboot", "link", "gap", "measurement"];
export const rank = (kind) => (order.indexOf(kind) + order.length + 1) % (order.length + 1);

// chosen returns the kinds in the address; by default all.
export function chosen(query) {
  const text = query.get("kinds");
  if (text === null) return kinds.map((k) => k.kind);
  return text.split(",").filter((name) => kinds.some((k) => k.kind === name));
}

// placeOf returns where a finding was made, beside the host's name: "near" is that host itself.
export const placeOf = (where) => (where === "near" ? "" : where);

// stateOf returns the state of an event in words; for a finding its place.
export const stateOf = (e) => (e.kind === "finding" ? placeOf(e.state) : e.state);

// severities as words and shapes.
export const severities = {
  critical: { word: "critical", sign: "■", tone: "bad" }, warning: { word: "warning", sign: "▲", tone: "warn" },
  notice: { word: "notice", sign: "●", tone: "soft" }, info: { word: "info", sign: "○", tone: "soft" },
};
export const severityOf = (name) => severities[name] ?? { word: name ?? "", sign: "○", tone: "soft" };
