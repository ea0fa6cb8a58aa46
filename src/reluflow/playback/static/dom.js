// Elements in one line, and a store that tells who listens.

/**
 * Make an element.
 * @param {string} tag
 * @param {Object<string, any>} [attrs] attributes; `on` is a dictionary of listeners
 * @param {...(Node|string|null|undefined)} children
 * @returns {any}
 */
export function h(tag, attrs = {}, ...children) {
  const el = document.createElement(tag);
  for (const [name, value] of Object.entries(attrs)) {
    if (name === "on") for (const [event, f] of Object.entries(value)) el.addEventListener(event, f);
    else if (name === "class") el.className = value;
    else if (name in el && typeof value !== "string") el[name] = value;
    else if (value === true) el.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) el.setAttribute(name, value);
  }
  put(el, ...children);
  return el;
}

/** Append children, leaving out what is null. */
export function put(el, ...children) {
  for (const child of children) if (child !== null && child !== undefined) el.append(child);
  return el;
}

/** Replace all children. */
export function fill(el, ...children) {
  el.replaceChildren();
  return put(el, ...children);
}

/** A small drawing for a button: an SVG path in a square of 24. */
export function icon(path) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  svg.classList.add("rf-glyph");
  const drawn = document.createElementNS("http://www.w3.org/2000/svg", "path");
  drawn.setAttribute("d", path);
  svg.append(drawn);
  return svg;
}

let counter = 0;

/** An id that no other element has. */
export function freshId(prefix) {
  counter += 1;
  return `rf-${prefix}-${counter}`;
}

/**
 * A labelled field with a place for a refusal beside it.
 * @param {string} label
 * @param {HTMLElement} input
 * @param {string} [field] name by which a refusal finds it
 */
export function field(label, input, field = "") {
  input.id = input.id || freshId("field");
  const said = h("p", { class: "rf-refused", id: `${input.id}-said`, role: "alert", hidden: true });
  input.setAttribute("aria-describedby", said.id);
  const row = h("div", { class: "rf-field" }, h("label", { for: input.id }, label), input, said);
  row.dataset.field = field;
  return row;
}

/** Something that changes, with listeners by name. */
export class Emitter {
  constructor() {
    /** @type {Map<string, Set<Function>>} */
    this.listeners = new Map();
  }

  on(name, f) {
    if (!this.listeners.has(name)) this.listeners.set(name, new Set());
    this.listeners.get(name).add(f);
  }

  off(name, f) {
    if (f === undefined || f === null) this.listeners.delete(name);
    else this.listeners.get(name)?.delete(f);
  }

  emit(name, ...values) {
    for (const f of [...(this.listeners.get(name) ?? [])]) f(...values);
  }
}
