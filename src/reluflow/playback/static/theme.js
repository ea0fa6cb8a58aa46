// Colours of the drawings, taken from the style sheet so that light and dark are said once.

const NAMES = ["ink", "soft", "line", "grid", "ground", "paper", "plus", "minus", "predicted",
  "accent", "point"];

/**
 * @param {HTMLElement} root
 * @returns {Object<string, any>}
 */
export function readTheme(root) {
  const style = getComputedStyle(root);
  const theme = {};
  for (const name of NAMES) theme[name] = style.getPropertyValue(`--rf-${name}`).trim();
  theme.plusRgb = rgb(theme.plus);
  theme.minusRgb = rgb(theme.minus);
  return theme;
}

function rgb(hex) {
  return [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16) || 0);
}
