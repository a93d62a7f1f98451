// Light and dark: the system's choice until the user switches, then the user's, stored in this
// browser. Colours are not part of the view, so they are not in the address.

const order = ["", "light", "dark"];
const words = { "": "Colours: as the system", light: "Colours: light", dark: "Colours: dark" };
const signs = { "": "◐", light: "☀", dark: "☾" };

export function startTheme(button, changed) {
  const current = () => document.documentElement.dataset.theme ?? "";
  const show = () => {
    button.textContent = signs[current()];
    button.title = words[current()] + " (t)";
    button.setAttribute("aria-label", words[current()]);
  };
  const next = () => {
    const theme = order[(order.indexOf(current()) + 1) % order.length];
    if (theme) document.documentElement.dataset.theme = theme;
    else delete document.documentElement.dataset.theme;
    try {
      if (theme) localStorage.setItem("linerate.theme", theme);
      else localStorage.removeItem("linerate.theme");
    } catch {
      // storage is forbidden: the choice lasts until the page is closed
    }
    show();
    changed();
  };
  button.addEventListener("click", next);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
  // Paper is white: redraw canvases for printing, and again for the screen afterwards.
  let screen;
  addEventListener("beforeprint", () => {
    screen = current();
    document.documentElement.dataset.theme = "light";
    changed();
  });
  addEventListener("afterprint", () => {
    if (screen) document.documentElement.dataset.theme = screen;
    else delete document.documentElement.dataset.theme;
    changed();
  });
  show();
  return next;
}
