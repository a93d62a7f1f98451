// The page: chooses the view by the address, refreshes it while it is visible, and joins keys,
// colours and notices.

import { h, put } from "./dom.js";
import { read, listen, link } from "./state.js";
import { age, now } from "./time.js";
import { refresh, show as showNotices } from "./status.js";
import { follow } from "./eventdialog.js";
import { startKeys, showKeys } from "./keys.js";
import { startTheme } from "./theme.js";
import { quiet } from "./marks.js";
import { OverviewView } from "./overview.js";
import { InterfaceView } from "./interface.js";
import { CompareView } from "./compare.js";
import { ChangesView } from "./changes.js";
import { FindingsView } from "./findings.js";
import { MatrixView } from "./matrix.js";
import { FleetView } from "./fleet.js";
import { PortView, SwitchesView } from "./switches.js";

const views = [
  { id: "overview", name: "Overview", make: OverviewView },
  { id: "interface", make: InterfaceView, parts: 2 },
  { id: "compare", name: "Compare", make: CompareView },
  { id: "changes", name: "Changes", make: ChangesView },
  { id: "findings", name: "Findings", make: FindingsView },
  { id: "measurements", name: "Measurements", make: MatrixView },
  { id: "fleet", name: "Fleet", make: FleetView, only: (hub) => hub.fleet },
  { id: "switches", name: "Switches", make: SwitchesView },
  { id: "port", make: PortView, parts: 2 },
];
const everySecond = 1000;

const main = document.getElementById("main");
let view, key;

let hub; // its state, once it has answered

// showNav links the views that this hub has.
function showNav(id) {
  const shown = views.filter((v) => v.name && (!v.only || v.id === id || (hub && v.only(hub))));
  put(document.getElementById("nav"), shown.map((v) => h("a", { href: link(v.id), "aria-current": v.id === id ? "page" : undefined }, v.name)));
}

// route shows the view of the address, and passes changes of the address to it.
async function route() {
  const address = read();
  let chosen = views.find((v) => v.id === address.view);
  if (!chosen || (chosen.parts && address.parts.length < chosen.parts)) chosen = views[0];
  const wanted = JSON.stringify([chosen.id, address.parts]);
  if (wanted !== key) {
    const first = key === undefined;
    key = wanted;
    view?.stop();
    quiet();
    put(main);
    main.dataset.view = chosen.id;
    view = new chosen.make(main, address);
    document.title = view.title + " · linerate";
    showNav(chosen.id);
    if (!first) {
      scrollTo(0, 0);
      main.focus({ preventScroll: true });
    }
  }
  follow();
  if ((await view.update()) === "again") {
    key = "";
    await route();
  }
}

let busy = false;

// beat loads new data, at most once a second, and not while the page is hidden or an answer is
// pending.
async function beat() {
  if (busy || document.hidden) return;
  busy = true;
  try {
    await view?.tick?.();
    if (Date.now() - beat.asked > 10 * everySecond) {
      beat.asked = Date.now();
      await refresh();
    }
  } finally {
    busy = false;
  }
}
beat.asked = Date.now();

const app = { view: () => view, theme: startTheme(document.getElementById("theme"), () => view?.recolour?.()) };
startKeys(app);
// The cookie of the session is not for scripts; this one says only that there is a session to end.
document.getElementById("logout").hidden = !/(^|; )linerate_login=/.test(document.cookie);
document.getElementById("help").addEventListener("click", () => showKeys(app));
document.getElementById("skip").addEventListener("click", (e) => {
  e.preventDefault(); // the address after the number sign is ours
  main.focus();
});
listen(route);
addEventListener("scroll", quiet, { passive: true });
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) beat();
});
setInterval(beat, everySecond);

// The view does not wait for the state of the hub: both load in parallel. If the hub's clock
// differs from the browser's, the live view shows the wrong time, and reloads; with a history of
// few steps, it reloads with shorter ones. Until then the page is busy.
const young = 3 * 3600; // seconds
route();
const before = now(), started = performance.now();
refresh().then((answer) => {
  hub = answer;
  showNav(main.dataset.view);
  showNotices();
  if (!read().query.has("from") && (age() < young || Math.abs(now() - before - (performance.now() - started) / 1000) > 5)) {
    key = "";
    route();
  }
}).finally(() => main.removeAttribute("aria-busy"));
