(() => {
  const frames = [...document.querySelectorAll(".f")].map(e => ({
    e, left: parseFloat(e.style.left), width: parseFloat(e.style.width), bottom: parseFloat(e.style.bottom),
    n: +e.dataset.n, name: e.textContent,
  }));
  const zoom = to => {
    for (const f of frames) {
      const inside = f.left < to.left + to.width - 1e-6 && f.left + f.width > to.left + 1e-6;
      const left = Math.max(f.left, to.left), right = Math.min(f.left + f.width, to.left + to.width);
      f.e.classList.toggle("off", !inside);
      f.e.style.left = 100 * (left - to.left) / to.width + "%";
      f.e.style.width = 100 * (right - left) / to.width + "%";
    }
  };
  for (const f of frames) f.e.onclick = () => zoom(f);
  document.getElementById("out").onclick = () => zoom(frames[0]);
  document.getElementById("find").oninput = event => {
    const text = event.target.value.toLowerCase();
    let hits = [];
    for (const f of frames) {
      const hit = text !== "" && f.name.toLowerCase().includes(text);
      f.e.classList.toggle("hit", hit);
      if (hit) hits.push(f);
    }
    // A frame on another hit is part of it already.
    const outer = hits.filter(f => !hits.some(o => o !== f && o.bottom < f.bottom &&
      o.left <= f.left + 1e-6 && o.left + o.width >= f.left + f.width - 1e-6));
    const sum = outer.reduce((s, f) => s + f.n, 0);
    document.getElementById("found").textContent = text === "" ? "" :
      sum + " samples, " + (100 * sum / frames[0].n).toFixed(2) + " %";
  };
})();
