// From numbers to pixels: axes, ticks, and the axis of time.

import { tick } from "./format.js";

/**
 * @typedef {{x: number, y: number, w: number, h: number}} Box
 */

/** About `count` round numbers between two. */
export function ticks(low, high, count) {
  const span = high - low;
  if (!(span > 0)) return { at: [low], step: 1 };
  const raw = span / count;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((s) => s * power).find((s) => s >= raw * 0.999) ?? 10 * power;
  const at = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k += 1) at.push(k * step);
  return { at, step };
}

/** The part of a picture inside its labels. */
export function inner(width, height, { left = 46, right = 12, top = 10, bottom = 34 } = {}) {
  return { x: left, y: top, w: Math.max(width - left - right, 10), h: Math.max(height - top - bottom, 10) };
}

/** Linear map from numbers to pixels. */
export function scale(low, high, from, to) {
  const factor = (to - from) / (high - low || 1);
  const map = (v) => from + (v - low) * factor;
  map.back = (pixel) => low + (pixel - from) / factor;
  return map;
}

/**
 * Time as it is drawn: linear to the horizon, logarithmic in a strip beyond it.
 * @param {number} horizon
 * @param {number} end
 */
export function timeAxis(horizon, end, from, to) {
  const tail = end > 1.05 * horizon;
  const knee = tail ? from + 0.86 * (to - from) : to;
  const map = (t) => {
    if (t <= horizon || !tail) return from + (t / horizon) * (knee - from);
    return knee + (Math.log(t / horizon) / Math.log(end / horizon)) * (to - knee);
  };
  map.knee = tail ? knee : null;
  map.horizon = horizon;
  map.end = end;
  return map;
}

/** Lines and numbers of both axes. */
export function drawAxes(pen, box, theme, { x, y, xTicks, yTicks, xLabel, yLabel, yText }) {
  for (const v of yTicks.at) {
    const at = y(v);
    pen.line([[box.x, at], [box.x + box.w, at]], { color: theme.grid });
    pen.text(yText ? yText(v) : tick(v, yTicks.step), box.x - 6, at, {
      color: theme.soft, size: 11, align: "right",
    });
  }
  for (const v of xTicks.at) {
    pen.text(tick(v, xTicks.step), x(v), box.y + box.h + 6, {
      color: theme.soft, size: 11, align: "center", base: "top",
    });
  }
  pen.line([[box.x, box.y + box.h], [box.x + box.w, box.y + box.h]], { color: theme.line });
  if (xLabel) {
    pen.text(xLabel, box.x + box.w, box.y + box.h + 20, {
      color: theme.soft, size: 11, align: "right", base: "top",
    });
  }
  if (yLabel) pen.text(yLabel, box.x, box.y - 2, { color: theme.soft, size: 11, base: "bottom" });
}
