// Set the colours chosen in this browser before the first paint, so that a dark page does not flash white.
// Storage may be forbidden; the system's choice then stays.
try {
  const chosen = localStorage.getItem("linerate.theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch {
  // nothing was chosen
}
