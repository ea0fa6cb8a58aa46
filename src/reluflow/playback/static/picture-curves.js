// Against time: the loss with the predicted staircase, and the sizes of neurons.

import { drawAxes, inner, scale, ticks, timeAxis } from "./axes.js";
import { tick } from "./format.js";

/** Where linear time ends: past the last predicted jump, or the run's planned part. */
export function horizonOf(sides) {
  let horizon = 0;
  let end = 0;
  for (const side of sides) {
    const first = side.landscape?.first_jump;
    const jumps = side.process?.times ?? (first ? [first.time] : []);
    const last = jumps.length ? jumps[jumps.length - 1] : 0;
    const run = side.run;
    if (run) end = Math.max(end, run.end);
    const planned = run?.about.horizon ?? run?.about.t_end ?? (last ? 1.4 * last : run ? run.end : 1);
    horizon = Math.max(horizon, Math.min(planned, run ? run.end : Infinity));
  }
  horizon = horizon || 1;
  return { horizon, end: Math.max(end, horizon) };
}

function timeTicks(axis) {
  const made = ticks(0, axis.horizon, 6);
  if (axis.knee) made.at = made.at.filter((t) => t < 0.94 * axis.horizon);
  return made;
}

const NUMBER = 12; // pixels that the number of a jump takes

function drawTimes(pen, box, axis, side, theme) {
  if (axis.knee) {
    pen.rect(axis.knee, box.y, box.x + box.w - axis.knee, box.h, theme.ground);
    pen.text(`to ${tick(axis.end, 1)}`, box.x + box.w, box.y + box.h + 6,
      { color: theme.soft, size: 11, align: "right", base: "top" });
  }
  const early = !side.process && side.landscape?.first_jump ? [side.landscape.first_jump.time] : [];
  const labels = []; // where numbers would overlap, first and last of the jumps share one
  (side.process?.times ?? early).slice(0, 40).forEach((t, i) => {
    if (t > axis.end) return;
    const x = axis(t);
    pen.line([[x, box.y], [x, box.y + box.h]],
      { color: theme.predicted, dash: [4, 3], alpha: side.process?.small === false ? 0.35 : 0.9 });
    const last = labels[labels.length - 1];
    if (last && x - last.end < NUMBER) [last.to, last.end] = [i + 1, x];
    else if (i < 12) labels.push({ x, end: x, from: i + 1, to: i + 1 });
  });
  for (const { x, from, to } of labels) {
    const text = from === to ? String(from) : `${from}–${to}`;
    pen.text(text, x + 4, box.y + 8, { color: theme.predicted, size: 11, bold: true });
  }
}

/** The present time, over a picture against time. */
export function drawNow(pen, w, h, side, shared, time, theme) {
  if (!side.run) return;
  const box = inner(w, h, { top: 20 });
  const axis = timeAxis(shared.horizon, shared.end, box.x, box.x + box.w);
  const x = axis(Math.min(time, axis.end));
  pen.line([[x, box.y], [x, box.y + box.h]], { color: theme.ink, width: 1.2 });
}

/** The present loss as a point of its curve. */
export function drawLossNow(pen, w, h, side, shared, time, theme, logarithmic) {
  drawNow(pen, w, h, side, shared, time, theme);
  const run = side.run;
  if (!run) return;
  const { axis, value } = lossMaps(w, h, side, shared, logarithmic);
  const frame = run.frameAt(time);
  pen.disc(axis(run.times[frame]), value(run.loss[frame]), 4, { fill: theme.ink });
}

/** From times and losses to pixels. */
function lossMaps(w, h, side, shared, logarithmic) {
  const box = inner(w, h, { top: 20 });
  const axis = timeAxis(shared.horizon, shared.end, box.x, box.x + box.w);
  const first = side.problem?.silent_loss ?? 1;
  const run = side.run;
  let top = first;
  if (run) for (const v of run.loss) if (v > top && v < 50 * first) top = v;
  const logs = run?.arrays.log10_loss;
  const lowest = logs ? Math.max(-16, Math.min(...logs) - 0.3) : -6;
  const y = logarithmic ? scale(lowest, Math.log10(top) + 0.2, box.y + box.h, box.y)
    : scale(0, 1.06 * top, box.y + box.h, box.y);
  const value = (loss) => y(logarithmic ? Math.max(Math.log10(Math.max(loss, 1e-300)), lowest) : loss);
  return { box, axis, y, value, top, lowest };
}

/** The loss: run and predicted staircase. */
export function drawLoss(pen, w, h, side, shared, theme, logarithmic) {
  const { box, axis, y, value, top, lowest } = lossMaps(w, h, side, shared, logarithmic);
  const run = side.run;
  drawAxes(pen, box, theme, {
    x: axis, y, xTicks: timeTicks(axis), xLabel: "time", yLabel: "loss",
    yTicks: logarithmic ? ticks(lowest, Math.log10(top), 5) : ticks(0, top, 5),
    yText: logarithmic ? (v) => `1e${tick(v, 1)}` : null,
  });
  drawTimes(pen, box, axis, side, theme);
  pen.clip(box.x, box.y - 4, box.w, box.h + 8);
  if (side.process) {
    const steps = [[axis(0), value(side.process.losses[0])]];
    side.process.times.forEach((t, i) => {
      steps.push([axis(Math.min(t, axis.end)), value(side.process.losses[i])]);
      steps.push([axis(Math.min(t, axis.end)), value(side.process.losses[i + 1])]);
    });
    steps.push([box.x + box.w, value(side.process.losses[side.process.losses.length - 1])]);
    pen.line(steps, { color: theme.predicted, width: 2, dash: [7, 4],
      alpha: side.process.small ? 1 : 0.4 });
  }
  if (run) {
    const points = Array.from(run.times, (t, i) => [axis(t), value(run.loss[i])]);
    pen.line(points, { color: theme.ink, width: 2, alpha: side.stale ? 0.3 : 1 });
  }
  pen.unclip();
}

/** log10 |w_j| of up to 200 neurons. */
export function drawSizes(pen, w, h, side, shared, theme) {
  const box = inner(w, h, { top: 20 });
  const axis = timeAxis(shared.horizon, shared.end, box.x, box.x + box.w);
  const run = side.run;
  const ln10 = Math.log(10);
  const [low, high] = run ? [run.low / ln10, run.high / ln10]
    : [(side.process?.log_scale ?? -14) / ln10, 1];
  const y = scale(low, high, box.y + box.h, box.y);
  drawAxes(pen, box, theme, {
    x: axis, y, xTicks: timeTicks(axis), yTicks: ticks(low, high, 5), xLabel: "time",
    yLabel: "size |w| of neurons (powers of ten)",
  });
  drawTimes(pen, box, axis, side, theme);
  if (!run) return;
  pen.clip(box.x, box.y, box.w, box.h);
  for (let j = 0; j < run.lines; j += 1) {
    const points = Array.from(run.times, (t, i) => [axis(t), y(run.arrays.sizes[i * run.lines + j] / ln10)]);
    pen.line(points, {
      color: run.about.signs[j] >= 0 ? theme.plus : theme.minus,
      alpha: (side.stale ? 0.4 : 1) * (run.lines > 40 ? 0.3 : 0.8),
    });
  }
  pen.unclip();
}

/** The landscape G on the circle (two features), or the values of its critical points. */
export function drawLandscape(pen, w, h, side, theme) {
  const box = inner(w, h, { top: 20 });
  const found = side.landscape;
  if (!found) return;
  const values = found.circle ?? found.values;
  if (!values.length) return;
  const top = Math.max(0, ...values);
  const bottom = Math.min(0, ...values);
  const room = 0.12 * (top - bottom || 1);
  const y = scale(bottom - room, top + room, box.y + box.h, box.y);
  const circle = Boolean(found.circle);
  const x = circle ? scale(-180, 180, box.x, box.x + box.w)
    : scale(-0.5, found.values.length - 0.5, box.x, box.x + box.w);
  drawAxes(pen, box, theme, {
    x, y, yTicks: ticks(bottom - room, top + room, 5),
    xTicks: circle ? { at: [-180, -90, 0, 90, 180], step: 90 } : { at: [], step: 1 },
    xLabel: circle ? "" : "critical directions, by growth rate", yLabel: circle ? "G(w) against the angle of w" : "G(w) of critical directions",
  });
  pen.line([[box.x, y(0)], [box.x + box.w, y(0)]], { color: theme.line });
  if (circle) {
    const points = found.circle.map((v, i) => [x(-180 + (360 * i) / (found.circle.length - 1)), y(v)]);
    pen.line(points, { color: theme.soft, width: 1.5 });
  }
  found.values.forEach((v, i) => {
    const at = circle ? (180 / Math.PI) * Math.atan2(found.vectors[i][1], found.vectors[i][0]) : i;
    const color = { max: theme.plus, min: theme.minus }[found.kinds[i]] ?? theme.soft;
    if (!circle) pen.line([[x(at), y(0)], [x(at), y(v)]], { color, width: 2 });
    pen.disc(x(at), y(v), 4, { fill: color });
  });
}
