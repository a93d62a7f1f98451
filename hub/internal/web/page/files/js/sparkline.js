// A small graph in a table row: in above the middle, out below it, gaps left open. It has its own
// canvas, because forty of them must be cheap to draw.

import { colour } from "./dom.js";

// sparkline draws the values of in and out on a canvas. They cover a share of the time, up to its
// end.
export function sparkline(canvas, inward, outward, share) {
  const width = canvas.clientWidth || 160, height = canvas.clientHeight || 34, dense = devicePixelRatio || 1;
  canvas.width = Math.round(width * dense);
  canvas.height = Math.round(height * dense);
  const ctx = canvas.getContext("2d");
  ctx.scale(dense, dense);
  ctx.clearRect(0, 0, width, height);
  const middle = Math.round(height / 2);
  ctx.fillStyle = colour("line");
  ctx.fillRect(0, middle, width, 1);
  let most = 0;
  for (const v of inward) most = Math.max(most, v ?? 0);
  for (const v of outward) most = Math.max(most, v ?? 0);
  if (most === 0) return;
  const place = { left: width * (1 - Math.min(share, 1)), step: (width * Math.min(share, 1)) / Math.max(1, inward.length - 1) };
  area(ctx, inward, place, middle, -(middle - 1) / most, "in");
  area(ctx, outward, place, middle + 1, (height - middle - 2) / most, "out");
}

function area(ctx, values, { left, step }, base, scale, name) {
  ctx.fillStyle = colour(name + "-fill");
  ctx.strokeStyle = colour(name);
  ctx.lineWidth = 1.2;
  let run = [];
  const flush = () => {
    if (run.length === 1) run.push([run[0][0] + Math.max(step / 2, 1), run[0][1]]);
    if (run.length > 1) {
      ctx.beginPath();
      ctx.moveTo(run[0][0], base);
      for (const [x, y] of run) ctx.lineTo(x, y);
      ctx.lineTo(run.at(-1)[0], base);
      ctx.fill();
      ctx.beginPath();
      run.forEach(([x, y], i) => (i ? ctx.lineTo(x, y) : ctx.moveTo(x, y)));
      ctx.stroke();
    }
    run = [];
  };
  values.forEach((v, i) => {
    if (v === null) flush();
    else run.push([left + i * step, base + v * scale]);
  });
  flush();
}
