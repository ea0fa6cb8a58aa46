// Numbers as people read them, and the scales of the slider.

/** Six digits at most, without trailing zeros; the same digits as Python's %.6g. */
export function number(value, digits = 6) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  if (value === 0) return "0";
  const exponent = Math.floor(Math.log10(Math.abs(value)));
  if (exponent < -5 || exponent >= digits) {
    const [mantissa, power] = value.toExponential(digits - 1).split("e");
    return `${trim(mantissa)}e${Number(power)}`;
  }
  return trim(value.toPrecision(digits));
}

function trim(text) {
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

/** A number for a tick of an axis. */
export function tick(value, step) {
  if (Math.abs(value) < 1e-9 * step) return "0";
  const size = Math.abs(value);
  if (size >= 1e5 || size < 1e-3) return number(value, 3);
  let digits = 0;
  while (digits < 6 && Math.abs(step * 10 ** digits - Math.round(step * 10 ** digits)) > 1e-6) digits += 1;
  return value.toFixed(digits);
}

/** 12,345 */
export function whole(value) {
  return value.toLocaleString("en-US");
}

/**
 * Scales of the slider, from 1 down to e^-1000.
 * @type {{scale: number|null, log_scale: number|null, label: string}[]}
 */
export const SCALES = [
  ...halves(0, -12),
  ...[-13, -14, -15, -16, -18, -20, -25, -30, -40, -50, -70, -100, -150, -200, -250, -300].map(ten),
  ...[-700, -800, -900, -1000].map((log) => ({
    scale: null,
    log_scale: log,
    label: `e${raised(log)}`,
  })),
];

/** A whole number as an exponent. */
function raised(power) {
  return String(power).replace(/./g, (c) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[c] ?? "⁻");
}

function ten(power) {
  return { scale: Number(`1e${power}`), log_scale: null, label: `10${raised(power)}` };
}

function halves(from, to) {
  const made = [];
  for (let power = from; power >= to; power -= 1) {
    if (power === 0) made.push({ scale: 1, log_scale: null, label: "1" });
    else made.push(ten(power));
    if (power > to) {
      const value = Number(`3e${power - 1}`);
      made.push({ scale: value, log_scale: null, label: `3·10${raised(power - 1)}` });
    }
  }
  return made;
}

/** Natural logarithm of a start's scale. */
export function logScale(start) {
  return start.log_scale ?? Math.log(start.scale ?? 1e-6);
}

/** Place on the slider that is nearest to a start's scale. */
export function scaleIndex(start) {
  const wanted = logScale(start);
  let best = 0;
  let least = Infinity;
  SCALES.forEach((each, i) => {
    const gap = Math.abs(logScale(each) - wanted);
    if (gap < least) [best, least] = [i, gap];
  });
  return best;
}

/** A scale as it is said. */
export function scaleLabel(start) {
  const near = SCALES[scaleIndex(start)];
  if (Math.abs(logScale(near) - logScale(start)) < 1e-9) return near.label;
  return start.log_scale === null ? number(start.scale, 3) : `exp(${number(start.log_scale, 5)})`;
}
