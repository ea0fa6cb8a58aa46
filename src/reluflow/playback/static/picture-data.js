// The data with what the network makes of them: f on a line, regions in the plane.

import { drawAxes, inner, scale, ticks } from "./axes.js";

/**
 * Where things are: the maps from features and labels to pixels.
 * @returns {{box: any, x: any, y: any}}
 */
export function dataMaps(w, h, side) {
  const data = side.problem;
  if (data.kind === "line") {
    const box = inner(w, h, { top: 20 });
    const labels = data.y;
    let [low, high] = [Math.min(0, ...labels), Math.max(0, ...labels)];
    const room = 0.35 * (high - low || 1);
    [low, high] = side.frozen?.labels ?? [low - room, high + room];
    const [x0, x1] = side.frozen?.extent ?? data.extent;
    return {
      box, x: scale(x0, x1, box.x, box.x + box.w), y: scale(low, high, box.y + box.h, box.y),
      range: [low, high],
    };
  }
  const box = inner(w, h, { left: 34, right: 10, top: 10, bottom: 36 });
  const side_ = Math.min(box.w, box.h);
  const square = { x: box.x + (box.w - side_) / 2, y: box.y, w: side_, h: side_ };
  let [x0, x1, y0, y1] = side.frozen?.extent ?? (data.extent.length === 4 ? data.extent : drawnExtent(data));
  return {
    box: square, x: scale(x0, x1, square.x, square.x + square.w),
    y: scale(y0, y1, square.y + square.h, square.y), range: null,
  };
}

/** Of data with more features, in the two directions that carry most of the prediction. */
function drawnExtent(data) {
  const rows = data.drawn ?? data.X ?? [];
  let reach = 1e-9;
  for (const row of rows) reach = Math.max(reach, Math.abs(row[0]), Math.abs(row[1] ?? 0));
  reach *= 1.25;
  return [-reach, reach, -reach, reach];
}

/** Place of each sample on the paper. */
export function places(maps, data) {
  if (data.kind === "line") return data.X.map((x, k) => [maps.x(x[0]), maps.y(data.y[k])]);
  const rows = data.drawn ?? data.X ?? [];
  return rows.map((row) => [maps.x(row[0]), maps.y(row[1] ?? 0)]);
}

/** Draw data, f at the present time and what is predicted. */
export function drawData(pen, w, h, side, time, theme, selected) {
  const data = side.problem;
  if (!data) return;
  const maps = dataMaps(w, h, side);
  const { box, x, y } = maps;
  const frame = side.run && !side.frozen ? side.run.frameAt(time) : null;
  if (data.kind === "plane" && side.run && !side.frozen) drawField(pen, box, side, frame, theme);
  const [x0, x1] = [x.back(box.x), x.back(box.x + box.w)];
  const [y0, y1] = [y.back(box.y + box.h), y.back(box.y)];
  const names = data.features ?? [];
  drawAxes(pen, box, theme, {
    x, y, xTicks: ticks(x0, x1, 6), yTicks: ticks(y0, y1, 5),
    xLabel: "", yLabel: data.kind === "line" ? (names[0] ? `f against ${names[0]}` : "label y and f(x)") : "",
  });
  pen.clip(box.x, box.y, box.w, box.h);
  if (data.kind === "line") drawFunctions(pen, maps, side, time, frame, theme);
  else if (data.kind === "plane") drawKinks(pen, maps, side, theme);
  pen.unclip();
  drawPoints(pen, maps, data, theme, selected);
  if (data.kind === "many") {
    pen.text("in the two directions that carry most of the prediction", box.x + box.w / 2, box.y + box.h + 19,
      { color: theme.soft, size: 11, align: "center", base: "top" });
  }
}

function drawFunctions(pen, maps, side, time, frame, theme) {
  const { box, x, y } = maps;
  const curve = (values) => Array.from(values, (v, i) => [
    side.frozen ? x(side.problem.extent[0] + (i * (side.problem.extent[1] - side.problem.extent[0])) / (values.length - 1))
      : box.x + (i * box.w) / (values.length - 1), y(v)]);
  const process = side.process;
  if (process?.plateaus) {
    const last = process.plateaus.length - 1;
    process.plateaus.forEach((values, i) => {
      pen.line(curve(values), { color: theme.predicted, width: i === last ? 2 : 1, dash: [7, 4],
        alpha: (i === last ? 1 : 0.35) * (process.small ? 1 : 0.4) });
    });
  }
  if (frame !== null) pen.line(curve(side.run.fieldAt(frame)), { color: theme.ink, width: 2.5, alpha: side.stale ? 0.3 : 1 });
}

const raster = typeof document === "undefined" ? null : document.createElement("canvas");

/** f in the plane: its sign for two classes, its value otherwise. */
function drawField(pen, box, side, frame, theme) {
  const values = side.run.fieldAt(frame);
  const n = side.run.about.field.side;
  if (raster.width !== n) [raster.width, raster.height] = [n, n];
  const c = raster.getContext("2d");
  const image = c.createImageData(n, n);
  const margin = side.problem.margin;
  const full = margin ? 1 : Math.max(1e-12, ...side.problem.y.map(Math.abs));
  for (let row = 0; row < n; row += 1) {
    for (let column = 0; column < n; column += 1) {
      const v = values[row * n + column];
      const colour = v >= 0 ? theme.plusRgb : theme.minusRgb;
      const k = 4 * ((n - 1 - row) * n + column);
      image.data[k] = colour[0];
      image.data[k + 1] = colour[1];
      image.data[k + 2] = colour[2];
      const strength = margin ? 0.12 * (v !== 0) + 0.26 * Math.tanh(2 * Math.abs(v))
        : 0.45 * Math.min(1, Math.abs(v) / full);
      image.data[k + 3] = 255 * strength * (side.stale ? 0.4 : 1);
    }
  }
  c.putImageData(image, 0, 0);
  pen.image(raster, box.x, box.y, box.w, box.h, true);
}

/** Predicted directions as the lines at which such neurons switch on, with the side they are on. */
function drawKinks(pen, maps, side, theme) {
  const found = side.landscape;
  if (!found) return;
  const { box, x, y } = maps;
  const bias = side.problem.bias ?? 0;
  const reach = 2 * Math.abs(x.back(box.x + box.w) - x.back(box.x));
  let count = 0;
  found.vectors.forEach((v, i) => {
    if (!["max", "min"].includes(found.kinds[i]) || count >= 8) return;
    count += 1;
    const size = Math.hypot(v[0], v[1]);
    if (size < 1e-9) return;
    const n = [v[0] / size, v[1] / size];
    const at = [(-(v[2] ?? 0) * bias * n[0]) / size, (-(v[2] ?? 0) * bias * n[1]) / size];
    const ends = [-reach, reach].map((s) => [x(at[0] - s * n[1]), y(at[1] + s * n[0])]);
    pen.line(ends, { color: theme.predicted, dash: [7, 4], alpha: 0.55 });
    const arrow = 0.06 * reach;
    pen.line([[x(at[0]), y(at[1])], [x(at[0] + arrow * n[0]), y(at[1] + arrow * n[1])]],
      { color: theme.predicted, width: 2 });
  });
}

function drawPoints(pen, maps, data, theme, selected) {
  const at = places(maps, data);
  const many = at.length > 120;
  at.forEach(([px, py], k) => {
    const up = data.y[k] > 0;
    const color = data.kind === "line" ? theme.ink : up ? theme.plus : theme.minus;
    const r = many ? 3 : 6;
    if (k === selected) pen.disc(px, py, r + 5, { stroke: theme.accent, width: 2.5 });
    pen.disc(px, py, r, { fill: data.kind === "line" ? theme.point : color, stroke: theme.paper, width: 1.5 });
    if (!data.margin && data.kind === "plane" && at.length <= 30) {
      pen.text(String(+data.y[k].toPrecision(3)), px + 9, py - 9, { color: theme.ink, size: 11 });
    }
  });
}
