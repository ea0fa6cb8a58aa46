// Between the front end and whoever computes: asks for jobs, sorts what comes back.

import { readBlock } from "./codec.js";
import { Emitter } from "./dom.js";
import { Run } from "./run.js";
import { settingsOf } from "./settings.js";

const QUICK = 4_000_000; // neurons times samples up to which a run starts by itself

/** A side of a comparison: what is known of it. */
export function emptySide(name) {
  return {
    name, problem: null, landscape: null, process: null, whyNot: "", run: null, stale: false,
    answer: null, sentences: [], frozen: null, seen: 0,
  };
}

/**
 * Events: "change" (something new is known), "busy", "refused", "file", "welcome", "engine".
 */
export class Link extends Emitter {
  /** @param {any} model with get, set, on, save_changes, send */
  constructor(model, state) {
    super();
    this.model = model;
    this.state = state;
    this.sides = { A: emptySide("A"), B: emptySide("B") };
    this.next = 1;
    this.engine = { ready: false, share: 0, note: "starting" };
    /** @type {Map<number, {type: string, side: string, began: number}>} */
    this.jobs = new Map();
    this.progress = null;
    this.blob = null;
    this.wantRun = { A: false, B: false };
    model.on("msg:custom", (message, buffers) => this.receive(message, buffers));
  }

  /** Names of the sides that are shown. */
  get shown() {
    return this.state.b ? ["A", "B"] : ["A"];
  }

  ask(type, side, more = {}) {
    for (const [id, job] of this.jobs) {
      if (job.type === type && job.side === side) this.jobs.delete(id);
    }
    const id = this.next;
    this.next += 1;
    this.jobs.set(id, { type, side, began: performance.now() });
    const message = { type, id, side, settings: settingsOf(this.state, side), ...more };
    const blob = this.blob && settingsOf(this.state, side).data.source === "table" ? this.blob : null;
    this.model.send(message, undefined, blob ? [blob] : undefined);
    this.emit("busy");
    return id;
  }

  /** Predict the shown sides; `run` says whether quick ones are simulated afterwards. */
  predict(run) {
    for (const name of this.shown) {
      const side = this.sides[name];
      side.stale = Boolean(side.run);
      this.wantRun[name] = run;
      this.ask("predict", name);
    }
  }

  simulate(name) {
    this.wantRun[name] = false;
    this.ask("simulate", name);
  }

  cancel() {
    this.wantRun = { A: false, B: false };
    this.model.send({ type: "cancel" });
  }

  /** An answer that no newer one has replaced. */
  newest(message) {
    return message.id === undefined || this.jobs.has(message.id);
  }

  /**
   * A prediction that is newer than what is shown: during a drag that is worth showing, even though
   * the point has moved on and a newer one is under way.
   */
  newer(message, side) {
    if (message.id < side.seen) return false;
    side.seen = message.id;
    return true;
  }

  receive(message, buffers) {
    let arrays = {};
    if (buffers?.length) {
      const view = buffers[0];
      const buffer = view.buffer ? view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength) : view;
      ({ message, arrays } = readBlock(buffer));
    }
    this.take(message, arrays);
  }

  /** Take a message with its arrays. */
  take(message, arrays) {
    const side = this.sides[message.side];
    const fresh = this.newest(message);
    switch (message.type) {
      case "welcome": this.emit("welcome", message); return;
      case "engine": this.engine = message; this.emit("engine"); return;
      case "progress":
        if (fresh) this.progress = message;
        this.emit("busy");
        return;
      case "refused": this.refuse(message); return;
      case "file": this.emit("file", message, arrays.content); return;
      case "done": this.finish(message); return;
      default: if (!side) return;
    }
    if (message.type === "problem" && fresh) {
      side.problem = message.problem;
      this.emit("refused", null);
    } else if (message.type === "landscape" && this.newer(message, side)) {
      side.landscape = message.landscape;
      side.process = null; // of older settings, until the new one comes
    } else if (message.type === "process" && this.newer(message, side)) {
      side.process = message.process;
      side.whyNot = message.why_not ?? "";
    } else if (message.type === "run" && fresh) {
      side.run = new Run(message.run, arrays);
      side.problem = { ...side.problem, ...message.run.data, m: side.problem?.m, notes: side.problem?.notes };
      side.stale = false;
    } else if (message.type === "sentence" && fresh) side.sentences.push(message);
    else if (message.type === "answer" && fresh) side.answer = message.answer;
    this.emit("change", message.type, message.side);
  }

  finish(message) {
    const job = this.jobs.get(message.id);
    this.jobs.delete(message.id);
    this.progress = null;
    this.emit("busy");
    if (!job) return;
    if (message.cancelled) this.emit("change", "cancelled", message.side);
    const data = this.sides[message.side]?.problem;
    const quick = data && data.m * data.n <= QUICK && data.m <= 20_000 && data.d <= 10;
    if (job.type === "predict" && message.ok && this.wantRun[message.side] && quick) {
      this.simulate(message.side);
    }
  }

  refuse(message) {
    if (message.id && !this.jobs.has(message.id)) return;
    this.emit("refused", message);
  }
}
