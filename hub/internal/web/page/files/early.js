// Before anything is painted: the colours that were chosen on this browser, so that a dark page does not flash white.
// Storage may be forbidden; then the system's own choice stays.
try {
  const chosen = localStorage.getItem("linerate.theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch {
  // nothing was chosen
}
