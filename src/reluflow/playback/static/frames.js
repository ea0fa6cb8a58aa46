// Neurons of every frame, moved by one small matrix per cone: the reader of playback.frames.

const KEYFRAME = 24;
const SMALLEST = -1e29;

/**
 * Unit vectors (w, a)/|(w, a)| and log-sizes of all neurons at the present frame.
 */
export class Neurons {
  /**
   * @param {{width: number, drawn: number, neurons: number, frames: number, groups: number,
   *   axes: number[][]|null}} about
   * @param {Object<string, any>} arrays
   */
  constructor(about, arrays) {
    this.about = about;
    this.arrays = arrays;
    this.q = about.width;
    this.m = about.drawn;
    this.u = new Float32Array(this.m * this.q);
    this.s = new Float32Array(this.m);
    this.group = new Uint32Array(this.m);
    this.frame = -1;
    /** @type {{u: Float32Array, s: Float32Array, group: Uint32Array}[]} */
    this.kept = [];
    this.starts = [[0, 0]];
    for (let f = 0; f < about.frames; f += 1) {
      const [cone, row] = this.starts[f];
      this.starts.push([cone + arrays.counts[2 * f], row + arrays.counts[2 * f + 1]]);
    }
  }

  /** Go to a frame: forward by matrices, back by what was kept on the way. */
  seek(frame) {
    const wanted = Math.max(0, Math.min(frame, this.about.frames - 1));
    if (wanted < this.frame) this.restore(Math.floor(wanted / KEYFRAME));
    else {
      const jump = Math.floor(wanted / KEYFRAME);
      if (jump * KEYFRAME > this.frame && this.kept[jump]) this.restore(jump);
    }
    while (this.frame < wanted) this.step();
  }

  restore(index) {
    const kept = this.kept[index];
    this.u.set(kept.u);
    this.s.set(kept.s);
    this.group.set(kept.group);
    this.frame = index * KEYFRAME;
  }

  step() {
    this.frame += 1;
    const [cone, row] = this.starts[this.frame];
    const [coneEnd, rowEnd] = this.starts[this.frame + 1];
    if (coneEnd > cone) this.move(cone, coneEnd);
    const { index, vector, log_size: logs, group } = this.arrays;
    const { q, u } = this;
    for (let r = row; r < rowEnd; r += 1) {
      const j = index[r];
      for (let i = 0; i < q; i += 1) u[j * q + i] = vector[r * q + i];
      this.s[j] = logs[r];
      this.group[j] = group[r];
    }
    if (this.frame % KEYFRAME === 0 && !this.kept[this.frame / KEYFRAME]) {
      this.kept[this.frame / KEYFRAME] = {
        u: this.u.slice(), s: this.s.slice(), group: this.group.slice(),
      };
    }
  }

  /** u <- Q u / |Q u|, s <- s + h + log|Q u| for every neuron of the listed cones. */
  move(cone, coneEnd) {
    const { cone: cones, matrix, shift } = this.arrays;
    const place = new Int32Array(this.about.groups).fill(-1);
    for (let c = cone; c < coneEnd; c += 1) place[cones[c]] = c;
    const { q, u, s, group, m } = this;
    if (q === 3) {
      for (let j = 0; j < m; j += 1) {
        const c = place[group[j]];
        if (c < 0) continue;
        const o = 9 * c;
        const k = 3 * j;
        const a = u[k];
        const b = u[k + 1];
        const d = u[k + 2];
        const x = matrix[o] * a + matrix[o + 1] * b + matrix[o + 2] * d;
        const y = matrix[o + 3] * a + matrix[o + 4] * b + matrix[o + 5] * d;
        const z = matrix[o + 6] * a + matrix[o + 7] * b + matrix[o + 8] * d;
        const size = Math.sqrt(x * x + y * y + z * z) || 1;
        u[k] = x / size;
        u[k + 1] = y / size;
        u[k + 2] = z / size;
        s[j] += shift[c] + Math.log(size);
      }
      return;
    }
    const moved = new Float64Array(q);
    for (let j = 0; j < m; j += 1) {
      const c = place[group[j]];
      if (c < 0) continue;
      let size = 0;
      for (let i = 0; i < q; i += 1) {
        let sum = 0;
        for (let k = 0; k < q; k += 1) sum += matrix[c * q * q + i * q + k] * u[j * q + k];
        moved[i] = sum;
        size += sum * sum;
      }
      size = Math.sqrt(size) || 1;
      for (let i = 0; i < q; i += 1) u[j * q + i] = moved[i] / size;
      s[j] += shift[c] + Math.log(size);
    }
  }

  /** Whether neuron j is not zero. */
  exists(j) {
    return this.s[j] > SMALLEST;
  }
}
