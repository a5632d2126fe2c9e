/** Light, dark, or as the system is, and the colours of each theme. Runs before the first drawing. */

/** @typedef {"light"|"dark"} Theme */
/** @typedef {[number, number, number]} Rgb bytes */

/**
 * Lightness, chroma and hue (OKLCH) from the first rank to the last. Lightness runs one way in even
 * steps, so that the order can be seen without seeing hues; the first stands out most.
 * @type {Record<Theme, [number, number, number][]>}
 */
const RAMP_STOPS = {
  light: [
    [0.32, 0.15, 285],
    [0.45, 0.13, 255],
    [0.58, 0.11, 205],
    [0.71, 0.13, 160],
    [0.84, 0.14, 115],
  ],
  dark: [
    [0.95, 0.12, 108],
    [0.83, 0.15, 135],
    [0.71, 0.12, 172],
    [0.58, 0.11, 225],
    [0.45, 0.13, 270],
  ],
};

/** Kinds: after Okabe and Ito's advice, lightness varies with hue. @type {Record<Theme, string[]>} */
const PALETTE = {
  light: [
    "#0067a5",
    "#c2410c",
    "#00795c",
    "#a3358f",
    "#8a6d00",
    "#3f8fd2",
    "#7a1f1f",
    "#4d9e2f",
    "#5b4bb7",
    "#6b7280",
  ],
  dark: [
    "#5cb3ff",
    "#ff9457",
    "#33c79a",
    "#ee8bd8",
    "#f0d04f",
    "#a5d4ff",
    "#ff7d7d",
    "#a7dd7a",
    "#b3a6ff",
    "#b6bcc8",
  ],
};

/** Points without a rank. @type {Record<Theme, Rgb>} */
export const NEUTRAL = { light: [178, 184, 194], dark: [88, 96, 110] };

/**
 * A colour of OKLCH in sRGB; what lies outside sRGB is brought in by taking chroma away.
 * @param {number} lightness 0 to 1
 * @param {number} chroma
 * @param {number} hue degrees
 * @returns {Rgb}
 */
function fromOklch(lightness, chroma, hue) {
  for (let c = chroma; c > 0.001; c *= 0.95) {
    const rgb = linearRgb(lightness, c, hue);
    if (rgb.every((v) => v >= -0.0005 && v <= 1.0005)) return encodeSrgb(rgb);
  }
  return encodeSrgb(linearRgb(lightness, 0, hue));
}

/** @param {number} L @param {number} chroma @param {number} hue */
function linearRgb(L, chroma, hue) {
  const a = chroma * Math.cos((hue * Math.PI) / 180);
  const b = chroma * Math.sin((hue * Math.PI) / 180);
  const l = (L + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (L - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (L - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ];
}

/** @param {number[]} rgb linear light @returns {Rgb} */
function encodeSrgb(rgb) {
  const byte = (/** @type {number} */ v) => {
    const x = Math.min(1, Math.max(0, v));
    return Math.round(255 * (x <= 0.0031308 ? 12.92 * x : 1.055 * x ** (1 / 2.4) - 0.055));
  };
  return [byte(rgb[0]), byte(rgb[1]), byte(rgb[2])];
}

/**
 * The ramp of a theme: colours from the first rank to the last.
 * @param {Theme} theme
 * @param {number} [steps]
 * @returns {Rgb[]}
 */
export function colourRamp(theme, steps = 256) {
  const stops = RAMP_STOPS[theme];
  return Array.from({ length: steps }, (_, i) => {
    const at = (i / Math.max(1, steps - 1)) * (stops.length - 1);
    const low = Math.min(stops.length - 2, Math.floor(at));
    const part = at - low;
    const mixed = stops[low].map((v, j) => v + (stops[low + 1][j] - v) * part);
    return fromOklch(mixed[0], mixed[1], mixed[2]);
  });
}

/** @param {string} hex such as "#0067a5" @returns {Rgb} */
function fromHex(hex) {
  const bits = parseInt(hex.slice(1), 16);
  return [bits >> 16, (bits >> 8) & 255, bits & 255];
}

/** @param {Rgb} rgb @returns {string} */
export function toCss(rgb) {
  return `rgb(${rgb[0]} ${rgb[1]} ${rgb[2]})`;
}

/**
 * What colours the values of a column have: few values have a colour each, many numbers lie on
 * the ramp, of many texts the most frequent have a colour each.
 * @param {unknown[]} values
 * @param {Theme} theme
 * @returns {{colourOf: (value: unknown) => Rgb, legend: {label: string, colour: Rgb}[]}}
 */
export function colourScale(values, theme) {
  const counts = new Map();
  for (const value of values) if (value != null) counts.set(value, (counts.get(value) ?? 0) + 1);
  const palette = PALETTE[theme].map(fromHex);
  const numeric = [...counts.keys()].every((value) => typeof value === "number");
  if (numeric && counts.size > palette.length) {
    let low = Infinity,
      high = -Infinity;
    for (const value of counts.keys()) {
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
    const colours = colourRamp(theme);
    const at = (/** @type {number} */ v) => colours[Math.round(((v - low) / (high - low || 1)) * 255)];
    return {
      colourOf: (value) => (typeof value === "number" ? at(value) : NEUTRAL[theme]),
      legend: [low, (low + high) / 2, high].map((v) => ({ label: String(+v.toPrecision(3)), colour: at(v) })),
    };
  }
  const frequent = [...counts]
    .sort((a, b) => b[1] - a[1])
    .slice(0, palette.length)
    .map(([value]) => value);
  frequent.sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
  const known = new Map(frequent.map((value, i) => [value, palette[i]]));
  const legend = frequent.map((value, i) => ({ label: String(value), colour: palette[i] }));
  if (counts.size > frequent.length) legend.push({ label: "others", colour: NEUTRAL[theme] });
  return { colourOf: (value) => known.get(value) ?? NEUTRAL[theme], legend };
}

/** @typedef {"system"|"light"|"dark"} Choice */

const STORAGE_KEY = "rankfold-theme";
const NEXT = /** @type {const} */ ({ system: "light", light: "dark", dark: "system" });
const SIGN = { system: "◐", light: "☀", dark: "☾" };
const systemDark = matchMedia("(prefers-color-scheme: dark)");

/** @type {Set<() => void>} */
const listeners = new Set();

/** @returns {Choice} */
function themeChoice() {
  const stored = localStorage.getItem(STORAGE_KEY);
  return stored === "light" || stored === "dark" ? stored : "system";
}

/** @returns {"light"|"dark"} */
export function currentTheme() {
  const choice = themeChoice();
  return choice === "system" ? (systemDark.matches ? "dark" : "light") : choice;
}

function apply() {
  document.documentElement.dataset.theme = currentTheme();
  for (const listener of listeners) listener();
}

/** @param {() => void} listener called after every change */
export function onThemeChange(listener) {
  listeners.add(listener);
}

/** A button that goes from one choice to the next. @param {HTMLElement} button */
export function bindThemeButton(button) {
  const show = () => {
    const words = `Theme: ${themeChoice()}. Change to ${NEXT[themeChoice()]}.`;
    button.textContent = `${SIGN[themeChoice()]}\ufe0e`;
    button.setAttribute("aria-label", words);
    button.title = words;
  };
  button.addEventListener("click", () => {
    localStorage.setItem(STORAGE_KEY, NEXT[themeChoice()]);
    apply();
  });
  onThemeChange(show);
  show();
}

systemDark.addEventListener("change", apply);
apply();
