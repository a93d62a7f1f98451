// The kinds of events: their names, and letter and colour of their markers. The letter tells what the colour tells.

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

// kindOf knows every kind; one that a newer hub may have is shown under its own name.
export const kindOf = (kind) => kinds.find((k) => k.kind === kind) ?? { kind, name: String(kind), plural: String(kind), letter: "·", colour: "s8" };

// rank tells which kind stands for a group: changes first, what merely happens at its hours last.
const telling = ["change", "run", "alert", "finding", "reboot", "link", "gap", "measurement"];
export const rank = (kind) => (telling.indexOf(kind) + telling.length + 1) % (telling.length + 1);

// chosen are the kinds that the address asks for; without a word of it, all.
export function chosen(query) {
  const text = query.get("kinds");
  if (text === null) return kinds.map((k) => k.kind);
  return text.split(",").filter((name) => kinds.some((k) => k.kind === name));
}

// placeOf is where a finding was made, beside the name of its host: "near" is that host itself.
export const placeOf = (where) => (where === "near" ? "" : where);

// stateOf is the state of an event in words; of a finding it is the place.
export const stateOf = (e) => (e.kind === "finding" ? placeOf(e.state) : e.state);

// severities in words and shapes.
export const severities = {
  critical: { word: "critical", sign: "■", tone: "bad" }, warning: { word: "warning", sign: "▲", tone: "warn" },
  notice: { word: "notice", sign: "●", tone: "soft" }, info: { word: "info", sign: "○", tone: "soft" },
};
export const severityOf = (name) => severities[name] ?? { word: name ?? "", sign: "○", tone: "soft" };
