// Many neurons as a density: each adds to one pixel, then all pixels get a colour at once.

/**
 * Two densities on one raster: neurons with positive and with negative output weight.
 */
export class Splat {
  constructor() {
    this.canvas = document.createElement("canvas");
    this.size = 0;
  }

  begin(size) {
    if (size !== this.size) {
      this.size = size;
      this.canvas.width = size;
      this.canvas.height = size;
      this.up = new Float32Array(size * size);
      this.down = new Float32Array(size * size);
      this.c = this.canvas.getContext("2d");
      this.pixels = this.c.createImageData(size, size);
    }
    this.up.fill(0);
    this.down.fill(0);
  }

  /**
   * Colour the raster: opacity 1 - exp(-density / full), so that single neurons stay visible.
   * @param {number[]} plus colour of positive neurons, three numbers
   * @param {number[]} minus
   * @param {number} full density that is nearly opaque
   */
  end(plus, minus, full) {
    const { up, down } = this;
    const data = this.pixels.data;
    const factor = 1 / full;
    for (let i = 0; i < up.length; i += 1) {
      const p = up[i];
      const n = down[i];
      const total = p + n;
      const k = 4 * i;
      if (total === 0) {
        data[k + 3] = 0;
        continue;
      }
      const share = p / total;
      data[k] = minus[0] + share * (plus[0] - minus[0]);
      data[k + 1] = minus[1] + share * (plus[1] - minus[1]);
      data[k + 2] = minus[2] + share * (plus[2] - minus[2]);
      data[k + 3] = 255 * (0.25 + 0.75 * (1 - Math.exp(-total * factor)));
    }
    this.c.putImageData(this.pixels, 0, 0);
    return this.canvas;
  }
}
