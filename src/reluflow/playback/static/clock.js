// One clock for all runs: play, pause, scrub, rewind, speed.

import { fill, h, icon } from "./dom.js";
import { number } from "./format.js";

const RATE = 24; // frames a second at speed 1
const PLAY = "M7 4.5v15l12-7.5z";
const PAUSE = "M6.5 5h4v14h-4zM13.5 5h4v14h-4z";
const REWIND = "M5 5h2.6v14H5zM19 5v14l-10-7z";

export class Clock {
  /**
   * @param {() => any[]} runs those that share the clock
   * @param {(time: number) => void} show
   * @param {() => void} wish called when there is nothing to play yet
   */
  constructor(runs, show, wish) {
    this.runs = runs;
    this.show = show;
    this.wish = wish;
    this.times = [0];
    this.at = 0;
    this.playing = false;
    this.build();
  }

  build() {
    this.rewind = h("button", { type: "button", class: "rf-icon", "aria-label": "Rewind", title: "Rewind (Home)",
      on: { click: () => this.seek(0) } }, icon(REWIND));
    this.button = h("button", { type: "button", class: "rf-play", "aria-label": "Play", title: "Play or pause (Space)",
      on: { click: () => this.toggle() } }, icon(PLAY));
    this.slider = h("input", { type: "range", min: "0", max: "1000", step: "1", value: "0",
      class: "rf-time", "aria-label": "Time",
      on: { input: () => this.scrub() } });
    this.speed = h("select", { "aria-label": "Speed" },
      ...["0.25", "0.5", "1", "2", "4"].map((v) => h("option", { value: v, selected: v === "1" }, `${v}×`)));
    this.reading = h("output", { class: "rf-reading", "aria-live": "off" }, "no run yet");
    this.again = h("button", { type: "button", class: "rf-main", hidden: true, on: { click: () => this.wish() } }, "Simulate");
    this.el = h("div", { class: "rf-clock", role: "group", "aria-label": "Time of the run" },
      this.rewind, this.button, this.slider, this.speed, this.again, this.reading);
  }

  get time() {
    return this.times[Math.min(Math.floor(this.at), this.times.length - 1)];
  }

  get last() {
    return this.times.length - 1;
  }

  /** Take the frames of all runs; stay at the present time. */
  renew() {
    const now = this.time;
    const runs = this.runs();
    const all = new Set([0]);
    for (const run of runs) for (const t of run.times) all.add(t);
    this.times = [...all].sort((a, b) => a - b);
    this.at = 0;
    while (this.at < this.last && this.times[this.at + 1] <= now) this.at += 1;
    this.slider.max = String(Math.max(this.last, 1));
    this.update();
  }

  /** Offer to simulate where what is shown is missing or of older settings. */
  offer(wanted) {
    this.again.hidden = !wanted;
  }

  seek(at) {
    this.at = Math.max(0, Math.min(at, this.last));
    this.update();
  }

  scrub() {
    this.pause();
    this.seek(Number(this.slider.value));
  }

  toggle() {
    if (this.playing) this.pause();
    else this.play();
  }

  play() {
    if (!this.runs().length) {
      this.wish();
      return;
    }
    if (this.at >= this.last) this.at = 0;
    this.playing = true;
    fill(this.button, icon(PAUSE));
    this.button.setAttribute("aria-label", "Pause");
    let before = performance.now();
    const tick = (now) => {
      if (!this.playing) return;
      this.at += ((now - before) / 1000) * RATE * Number(this.speed.value);
      before = now;
      if (this.at >= this.last) {
        this.at = this.last;
        this.pause();
      }
      this.update();
      if (this.playing) requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
  }

  pause() {
    this.playing = false;
    fill(this.button, icon(PLAY));
    this.button.setAttribute("aria-label", "Play");
  }

  update() {
    this.slider.value = String(Math.floor(this.at));
    const runs = this.runs();
    if (runs.length) {
      const losses = runs.map((run) => number(run.loss[run.frameAt(this.time)])).join(" | ");
      this.reading.textContent = `time ${number(this.time, 4)} · loss ${losses}`;
    } else this.reading.textContent = "no run yet";
    this.slider.setAttribute("aria-valuetext", this.reading.textContent);
    this.show(this.time);
  }
}
