// The prediction in words: where neurons turn, each jump, how it ends, and how sure that is.

import { h } from "./dom.js";
import { number, whole } from "./format.js";

const MARKS = {
  exact: "a complete enumeration: these are all",
  found: "by a search that may have missed some",
  computed: "the limit of small scales with its constants; accurate up to terms that vanish with the scale",
  estimated: "right at leading order only",
};

/** A small word that says how sure something is. */
export function mark(name) {
  return h("abbr", { class: `rf-mark rf-mark-${name}`, title: MARKS[name] ?? name }, name);
}

/**
 * Sentences and the list of jumps of a side.
 * @param {any} side
 * @param {(time: number) => void} seek
 */
export function predictedWords(side, seek) {
  const found = side.landscape;
  const el = h("div", { class: "rf-words" });
  if (found) el.append(h("p", {}, found.words, " ", mark(found.mark)));
  if (side.whyNot) el.append(h("p", { class: "rf-soft" }, `No jumps are predicted: ${side.whyNot}.`));
  const process = side.process;
  if (!process && found?.first_jump) {
    el.append(h("p", { class: "rf-first" }, `First jump near time ${number(found.first_jump.time, 4)}, to loss near ${number(found.first_jump.loss, 4)} `, mark("estimated")));
  }
  if (!process) return el;
  if (process.jumps.length) {
    const rows = process.jumps.slice(0, 12).map((jump) => h("tr", {},
      h("td", {}, h("button", { type: "button", class: "rf-jump", title: "Go to this time",
        on: { click: () => seek(jump.time) } }, String(jump.jump))),
      h("td", { class: "rf-number", "data-time": String(jump.time) }, (jump.leading ? "≈ " : "") + number(jump.time, 5)),
      h("td", {}, jump.words),
      h("td", { class: "rf-number", "data-loss": String(jump.loss) }, number(jump.loss))));
    const more = process.jumps.length - 12;
    el.append(h("table", {},
      h("thead", {}, h("tr", {}, ...["jump", "time", "what it learns", "loss after"].map((t) => h("th", { scope: "col" }, t)))),
      h("tbody", {}, ...rows)), more > 0 ? h("p", { class: "rf-soft" }, `and ${whole(more)} more`) : "");
  }
  if (process.partial) {
    el.append(h("p", { class: "rf-soft" }, "The jumps after it are being computed…"));
    return el;
  }
  el.append(h("p", {}, process.status, " ", mark(process.mark)));
  if (!process.small) {
    el.append(h("p", { class: "rf-soft" }, "At this size the weights are not small: the limit need not show."));
  }
  if (process.undetermined.length) {
    el.append(h("p", { class: "rf-soft" }, `The limit leaves open: ${process.undetermined.join("; ")}.`));
  }
  return el;
}

/** One line on the run, beside the prediction. */
export function runWords(side) {
  const run = side.run;
  if (!run) return "";
  const process = side.process;
  const end = number(run.about.end_loss);
  const last = process?.losses[process.losses.length - 1];
  const beside = last === undefined ? "" : ` (predicted ${number(last)})`;
  return `Simulated: loss ${end} at time ${number(run.end, 4)}${beside}. ${run.about.status}`;
}
