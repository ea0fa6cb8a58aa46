// The start and the loss: width, scale, law, signs, seed; loss, leak, bias.

import { field, h } from "./dom.js";
import { SCALES, scaleIndex, scaleLabel, whole } from "./format.js";

const LOSSES = [["", "as the data say"], ["half_square", "half square"], ["square", "square"],
  ["logistic", "logistic"], ["exponential", "exponential"]];

/** Widths of the slider. */
const WIDTHS = [1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 50, 100, 200, 500, 1000, 2000, 5000, 10_000,
  20_000, 50_000, 100_000, 200_000];

function nearest(list, value) {
  let best = 0;
  list.forEach((v, i) => {
    if (Math.abs(Math.log(v / value)) < Math.abs(Math.log(list[best] / value))) best = i;
  });
  return best;
}

/**
 * @param {{change: (patch: any, live?: boolean) => void, state: () => any, welcome: any}} app
 */
export function startPanel(app) {
  const slider = (max) => h("input", { type: "range", min: "0", max: String(max), step: "1" });
  const option = ([value, text]) => h("option", { value }, text);
  const width = slider(WIDTHS.length - 1);
  const exact = h("input", { type: "number", min: "1", max: String(app.welcome.limits.neurons), "aria-label": "Neurons" });
  const size = slider(SCALES.length - 1);
  const sizeSaid = h("output", { class: "rf-value" });
  const law = h("select", {}, ...app.welcome.kinds.map((k) => option([k, k.replace("_", " ")])));
  const signs = h("select", {}, ...[["random", "random"], ["+1", "all +"], ["-1", "all −"]].map(option));
  const seed = h("input", { type: "number", min: "0", step: "1" });
  const loss = h("select", {}, ...LOSSES.map(option));
  const leak = h("input", { type: "range", min: "0", max: "0.9", step: "0.01" });
  const leakSaid = h("output", { class: "rf-value" });
  const bias = h("input", { type: "checkbox" });

  const start = (patch, live) => app.change({ start: patch }, live);
  const on = (input, live, done) => {
    input.addEventListener("input", live);
    input.addEventListener("change", done ?? live);
  };
  on(width, () => { exact.value = String(WIDTHS[width.value]); },
    () => start({ m: WIDTHS[width.value] }));
  exact.addEventListener("change", () => start({ m: Number(exact.value) }));
  const scaleOf = () => ({ scale: SCALES[size.value].scale, log_scale: SCALES[size.value].log_scale });
  on(size, () => start(scaleOf(), true), () => start(scaleOf()));
  law.addEventListener("change", () => start({ kind: law.value }));
  signs.addEventListener("change", () => start({ signs: signs.value }));
  seed.addEventListener("change", () => start({ seed: Number(seed.value) }));
  loss.addEventListener("change", () => app.change({ loss: loss.value || null }));
  on(leak, () => app.change({ leak: Number(leak.value) }, true), () => app.change({ leak: Number(leak.value) }));
  bias.addEventListener("change", () => app.change({ bias: bias.checked ? 1 : 0 }));

  const pair = (...parts) => h("div", { class: "rf-pair" }, ...parts);
  const el = h("section", { class: "rf-panel", "aria-label": "Start and loss" }, h("h2", {}, "Start"),
    field("Neurons", width, "start.m"), exact,
    field("Scale of the weights", size, "start.scale"), sizeSaid,
    pair(field("Law", law, "start.kind"), field("Output signs", signs, "start.signs")),
    pair(field("Seed", seed, "start.seed"), field("Loss", loss, "loss")),
    field("Leak", leak, "leak"), leakSaid,
    h("label", { class: "rf-check" }, bias, "bias (a constant feature)"));

  const show = (problem) => {
    const a = app.state().a;
    width.value = String(nearest(WIDTHS, a.start.m));
    width.setAttribute("aria-valuetext", `${whole(a.start.m)} neurons`);
    if (document.activeElement !== exact) exact.value = String(a.start.m);
    size.value = String(scaleIndex(a.start));
    sizeSaid.textContent = scaleLabel(a.start);
    size.setAttribute("aria-valuetext", scaleLabel(a.start));
    law.value = a.start.kind;
    signs.value = a.start.signs;
    seed.value = String(a.start.seed);
    loss.value = a.loss ?? "";
    loss.options[0].textContent = problem && !a.loss ? problem.loss.replace("_", " ") : "as the data say";
    leak.value = String(a.leak ?? problem?.leak ?? 0);
    leakSaid.textContent = String(a.leak ?? problem?.leak ?? 0);
    bias.checked = a.bias === null ? problem?.bias !== null && problem !== null : a.bias !== 0;
  };
  return { el, show };
}
