// A recorded run that plays without a server: the pictures of one side and a clock.

import { Clock } from "./clock.js";
import { readText } from "./codec.js";
import { makeColumn } from "./column.js";
import { h } from "./dom.js";
import { emptySide } from "./link.js";
import { horizonOf } from "./picture-curves.js";
import { Run } from "./run.js";
import { readTheme } from "./theme.js";

/**
 * Draw a recording into an element.
 * @param {{model: {get: (name: string) => any}, el: HTMLElement}} host
 */
function render({ model, el }) {
  const { message, arrays } = readText(model.get("recording"));
  const root = h("div", { class: "rf-studio rf-inset" });
  el.append(root);
  const side = emptySide("A");
  Object.assign(side, { problem: message.problem, landscape: message.landscape, process: message.process });
  side.run = new Run(message.run, arrays);
  let colours = readTheme(root);
  const clock = new Clock(() => [side.run], () => column?.drawTime(), () => undefined);
  const column = makeColumn(side, {
    theme: () => colours, time: () => clock.time, shared: () => horizonOf([side]), edit: null, most: 0,
    seek: () => undefined, settings: () => ({ start: { m: 1, scale: 1, log_scale: null } }),
  });
  root.append(column.el, clock.el);
  colours = readTheme(root);
  clock.renew();
  column.show(false);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    colours = readTheme(root);
    column.draw();
  });
}

export default { render };
