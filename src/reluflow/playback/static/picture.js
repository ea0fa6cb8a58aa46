// A picture on the page: a canvas that fits its box, a caption, and files of it.

import { h } from "./dom.js";
import { CanvasPen, SvgPen } from "./pen.js";

/** Hand a file to the reader. */
export function saveFile(name, content, media) {
  const url = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type: media }));
  const link = h("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

export class Picture {
  /**
   * @param {{name: string, title: string, draw: (pen: any, w: number, h: number) => void,
   *   over?: (pen: any, w: number, h: number) => void, describe: () => string, ratio?: number,
   *   theme: () => any, extra?: HTMLElement|null}} options
   *   `over` is what changes with time: with it the rest is drawn once and kept.
   */
  constructor({ name, title, draw, over = null, describe, ratio = 0.62, theme, extra = null }) {
    this.name = name;
    this.drawing = draw;
    this.over = over;
    /** @type {HTMLCanvasElement|null} */
    this.kept = null;
    this.describe = describe;
    this.theme = theme;
    this.ratio = ratio;
    this.canvas = h("canvas", { role: "img", "aria-label": title });
    const keep = (kind) => h("button", { type: "button", class: "rf-quiet", title: `Save as ${kind.toUpperCase()}`,
      "aria-label": `Save picture ${title} as ${kind.toUpperCase()}`, on: { click: () => this.save(kind) } }, kind);
    this.heading = h("h3", {}, title);
    this.el = h("figure", { class: `rf-picture rf-${name}`, "data-picture": name },
      h("figcaption", {}, this.heading, h("span", { class: "rf-tools" }, extra, keep("png"), keep("svg"))),
      h("div", { class: "rf-frame" }, this.canvas));
    this.wanted = false;
    this.observer = new ResizeObserver(() => this.redraw());
    this.observer.observe(this.el);
  }

  get size() {
    const width = Math.max(this.canvas.parentElement.clientWidth, 120);
    return [width, Math.round(Math.min(width * this.ratio, 460))];
  }

  /** Draw all of it soon. */
  redraw() {
    this.kept = null;
    this.tick();
  }

  /** Draw soon, once however often it is asked for; what does not change with time is kept. */
  tick() {
    if (this.wanted) return;
    this.wanted = true;
    requestAnimationFrame(() => {
      this.wanted = false;
      this.drawNow();
    });
  }

  drawNow() {
    if (!this.el.isConnected || this.el.clientWidth === 0) return;
    const [w, height] = this.size;
    this.canvas.style.width = `${w}px`;
    this.canvas.style.height = `${height}px`;
    const ratio = window.devicePixelRatio || 1;
    const pen = new CanvasPen(this.canvas, w, height, ratio);
    if (this.over) {
      if (!this.kept) {
        this.kept = document.createElement("canvas");
        this.drawing(new CanvasPen(this.kept, w, height, ratio), w, height);
      }
      pen.image(this.kept, 0, 0, w, height, false);
      this.over(pen, w, height);
    } else this.drawing(pen, w, height);
    this.canvas.setAttribute("aria-label", this.describe());
  }

  save(kind) {
    const [w, height] = this.size;
    if (kind === "svg") {
      const pen = new SvgPen(w, height, this.theme().paper);
      this.drawing(pen, w, height);
      this.over?.(pen, w, height);
      saveFile(`${this.name}.svg`, pen.toString(), "image/svg+xml");
      return;
    }
    const canvas = document.createElement("canvas");
    const pen = new CanvasPen(canvas, w, height, 2);
    pen.rect(0, 0, w, height, this.theme().paper);
    this.drawing(pen, w, height);
    this.over?.(pen, w, height);
    canvas.toBlob((blob) => saveFile(`${this.name}.png`, blob, "image/png"));
  }

  close() {
    this.observer.disconnect();
  }
}
