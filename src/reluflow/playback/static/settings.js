// What a view asks for, and how it travels in an address.

/**
 * @typedef {{source: string, name?: string, rows?: number[][], text?: string, label?: string|null,
 *   standardize?: boolean, drop_missing?: boolean}} Data
 * @typedef {{m: number, scale: number|null, log_scale: number|null, kind: string, signs: string,
 *   seed: number}} Start
 * @typedef {{data: Data, loss: string|null, leak: number|null, bias: number|null, start: Start,
 *   t_end: number|null}} Settings
 * @typedef {{a: Settings, b: any}} State  b: what differs on side B, or null
 */

/** @returns {State} */
export function defaultState() {
  return {
    a: {
      data: { source: "built-in", name: "three-points" },
      loss: null,
      leak: null,
      bias: null,
      start: { m: 200, scale: 1e-6, log_scale: null, kind: "balanced", signs: "random", seed: 0 },
      t_end: null,
    },
    b: null,
  };
}

/** A state from anything: unknown parts are left out, missing ones are the default. */
export function completeState(given) {
  const state = defaultState();
  if (!given || typeof given !== "object") return state;
  const from = given.a ?? given;
  for (const name of ["data", "loss", "leak", "bias", "t_end"]) {
    if (from[name] !== undefined) state.a[name] = from[name];
  }
  Object.assign(state.a.start, from.start ?? {});
  if (given.b && typeof given.b === "object") state.b = given.b;
  return state;
}

/** Settings of a side: B is A with what differs. */
export function settingsOf(state, side) {
  if (side === "A" || !state.b) return state.a;
  const { start = {}, ...rest } = state.b;
  return { ...state.a, ...rest, start: { ...state.a.start, ...start } };
}

const LONGEST = 6000; // characters of an address that browsers and mail take

/** A state as text for an address; null where its data are too large for one. */
export function packState(state) {
  const text = btoa(String.fromCharCode(...new TextEncoder().encode(JSON.stringify(state))));
  const packed = text.replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
  return packed.length <= LONGEST ? packed : null;
}

/** The state in a text, null if it holds none. */
export function unpackState(text) {
  try {
    const raw = atob(text.replace(/-/g, "+").replace(/_/g, "/"));
    const bytes = Uint8Array.from(raw, (c) => c.charCodeAt(0));
    return completeState(JSON.parse(new TextDecoder().decode(bytes)));
  } catch {
    return null;
  }
}

/** Presets of side B. */
export const COMPARISONS = [
  { name: "usual weights (scale 1)", b: { start: { scale: 1, log_scale: null } } },
  { name: "much smaller weights (10⁻³⁰)", b: { start: { scale: 1e-30, log_scale: null } } },
  { name: "leak 0.1", b: { leak: 0.1 } },
  { name: "5 neurons", b: { start: { m: 5 } } },
  { name: "5,000 neurons", b: { start: { m: 5000 } } },
];
