// The pictures of one side: data, neurons, loss, sizes, landscape.

import { Editor } from "./editor.js";
import { fill, h } from "./dom.js";
import { number, scaleLabel, whole } from "./format.js";
import { predictedWords, runWords } from "./panel-words.js";
import { drawLandscape, drawLoss, drawLossNow, drawNow, drawSizes } from "./picture-curves.js";
import { drawData } from "./picture-data.js";
import { NeuronView, drawNeurons } from "./picture-neurons.js";
import { Picture } from "./picture.js";

/**
 * @param {any} side
 * @param {{theme: () => any, time: () => number, shared: () => any, edit: Function|null,
 *   seek: (time: number) => void, most: number, settings: () => any}} app
 */
export function makeColumn(side, app) {
  const view = new NeuronView();
  let logarithmic = false;
  const toggle = h("button", { type: "button", class: "rf-quiet", "aria-pressed": "false", on: { click: () => {
    logarithmic = !logarithmic;
    toggle.setAttribute("aria-pressed", String(logarithmic));
    pictures.loss.redraw();
  } } }, "log");
  const make = (name, title, draw, describe, ratio, more = {}) =>
    new Picture({ name, title, draw, describe, ratio, theme: app.theme, ...more });
  let editor = null;
  const pictures = {
    data: make("data", "Data and function", (pen, w, hgt) =>
      drawData(pen, w, hgt, side, app.time(), app.theme(), editor ? editor.selected : -1),
    () => describeData(side, Boolean(app.edit)), 0.74),
    neurons: make("neurons", "Neurons", (pen, w, hgt) =>
      drawNeurons(pen, { x: 0, y: 0, w, h: hgt }, side, app.time(), app.theme(), view),
    () => describeNeurons(side), 0.74),
    loss: make("loss", "Loss", (pen, w, hgt) =>
      drawLoss(pen, w, hgt, side, app.shared(), app.theme(), logarithmic),
    () => runWords(side) || "loss: no run yet", 0.5, { extra: toggle, over: (pen, w, hgt) =>
      drawLossNow(pen, w, hgt, side, app.shared(), app.time(), app.theme(), logarithmic) }),
    sizes: make("sizes", "Sizes of neurons", (pen, w, hgt) =>
      drawSizes(pen, w, hgt, side, app.shared(), app.theme()),
    () => "sizes of neurons against time", 0.5, { over: (pen, w, hgt) =>
      drawNow(pen, w, hgt, side, app.shared(), app.time(), app.theme()) }),
    landscape: make("landscape", "Landscape", (pen, w, hgt) => drawLandscape(pen, w, hgt, side, app.theme()),
      () => side.landscape?.words ?? "landscape", 0.4),
  };
  turnable(pictures.neurons, view, side);
  if (app.edit) editor = new Editor(pictures.data, side, app.edit, app.most);
  if (editor) pictures.data.el.append(editor.el);
  const full = Boolean(app.edit);
  const words = h("div", { class: "rf-predicted" });
  const run = h("p", { class: "rf-run", "aria-live": "polite" });
  const title = h("h2", { class: "rf-side" });
  const el = h("div", { class: `rf-column rf-column-${side.name}` }, title,
    h("div", { class: "rf-grid" }, pictures.data.el, pictures.neurons.el, pictures.loss.el, pictures.sizes.el),
    full ? h("div", { class: "rf-grid" }, h("section", { class: "rf-panel", "aria-label": "Predicted" },
      h("h2", {}, "Predicted without training"), words, run), pictures.landscape.el) : null);
  const draw = () => Object.values(pictures).forEach((p) => p.redraw());
  return {
    el, pictures, view, draw,
    /** Draw what changes with time, now. */
    drawTime: () => ["data", "neurons", "loss", "sizes"].forEach((name) => pictures[name].tick()),
    show: (both) => {
      title.hidden = !both;
      title.textContent = `${side.name}: ${startWords(app.settings())}`;
      if (full) fill(words, predictedWords(side, app.seek));
      run.textContent = runWords(side);
      run.dataset.loss = String(side.run?.about.end_loss ?? "");
      pictures.neurons.heading.textContent = side.problem?.d === 3 ? "Neurons (drag to turn)" : "Neurons";
      editor?.show();
      draw();
    },
    close: () => Object.values(pictures).forEach((p) => p.close()),
  };
}

function startWords(settings) {
  const s = settings.start;
  const leak = settings.leak ? `, leak ${settings.leak}` : "";
  return `${whole(s.m)} neurons, scale ${scaleLabel(s)}${leak}`;
}

function describeData(side, editable) {
  const data = side.problem;
  if (!data) return "data";
  const keys = editable ? " Brackets choose a point, arrows move it, a adds, Delete removes, l flips its label." : "";
  return `${data.n} samples of ${data.free} features, ${data.loss} loss, and the function of the network.${keys}`;
}

function describeNeurons(side) {
  const found = side.landscape;
  if (!found) return "neurons";
  const values = found.values.filter((_, i) => ["max", "min"].includes(found.kinds[i]));
  return `Neurons by direction and size; predicted directions grow at rates ${values.slice(0, 6).map((v) => number(v, 3)).join(", ")}.`;
}

/** Turn the sphere by dragging or with arrow keys. */
function turnable(picture, view, side) {
  const canvas = picture.canvas;
  let from = null;
  const turn = (dx, dy) => {
    view.turn += dx;
    view.tilt = Math.max(-1.5, Math.min(1.5, view.tilt + dy));
    picture.redraw();
  };
  canvas.tabIndex = 0;
  canvas.addEventListener("pointerdown", (event) => {
    if (side.problem?.d !== 3) return;
    from = [event.clientX, event.clientY];
    view.held = true;
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!from) return;
    turn((event.clientX - from[0]) * 0.01, (event.clientY - from[1]) * 0.01);
    from = [event.clientX, event.clientY];
  });
  canvas.addEventListener("pointerup", () => { from = null; });
  canvas.addEventListener("keydown", (event) => {
    const steps = { ArrowLeft: [-0.1, 0], ArrowRight: [0.1, 0], ArrowUp: [0, 0.1], ArrowDown: [0, -0.1] };
    if (side.problem?.d !== 3 || !steps[event.key]) return;
    view.held = true;
    turn(...steps[event.key]);
    event.preventDefault();
    event.stopPropagation();
  });
}
