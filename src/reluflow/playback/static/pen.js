// One way to draw, two papers: a canvas on the screen, an SVG file to keep.

/**
 * @typedef {{color?: string, width?: number, dash?: number[], alpha?: number}} Stroke
 * @typedef {{color?: string, size?: number, align?: "left"|"center"|"right",
 *   base?: "top"|"middle"|"bottom", bold?: boolean, turn?: boolean, alpha?: number}} Lettering
 */

const FONT = 'system-ui, -apple-system, "Segoe UI", "Helvetica Neue", sans-serif';

/** Draws on a canvas, in CSS pixels. */
export class CanvasPen {
  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas, width, height, ratio) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    this.c = canvas.getContext("2d");
    this.c.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.c.lineJoin = "round";
  }

  line(points, { color = "#000", width = 1, dash = [], alpha = 1 } = {}) {
    const c = this.c;
    c.globalAlpha = alpha;
    c.strokeStyle = color;
    c.lineWidth = width;
    c.setLineDash(dash);
    c.beginPath();
    let down = false;
    for (const [x, y] of points) {
      if (!Number.isFinite(x + y)) down = false;
      else if (down) c.lineTo(x, y);
      else {
        c.moveTo(x, y);
        down = true;
      }
    }
    c.stroke();
    c.globalAlpha = 1;
  }

  rect(x, y, w, h, color, alpha = 1) {
    this.c.globalAlpha = alpha;
    this.c.fillStyle = color;
    this.c.fillRect(x, y, w, h);
    this.c.globalAlpha = 1;
  }

  disc(x, y, r, { fill = "", stroke = "", width = 1, alpha = 1 } = {}) {
    const c = this.c;
    c.globalAlpha = alpha;
    c.beginPath();
    c.arc(x, y, r, 0, 2 * Math.PI);
    if (fill) {
      c.fillStyle = fill;
      c.fill();
    }
    if (stroke) {
      c.strokeStyle = stroke;
      c.lineWidth = width;
      c.setLineDash([]);
      c.stroke();
    }
    c.globalAlpha = 1;
  }

  text(said, x, y, { color = "#000", size = 12, align = "left", base = "middle", bold = false,
    turn = false, alpha = 1 } = {}) {
    const c = this.c;
    c.save();
    c.globalAlpha = alpha;
    c.fillStyle = color;
    c.font = `${bold ? "600 " : ""}${size}px ${FONT}`;
    c.textAlign = align;
    c.textBaseline = base;
    c.translate(x, y);
    if (turn) c.rotate(-Math.PI / 2);
    c.fillText(said, 0, 0);
    c.restore();
  }

  image(canvas, x, y, w, h, smooth = true) {
    this.c.imageSmoothingEnabled = smooth;
    this.c.drawImage(canvas, x, y, w, h);
  }

  clip(x, y, w, h) {
    this.c.save();
    this.c.beginPath();
    this.c.rect(x, y, w, h);
    this.c.clip();
  }

  unclip() {
    this.c.restore();
  }
}

/** Writes the same drawing as an SVG file. */
export class SvgPen {
  constructor(width, height, paper) {
    this.size = [width, height];
    this.parts = [`<rect width="${width}" height="${height}" fill="${paper}"/>`];
    this.clips = 0;
  }

  line(points, { color = "#000", width = 1, dash = [], alpha = 1 } = {}) {
    let path = "";
    let down = false;
    for (const [x, y] of points) {
      if (!Number.isFinite(x + y)) down = false;
      else {
        path += `${down ? "L" : "M"}${x.toFixed(2)} ${y.toFixed(2)}`;
        down = true;
      }
    }
    this.parts.push(
      `<path d="${path}" fill="none" stroke="${color}" stroke-width="${width}" ` +
        `stroke-opacity="${alpha}" stroke-dasharray="${dash.join(" ")}" stroke-linejoin="round"/>`,
    );
  }

  rect(x, y, w, h, color, alpha = 1) {
    this.parts.push(
      `<rect x="${x}" y="${y}" width="${w}" height="${h}" fill="${color}" fill-opacity="${alpha}"/>`,
    );
  }

  disc(x, y, r, { fill = "none", stroke = "none", width = 1, alpha = 1 } = {}) {
    this.parts.push(
      `<circle cx="${x.toFixed(2)}" cy="${y.toFixed(2)}" r="${r}" fill="${fill || "none"}" ` +
        `stroke="${stroke || "none"}" stroke-width="${width}" opacity="${alpha}"/>`,
    );
  }

  text(said, x, y, { color = "#000", size = 12, align = "left", base = "middle", bold = false,
    turn = false, alpha = 1 } = {}) {
    const anchor = { left: "start", center: "middle", right: "end" }[align];
    const shift = { top: "0.8em", middle: "0.35em", bottom: "-0.2em" }[base];
    const safe = said.replace(/&/g, "&amp;").replace(/</g, "&lt;");
    const turned = turn ? ` transform="rotate(-90 ${x} ${y})"` : "";
    this.parts.push(
      `<text x="${x}" y="${y}" dy="${shift}" text-anchor="${anchor}" font-size="${size}" ` +
        `fill="${color}" fill-opacity="${alpha}" font-weight="${bold ? 600 : 400}"${turned}>` +
        `${safe}</text>`,
    );
  }

  image(canvas, x, y, w, h) {
    const data = canvas.toDataURL("image/png");
    this.parts.push(
      `<image href="${data}" x="${x}" y="${y}" width="${w}" height="${h}" ` +
        'preserveAspectRatio="none"/>',
    );
  }

  clip(x, y, w, h) {
    this.clips += 1;
    const id = `clip${this.clips}`;
    this.parts.push(
      `<clipPath id="${id}"><rect x="${x}" y="${y}" width="${w}" height="${h}"/></clipPath>` +
        `<g clip-path="url(#${id})">`,
    );
  }

  unclip() {
    this.parts.push("</g>");
  }

  /** The whole file. */
  toString() {
    const [w, h] = this.size;
    return (
      `<svg xmlns="http://www.w3.org/2000/svg" width="${w}" height="${h}" ` +
      `viewBox="0 0 ${w} ${h}" font-family='${FONT}'>${this.parts.join("")}</svg>`
    );
  }
}
