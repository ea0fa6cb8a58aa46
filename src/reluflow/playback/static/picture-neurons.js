// Neurons by direction and size: a disc for two features, a turning sphere for three.

import { number, whole } from "./format.js";
import { Splat } from "./splat.js";

const SMALLEST = -1e29;
const DISCS = 3000; // neurons up to which each is drawn by itself
const FAT = 40_000; // neurons below which each adds to four pixels
const INNER = 0.1; // radius of the smallest neurons, of 1

/** State of one such picture: the raster, and how the sphere is turned. */
export class NeuronView {
  constructor() {
    this.splat = new Splat();
    this.turn = 0.6;
    this.tilt = 0.35;
  }

  /** Two rows that take a direction to the paper, and the one towards the reader. */
  rows(d) {
    if (d !== 3) return [[1, 0, 0], [0, 1, 0], [0, 0, 0]];
    const [c, s] = [Math.cos(this.turn), Math.sin(this.turn)];
    const [p, q] = [Math.cos(this.tilt), Math.sin(this.tilt)];
    return [[c, s, 0], [s * q, -c * q, p], [s * p, -c * p, -q]];
  }
}

/** Number of drawn coordinates of w: 2 on a disc, 3 on a sphere. */
function dimension(side) {
  const d = side.problem?.d ?? 2;
  return d === 3 ? 3 : 2;
}

/**
 * Draw the neurons of a side at a time.
 * @param {any} pen
 * @param {import("./axes.js").Box} box
 */
export function drawNeurons(pen, box, side, time, theme, view) {
  const radius = Math.min(box.w, box.h) / 2 - 34;
  const cx = box.x + box.w / 2;
  const cy = box.y + box.h / 2;
  const d = dimension(side);
  const rows = view.rows(d);
  drawGround(pen, side, theme, d, rows, cx, cy, radius);
  const run = side.run;
  if (run) {
    run.neurons.seek(run.frameAt(time));
    drawPlaces(pen, run, theme, view, rows, cx, cy, radius);
  }
  drawDirections(pen, side, theme, d, rows, cx, cy, radius);
  if (run) drawLegend(pen, box, run, theme);
}

/** The circle or sphere, and where each sample switches neurons on and off. */
function drawGround(pen, side, theme, d, rows, cx, cy, radius) {
  pen.disc(cx, cy, radius, { stroke: theme.line, fill: theme.ground });
  const data = side.problem;
  if (!data?.X || data.d > 3 || data.X.length > 40) {
    if (d === 2) cross(pen, theme, cx, cy, radius);
    return;
  }
  for (const x of data.X) {
    const full = data.bias === null ? x : [...x, data.bias];
    if (d === 2) {
      const size = Math.hypot(full[0], full[1] ?? 0) || 1;
      const [a, b] = [-(full[1] ?? 0) / size, full[0] / size];
      pen.line([[cx - a * radius, cy + b * radius], [cx + a * radius, cy - b * radius]],
        { color: theme.grid });
    } else pen.line(greatCircle(full, rows, cx, cy, radius), { color: theme.line, alpha: 0.6 });
  }
}

function cross(pen, theme, cx, cy, radius) {
  pen.line([[cx - radius, cy], [cx + radius, cy]], { color: theme.grid });
  pen.line([[cx, cy - radius], [cx, cy + radius]], { color: theme.grid });
}

/** The half of a great circle {w: <w, x> = 0} that faces the reader. */
function greatCircle(x, rows, cx, cy, radius) {
  const other = Math.abs(x[0]) < 0.9 * Math.hypot(...x) ? [1, 0, 0] : [0, 1, 0];
  const e = unit(vector(x, other));
  const f = unit(vector(x, e));
  const points = [];
  for (let k = 0; k <= 96; k += 1) {
    const angle = (2 * Math.PI * k) / 96;
    const p = [0, 1, 2].map((i) => Math.cos(angle) * e[i] + Math.sin(angle) * f[i]);
    const front = dot(rows[2], p) >= 0;
    points.push(front ? [cx + radius * dot(rows[0], p), cy - radius * dot(rows[1], p)] : [NaN, NaN]);
  }
  return points;
}

const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
const vector = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
const unit = (a) => a.map((v) => v / (Math.hypot(...a) || 1));

/** Every neuron at its direction; its distance from the middle grows with the log of its size. */
function drawPlaces(pen, run, theme, view, rows, cx, cy, radius) {
  const { u, s, q, m } = run.neurons;
  const k = q - 1;
  const third = k === 3 && run.about.neurons.axes === null;
  const span = run.high - run.low || 1;
  const [r0, r1, r2] = rows;
  const many = m > DISCS;
  const size = many ? Math.max(120, Math.round(2 * radius)) : 0;
  if (many) view.splat.begin(size);
  const { up, down } = view.splat;
  const half = size / 2;
  for (let j = 0; j < m; j += 1) {
    if (s[j] < SMALLEST) continue;
    const o = j * q;
    const x = u[o];
    const y = u[o + 1];
    const z = k === 3 ? u[o + 2] : 0;
    const w = Math.sqrt(x * x + y * y + z * z);
    if (w === 0) continue;
    let rho = (s[j] + Math.log(w) - run.low) / span;
    rho = (INNER + (1 - INNER) * (rho < 0 ? 0 : rho > 1 ? 1 : rho)) / w;
    const px = third ? (r0[0] * x + r0[1] * y + r0[2] * z) * rho : x * rho;
    const py = third ? (r1[0] * x + r1[1] * y + r1[2] * z) * rho : y * rho;
    const back = third && r2[0] * x + r2[1] * y + r2[2] * z < 0;
    const a = u[o + k];
    if (many) {
      const place = ((half - py * (half - 1)) | 0) * size + ((half + px * (half - 1)) | 0);
      const weight = back ? 0.25 : 1;
      const density = a >= 0 ? up : down;
      density[place] += weight;
      if (m < FAT) {
        density[place + 1] += weight;
        density[place + size] += weight;
        density[place + size + 1] += weight;
      }
    } else {
      pen.disc(cx + radius * px, cy - radius * py, 2.6, {
        fill: a >= 0 ? theme.plus : theme.minus, alpha: back ? 0.25 : 0.75,
      });
    }
  }
  if (many) {
    const image = view.splat.end(theme.plusRgb, theme.minusRgb, Math.max(1, m / 4000));
    pen.image(image, cx - radius, cy - radius, 2 * radius, 2 * radius, false);
  }
}

/** Extremal vectors as rays with their growth rates: the prediction. */
function drawDirections(pen, side, theme, d, rows, cx, cy, radius) {
  const found = side.landscape;
  if (!found || (side.problem?.d ?? 9) > 3) return;
  let labels = 0;
  found.vectors.forEach((v, i) => {
    const kind = found.kinds[i];
    if (kind !== "max" && kind !== "min") return;
    const w = [v[0], v[1] ?? 0, v[2] ?? 0];
    const x = d === 3 ? dot(rows[0], w) : w[0];
    const y = d === 3 ? dot(rows[1], w) : w[1];
    const back = d === 3 && dot(rows[2], w) < 0;
    const alpha = back ? 0.35 : 1;
    const from = d === 3 ? 0.98 : 0.86;
    pen.line([[cx + from * radius * x, cy - from * radius * y],
      [cx + 1.06 * radius * x, cy - 1.06 * radius * y]],
    { color: theme.predicted, width: 2.5, alpha });
    pen.disc(cx + 1.06 * radius * x, cy - 1.06 * radius * y, 3, { fill: theme.predicted, alpha });
    if (labels < 6 && !back) {
      labels += 1;
      const count = found.fates?.[i];
      const said = number(found.values[i], 3) + (count ? ` · ${whole(count)}` : "");
      const aside = x > 0.35 ? "left" : x < -0.35 ? "right" : "center";
      pen.text(said, cx + 1.06 * radius * x + (aside === "left" ? 7 : aside === "right" ? -7 : 0),
        cy - 1.06 * radius * y - (aside === "center" ? Math.sign(y || 1) * 11 : 0),
        { color: theme.predicted, size: 11, align: aside });
    }
  });
}

function drawLegend(pen, box, run, theme) {
  const { drawn, neurons } = run.about.neurons;
  const said = drawn < neurons ? `${whole(drawn)} of ${whole(neurons)} neurons drawn`
    : `${whole(neurons)} neurons`;
  pen.text(said, box.x + 4, box.y + box.h - 4, { color: theme.soft, size: 11, base: "bottom" });
  const edge = box.x + box.w - 4;
  pen.text("out: larger", edge, box.y + box.h - 4,
    { color: theme.soft, size: 11, align: "right", base: "bottom" });
  const signs = [["positive output", theme.plus], ["negative output", theme.minus]];
  signs.forEach(([name, fill], i) => {
    const y = box.y + 8 + 16 * i;
    pen.disc(box.x + 7, y, 3.5, { fill });
    pen.text(name, box.x + 15, y, { color: theme.soft, size: 11 });
  });
}
