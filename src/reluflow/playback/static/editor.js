// Points that can be moved, added, deleted and labelled, by pointer and by keyboard.

import { h } from "./dom.js";
import { dataMaps, places } from "./picture-data.js";

const NEAR = 16; // pixels within which a pointer means a point

/** The rows (features, then label) of the data that a side shows, if they can be edited. */
export function editableRows(side, most) {
  const data = side.problem;
  if (!data?.X || !["line", "plane"].includes(data.kind) || data.n > most) return null;
  return data.X.map((x, k) => [...x, data.y[k]]);
}

export class Editor {
  /**
   * @param {any} picture the picture of the data
   * @param {any} side
   * @param {(rows: number[][], live: boolean) => void} change
   * @param {number} most points
   */
  constructor(picture, side, change, most) {
    this.picture = picture;
    this.side = side;
    this.change = change;
    this.most = most;
    this.selected = -1;
    this.dragging = false;
    const canvas = picture.canvas;
    canvas.tabIndex = 0;
    canvas.setAttribute("role", "application");
    canvas.addEventListener("pointerdown", (event) => this.press(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    canvas.addEventListener("pointerup", () => this.release());
    canvas.addEventListener("pointercancel", () => this.release());
    canvas.addEventListener("dblclick", (event) => this.add(event));
    canvas.addEventListener("keydown", (event) => this.key(event));
    this.build();
  }

  build() {
    this.inputs = [0, 1, 2].map((i) => h("input", { type: "number", step: "any",
      "aria-label": ["first coordinate", "second coordinate", "label"][i],
      on: { change: () => this.typed() } }));
    this.place = h("span", { class: "rf-soft" });
    const button = (label, f) => h("button", { type: "button", on: { click: f } }, label);
    this.el = h("div", { class: "rf-point", role: "group", "aria-label": "Chosen point" },
      this.place, ...this.inputs, button("Add", () => this.addHere()), button("Delete", () => this.remove()));
  }

  get rows() {
    return editableRows(this.side, this.most);
  }

  /** Show the chosen point's numbers. */
  show() {
    const rows = this.rows;
    this.el.hidden = rows === null;
    if (rows === null) return;
    if (this.selected >= rows.length) this.selected = -1;
    const row = rows[this.selected];
    const line = this.side.problem.kind === "line";
    this.place.textContent = row ? `Point ${this.selected}` : "Drag a point, or double-click";
    this.inputs[1].hidden = line;
    this.inputs.forEach((input, i) => {
      const value = row?.[line && i === 2 ? 1 : i];
      input.disabled = !row;
      if (document.activeElement !== input) input.value = row ? String(+value.toPrecision(6)) : "";
    });
  }

  at(event) {
    const box = this.picture.canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  maps() {
    return dataMaps(...this.picture.size, this.side);
  }

  press(event) {
    const rows = this.rows;
    if (!rows) return;
    const [px, py] = this.at(event);
    let best = -1;
    let least = NEAR;
    places(this.maps(), this.side.problem).forEach(([x, y], k) => {
      const gap = Math.hypot(x - px, y - py);
      if (gap < least) [best, least] = [k, gap];
    });
    this.selected = best;
    if (best >= 0) {
      this.dragging = true;
      const maps = this.maps();
      this.side.frozen = { extent: [...this.side.problem.extent], labels: maps.range };
      this.picture.canvas.setPointerCapture(event.pointerId);
      event.preventDefault();
      this.picture.canvas.focus();
    }
    this.show();
    this.picture.redraw();
  }

  move(event) {
    if (!this.dragging) return;
    const [px, py] = this.at(event);
    const { x, y } = this.maps();
    const rows = this.rows;
    const [first, second] = [round(x.back(px)), round(y.back(py))];
    rows[this.selected] = this.side.problem.kind === "line" ? [first, second]
      : [first, second, rows[this.selected][2]];
    this.apply(rows, true);
  }

  release() {
    if (!this.dragging) return;
    this.dragging = false;
    this.side.frozen = null;
    this.change(this.rows, false);
  }

  /** Show rows at once, whatever the computer says later. */
  apply(rows, live) {
    const data = this.side.problem;
    data.X = rows.map((row) => row.slice(0, -1));
    data.y = rows.map((row) => row[row.length - 1]);
    data.n = rows.length;
    this.show();
    this.picture.redraw();
    this.change(rows, live);
  }

  add(event) {
    const rows = this.rows;
    if (!rows || rows.length >= this.most) return;
    const { x, y } = this.maps();
    const [px, py] = this.at(event);
    this.insert(rows, round(x.back(px)), round(y.back(py)));
  }

  addHere() {
    const rows = this.rows;
    if (!rows) return;
    const { box, x, y } = this.maps();
    this.insert(rows, round(x.back(box.x + 0.6 * box.w)), round(y.back(box.y + 0.4 * box.h)));
  }

  insert(rows, first, second) {
    const label = rows[this.selected]?.[2] ?? 1;
    rows.push(this.side.problem.kind === "line" ? [first, second] : [first, second, label]);
    this.selected = rows.length - 1;
    this.apply(rows, false);
  }

  remove() {
    const rows = this.rows;
    if (!rows || this.selected < 0 || rows.length < 2) return;
    rows.splice(this.selected, 1);
    this.selected = Math.min(this.selected, rows.length - 1);
    this.apply(rows, false);
  }

  typed() {
    const rows = this.rows;
    const row = rows?.[this.selected];
    if (!row) return;
    const values = this.inputs.filter((input) => !input.hidden).map((input) => Number(input.value));
    if (values.some((v) => !Number.isFinite(v))) return;
    rows[this.selected] = values;
    this.apply(rows, false);
  }

  key(event) {
    const rows = this.rows;
    if (!rows) return;
    const { x, y } = this.maps();
    const [dx, dy] = [Math.abs(x.back(1) - x.back(0)), Math.abs(y.back(1) - y.back(0))];
    const far = event.shiftKey ? 20 : 4;
    const steps = { ArrowLeft: [-dx, 0], ArrowRight: [dx, 0], ArrowUp: [0, dy], ArrowDown: [0, -dy] };
    const row = rows[this.selected];
    if (event.key === "]") this.choose((this.selected + 1) % rows.length);
    else if (event.key === "[") this.choose((this.selected + rows.length) % (rows.length + 1) - 1);
    else if (event.key === "a") this.addHere();
    else if (row && (event.key === "Delete" || event.key === "Backspace")) this.remove();
    else if (row && event.key === "l" && row.length === 3) {
      row[2] = -row[2];
      this.apply(rows, false);
    } else if (row && steps[event.key]) {
      const [sx, sy] = steps[event.key];
      row[0] = round(row[0] + far * sx);
      row[1] = round(row[1] + far * sy);
      this.apply(rows, false);
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  choose(k) {
    this.selected = k < 0 ? this.rows.length - 1 : k;
    this.show();
    this.picture.redraw();
  }
}

function round(value) {
  return Number(value.toPrecision(5));
}
