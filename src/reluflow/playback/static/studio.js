// The studio: written against anywidget's interface, so that it lives in a page, a notebook, a file.

import { answerPanel } from "./panel-answer.js";
import { Clock } from "./clock.js";
import { makeColumn } from "./column.js";
import { fill, h } from "./dom.js";
import { Link } from "./link.js";
import { dataPanel } from "./panel-data.js";
import { startPanel } from "./panel-start.js";
import { horizonOf } from "./picture-curves.js";
import { readTheme } from "./theme.js";
import { completeState, settingsOf } from "./settings.js";
import { toolBar } from "./tools.js";

const TURNING = 0.004; // of a sphere, a frame

/**
 * Draw the studio into an element.
 * @param {{model: any, el: HTMLElement}} host
 */
function render({ model, el }) {
  const root = h("div", { class: "rf-studio" });
  el.append(root);
  const app = new App(model, root);
  model.send({ type: "hello" });
  return () => app.close();
}

class App {
  constructor(model, root) {
    this.model = model;
    this.root = root;
    this.link = new Link(model, completeState(model.get("state")));
    this.colours = readTheme(root);
    this.columns = {};
    this.welcome = null;
    this.clock = new Clock(() => this.runs(), () => this.tick(), () => this.simulate());
    this.wire();
    fill(root, h("p", { class: "rf-soft" }, "Connecting…"));
  }

  /** Listen to the link, the model and the window. */
  wire() {
    const { link } = this;
    link.on("welcome", (message) => this.begin(message));
    link.on("change", (what) => this.changed(what));
    link.on("busy", () => {
      this.tools?.busy();
      if (this.tools) this.offer();
    });
    link.on("engine", () => this.tools?.busy());
    link.on("refused", (message) => this.refuse(message));
    link.on("file", (message, content) => this.tools?.keep(message, content));
    this.model.on("change:state", () => this.adopt(this.model.get("state")));
    this.dark = matchMedia("(prefers-color-scheme: dark)");
    this.recolour = () => {
      this.colours = readTheme(this.root);
      for (const column of Object.values(this.columns)) column.draw();
    };
    this.dark.addEventListener("change", this.recolour);
    this.keys = (event) => this.key(event);
    this.root.addEventListener("keydown", this.keys);
    document.addEventListener("keydown", this.keys);
    this.turning = requestAnimationFrame(() => this.turn());
  }

  close() {
    this.closed = true;
    cancelAnimationFrame(this.turning);
    this.clock.pause();
    this.dark.removeEventListener("change", this.recolour);
    document.removeEventListener("keydown", this.keys);
    for (const column of Object.values(this.columns)) column.close();
  }

  /** The host has said what there is: build the page. */
  begin(message) {
    this.welcome = message;
    if (message.data && !this.model.get("given")) this.link.state = completeState(JSON.parse(message.data));
    const panel = {
      welcome: message, state: () => this.link.state, change: (patch, live) => this.change(patch, live),
      refuse: (said) => this.refuse(said), blob: (bytes) => { this.link.blob = bytes; },
    };
    this.data = dataPanel(panel);
    this.start = startPanel(panel);
    this.answer = answerPanel({
      ask: () => this.explain(), glossary: message.glossary, point: (name) => this.point(name),
    });
    this.tools = toolBar(this);
    for (const name of ["A", "B"]) this.columns[name] = this.makeColumn(name);
    const pictures = h("div", { class: "rf-pictures" }, this.columns.A.el, this.columns.B.el);
    fill(this.root, this.tools.el, h("div", { class: "rf-body" },
      h("aside", { class: "rf-aside" }, this.data.el, this.start.el),
      h("div", { class: "rf-main-part" }, this.tools.notice, pictures, this.answer.el)), this.clock.el);
    this.colours = readTheme(this.root);
    this.show();
    this.link.predict(true);
  }

  makeColumn(name) {
    return makeColumn(this.link.sides[name], {
      theme: () => this.colours, time: () => this.clock.time,
      shared: () => horizonOf(this.link.shown.map((n) => this.link.sides[n])),
      edit: (rows, live) => this.edit(rows, live, name), most: this.welcome.limits.points,
      seek: (time) => this.seek(time), settings: () => settingsOf(this.link.state, name),
    });
  }

  // ------------------------------------------------------------------ changes
  /** Change settings of side A (side B follows); live while something is dragged. */
  change(patch, live = false) {
    const { a, b } = this.link.state;
    const { start, ...rest } = patch;
    this.link.state = { a: { ...a, ...rest, start: { ...a.start, ...(start ?? {}) } }, b };
    this.save(live);
    this.show();
    this.link.predict(!live);
  }

  /** Points were moved: they are data of their own from now on, with the loss they had. */
  edit(rows, live, name) {
    const data = this.link.sides[name].problem;
    const { a } = this.link.state;
    const loss = a.loss ?? data.loss;
    this.change({
      data: { source: "points", rows }, loss, leak: a.leak ?? data.leak,
      bias: a.bias ?? data.bias ?? 0,
    }, live);
  }

  /** Settings of side B: what differs from A, or null. */
  compare(b) {
    this.link.state = { ...this.link.state, b };
    Object.assign(this.link.sides.B, { run: null, process: null, landscape: null });
    this.save(false);
    this.show();
    this.clock.renew();
    this.link.predict(true);
  }

  save(live) {
    this.model.set("live", live);
    this.model.set("state", this.link.state);
    this.model.save_changes();
  }

  /** Take settings from outside: back and forward, or Python. */
  adopt(state) {
    const given = completeState(state);
    if (JSON.stringify(given) === JSON.stringify(this.link.state)) return;
    this.link.state = given;
    if (!this.welcome) return;
    this.show();
    this.link.predict(true);
  }

  // ------------------------------------------------------------------ what came
  changed(what) {
    if (what === "run") this.clock.renew();
    if (what === "answer" || what === "sentence") this.answer.show(this.link.sides.A);
    this.show();
  }

  refuse(message) {
    for (const row of this.root.querySelectorAll(".rf-field")) {
      const said = row.querySelector(".rf-refused");
      const here = message && row.dataset.field && matches(row.dataset.field, message.field);
      if (said) [said.hidden, said.textContent] = [!here, here ? message.sentence : ""];
      if (here) row.closest("details")?.setAttribute("open", "");
    }
    const placed = message && [...this.root.querySelectorAll(".rf-field")].some((row) =>
      row.dataset.field && matches(row.dataset.field, message.field));
    this.tools?.say(message && !placed ? message.sentence : "");
  }

  runs() {
    return this.link.shown.map((name) => this.link.sides[name].run).filter(Boolean);
  }

  // ------------------------------------------------------------------ deeds
  simulate() {
    for (const name of this.link.shown) this.link.simulate(name);
    this.offer();
  }

  /** A button for runs that do not start by themselves. */
  offer() {
    const sides = this.link.shown.map((name) => this.link.sides[name]);
    this.clock.offer(sides.some((side) => side.problem && (!side.run || side.stale)) && !this.link.jobs.size);
  }

  explain() {
    Object.assign(this.link.sides.A, { answer: null, sentences: [] });
    this.answer.show(this.link.sides.A);
    this.link.ask("explain", "A");
  }

  seek(time) {
    const { times } = this.clock;
    let at = 0;
    while (at + 1 < times.length && times[at + 1] <= time) at += 1;
    this.clock.pause();
    this.clock.seek(at);
  }

  /** Show a picture that a sentence speaks of. */
  point(name) {
    const picture = this.columns.A.pictures[name];
    picture?.el.scrollIntoView({ block: "center", behavior: "smooth" });
    picture?.el.classList.add("rf-lit");
    setTimeout(() => picture?.el.classList.remove("rf-lit"), 1500);
  }

  // ------------------------------------------------------------------ drawing
  show() {
    if (!this.tools) return;
    const both = Boolean(this.link.state.b);
    this.root.classList.toggle("rf-both", both);
    this.columns.B.el.hidden = !both;
    this.data.show(this.link.sides.A.problem);
    this.start.show(this.link.sides.A.problem);
    for (const name of this.link.shown) this.columns[name].show(both);
    this.tools.show();
    this.offer();
  }

  tick() {
    for (const name of this.link.shown) this.columns[name]?.drawTime();
  }

  /** A sphere turns slowly until a hand turns it. */
  turn() {
    if (this.closed) return;
    for (const name of this.link.shown) {
      const column = this.columns[name];
      if (this.link.sides[name].problem?.d === 3 && column && !column.view.held && !this.still) {
        column.view.turn += TURNING;
        column.pictures.neurons.redraw();
      }
    }
    this.turning = requestAnimationFrame(() => this.turn());
  }

  key(event) {
    if (event.defaultPrevented || event.repeat || event.ctrlKey || event.metaKey || event.altKey) return;
    const inside = event.target instanceof Element && event.target.closest("input,select,textarea,button,summary");
    if (inside) return;
    if (event.target !== document.body && !this.root.contains(event.target)) return;
    const deeds = { " ": () => this.clock.toggle(), Home: () => this.clock.seek(0),
      End: () => this.clock.seek(this.clock.last), Escape: () => this.link.cancel(),
      ",": () => this.clock.seek(this.clock.at - 1), ".": () => this.clock.seek(this.clock.at + 1) };
    if (!deeds[event.key]) return;
    event.preventDefault();
    deeds[event.key]();
  }
}

function matches(place, field) {
  return field === place || field.startsWith(`${place}.`) || (place === "data.text" && field.startsWith("data."));
}

export default { render };
