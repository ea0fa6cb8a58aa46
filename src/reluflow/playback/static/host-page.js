// The page as a host: anywidget's model over a WebSocket, settings in the fragment of the address.

import { writeBlock } from "./codec.js";
import { Emitter } from "./dom.js";
import { packState, unpackState } from "./settings.js";
import studio from "./studio.js";

/** get, set, on, off, save_changes, send: what a front end may ask of its host. */
class PageModel extends Emitter {
  constructor() {
    super();
    this.values = { state: null, given: false };
    this.waiting = [];
    const address = new URLSearchParams(location.hash.slice(1));
    this.token = address.get("token") ?? sessionStorage.getItem("reluflow-token") ?? "";
    sessionStorage.setItem("reluflow-token", this.token);
    const state = address.get("s");
    if (state) Object.assign(this.values, { state: unpackState(state), given: true });
    addEventListener("popstate", () => this.read());
    addEventListener("hashchange", () => this.read());
  }

  connect() {
    this.socket = new WebSocket(`ws://${location.host}/view`, ["reluflow-studio", this.token || "none"]);
    this.socket.binaryType = "arraybuffer";
    this.socket.onopen = () => {
      this.open = true;
      for (const data of this.waiting.splice(0)) this.socket.send(data);
    };
    this.socket.onmessage = (event) => this.emit("msg:custom", {}, [new DataView(event.data)]);
    this.socket.onclose = (event) => this.lost(event);
  }

  lost(event) {
    const why = this.open ? event.reason || "The server has ended: start `reluflow studio` again and reload."
      : "The server refused this page: open the address that `reluflow studio` printed, with its token.";
    const said = document.createElement("p");
    said.className = "rf-lost";
    said.setAttribute("role", "alert");
    said.textContent = why;
    document.body.prepend(said);
  }

  get(name) {
    return this.values[name];
  }

  set(name, value) {
    this.values[name] = value;
  }

  /** Settings go into the address: a new entry of the history, unless something is being dragged. */
  save_changes() {
    const packed = packState(this.values.state);
    const hash = `#token=${this.token}${packed ? `&s=${packed}` : ""}`;
    if (hash === location.hash) return;
    if (this.values.live || this.live) history.replaceState(null, "", hash);
    else history.pushState(null, "", hash);
    this.live = this.values.live;
  }

  /** Back and forward. */
  read() {
    const state = unpackState(new URLSearchParams(location.hash.slice(1)).get("s") ?? "");
    if (!state) return;
    this.values.state = state;
    this.emit("change:state");
  }

  send(message, callbacks, buffers) {
    if (message.type === "hello") return;
    const data = buffers?.length ? writeBlock(message, new Uint8Array(buffers[0])) : JSON.stringify(message);
    if (this.open) this.socket.send(data);
    else this.waiting.push(data);
  }

  /** Put a link to these settings on the clipboard; the token stays here. */
  async share() {
    const packed = packState(this.values.state);
    if (!packed) return "Too large for a link";
    try {
      await navigator.clipboard.writeText(`${location.origin}/#s=${packed}`);
      return "Copied";
    } catch {
      return "Copy it from the address bar";
    }
  }
}

const model = new PageModel();
studio.render({ model, el: document.getElementById("studio") });
model.connect();
