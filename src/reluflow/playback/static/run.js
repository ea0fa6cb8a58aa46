// A recorded run: what it has at each of its frames.

import { Neurons } from "./frames.js";

export class Run {
  /**
   * @param {any} about
   * @param {Object<string, any>} arrays
   */
  constructor(about, arrays) {
    this.about = about;
    this.arrays = arrays;
    this.times = arrays.times;
    this.loss = arrays.loss;
    this.lines = about.lines;
    this.neurons = new Neurons(about.neurons, arrays);
    this.places = about.field.kind === "none" ? 0
      : about.field.kind === "line" ? about.field.side : about.field.side ** 2;
    this.samples = this.times.length ? arrays.outputs.length / this.times.length : 0;
    [this.low, this.high] = this.sizeRange();
    this.fieldReach = null;
  }

  get end() {
    return this.times[this.times.length - 1];
  }

  /** The last frame at or before a time. */
  frameAt(time) {
    let low = 0;
    let high = this.times.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.times[middle] <= time) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /** f at its places, at the frame or the last one before it that has f. */
  fieldAt(frame) {
    const at = this.arrays.field_at;
    let row = 0;
    while (row + 1 < at.length && at[row + 1] <= frame) row += 1;
    return this.arrays.field.subarray(row * this.places, (row + 1) * this.places);
  }

  /** f at the samples. */
  outputsAt(frame) {
    return this.arrays.outputs.subarray(frame * this.samples, (frame + 1) * this.samples);
  }

  /** log |w_j| of the neurons that are drawn as lines. */
  sizesAt(frame) {
    return this.arrays.sizes.subarray(frame * this.lines, (frame + 1) * this.lines);
  }

  /** Smallest and largest log-size that is drawn. */
  sizeRange() {
    const first = Array.from(this.sizesAt(0)).filter((v) => v > -1e29).sort((a, b) => a - b);
    const low = first.length ? first[Math.floor(0.05 * first.length)] : -1;
    let high = low + 1;
    for (const v of this.arrays.sizes) if (v > high) high = v;
    return [low - 0.04 * (high - low), high + 0.04 * (high - low)];
  }
}
