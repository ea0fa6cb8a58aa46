// The bar above: progress and cancel, comparison, files, link, light and dark, help.

import { fill, h } from "./dom.js";
import { saveFile } from "./picture.js";
import { COMPARISONS } from "./settings.js";

const FILES = [["nc", "Run (.nc)"], ["csv", "Curves (.csv)"], ["html", "Report (.html)"], ["py", "Python (.py)"]];
const KEYS = [["Space", "play or pause"], ["Home, End", "first and last frame"], [", .", "one frame back or on"],
  ["Esc", "cancel"], ["[ ]", "choose a point (data in focus)"], ["arrows", "move the point, turn the sphere"],
  ["a, Delete, l", "add, delete, flip the label"]];

/** @param {any} app the studio */
export function toolBar(app) {
  const label = h("span", { class: "rf-note" });
  const bar = h("progress", { max: "1", value: "0", "aria-label": "Progress" });
  const cancel = h("button", { type: "button", on: { click: () => app.link.cancel() } }, "Cancel");
  const work = h("div", { class: "rf-work", role: "status" }, bar, label, cancel);
  const notice = h("p", { class: "rf-refused rf-notice", role: "alert", hidden: true });
  const compare = h("select", { "aria-label": "Compare with", on: { change: () => {
    const chosen = COMPARISONS[Number(compare.value)];
    app.compare(chosen ? chosen.b : null);
  } } }, h("option", { value: "-1" }, "One setting"),
  ...COMPARISONS.map((c, i) => h("option", { value: String(i) }, `A | B: ${c.name}`)),
  h("option", { value: "own", hidden: true }, "A | B"));
  const files = menu("Export", FILES.map(([kind, text]) => h("button", { type: "button", role: "menuitem",
    "data-file": kind, on: { click: () => app.link.ask("export", "A", { kind }) } }, text)));
  const share = h("button", { type: "button", on: { click: async () => {
    const said = await app.model.share?.();
    share.textContent = said ?? "No link here";
    setTimeout(() => { share.textContent = "Copy link"; }, 1800);
  } } }, "Copy link");
  const look = h("button", { type: "button", "aria-label": "Light or dark", title: "Light or dark", on: { click: () => {
    const order = { "": "dark", dark: "light", light: "" };
    app.root.dataset.look = order[app.root.dataset.look ?? ""];
    app.recolour();
  } } }, "◐");
  const help = menu("Keys", [h("dl", { class: "rf-keys" }, ...KEYS.flatMap(([key, said]) => [h("dt", {}, key), h("dd", {}, said)]))]);
  const el = h("header", { class: "rf-bar" }, h("h1", {}, "reluflow ", h("span", {}, "studio")), work,
    h("div", { class: "rf-tools" }, compare, files, share, help, look));

  const busy = () => {
    const { engine, jobs, progress } = app.link;
    const long = [...jobs.values()].find((job) => job.type !== "predict" || performance.now() - job.began > 700);
    const said = !engine.ready ? `compiling: ${engine.note}` : progress ? progress.note : long ? long.type : "";
    work.classList.toggle("rf-idle", !said);
    label.textContent = said;
    cancel.hidden = !engine.ready;
    const share = !engine.ready ? engine.share : progress?.share;
    if (share === undefined) bar.removeAttribute("value");
    else bar.value = share;
    if (jobs.size && !said) setTimeout(busy, 400);
  };
  busy();
  return {
    el, notice, busy,
    say: (text) => { [notice.hidden, notice.textContent] = [!text, text]; },
    keep: (message, content) => saveFile(message.name, content.slice(), message.media),
    show: () => {
      const { b } = app.link.state;
      const known = COMPARISONS.findIndex((c) => JSON.stringify(c.b) === JSON.stringify(b));
      compare.value = b ? (known >= 0 ? String(known) : "own") : "-1";
    },
  };
}

function menu(name, items) {
  const list = h("div", { class: "rf-menu" });
  fill(list, ...items);
  const made = h("details", { class: "rf-drop" }, h("summary", {}, name), list);
  made.addEventListener("keydown", (event) => { if (event.key === "Escape") made.open = false; });
  made.addEventListener("focusout", (event) => {
    if (event.relatedTarget && !made.contains(event.relatedTarget)) made.open = false;
  });
  return made;
}
