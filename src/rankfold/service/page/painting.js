/** The colour of every point of a map. Pure functions. */

import { NEUTRAL, columnColours, ramp } from "./colour.js";
import { SPREAD } from "./gl.js";

/** @typedef {import("./colour.js").Theme} Theme */
/** @typedef {import("./gl.js").Paint} Paint */
/** @typedef {import("./places.js").Places} Places */
/** @typedef {import("./moves.js").Ranked} Ranked */

/**
 * Colours by rank; what has no rank within the depth, or no score by shape, stays neutral.
 * @param {Places} places
 * @param {Ranked|null} ranking
 * @param {number} depth
 * @param {Theme} theme
 * @param {boolean} shape whether scores at or below 0 mean that the query does not reach a point
 * @returns {{colours: Uint8Array, delay: Float32Array, order: Uint32Array}}
 */
export function byRank(places, ranking, depth, theme, shape) {
  const count = places.ids.length;
  const colours = neutral(count, theme);
  const delay = new Float32Array(count).fill(1);
  if (!ranking) return { colours, delay, order: Uint32Array.from({ length: count }, (_, i) => i) };
  const steps = ramp(theme);
  const above = [];
  ranking.ids.forEach((id, place) => {
    const row = places.rows.get(id);
    if (row === undefined || (shape && /** @type {number} */ (ranking.scores.get(id)) <= 0)) return;
    const part = place / Math.max(1, depth - 1);
    const rgb = steps[Math.min(255, Math.round(255 * part))];
    colours.set([rgb[0], rgb[1], rgb[2], 255], 4 * row);
    delay[row] = part;
    above.push(row);
  });
  return { colours, delay, order: ordered(count, above) };
}

/**
 * Colours by the values of a column; all points are as strong.
 * @param {Places} places
 * @param {unknown[]} values
 * @param {Theme} theme
 */
export function byColumn(places, values, theme) {
  const count = places.ids.length;
  const colours = neutral(count, theme);
  const { of, legend } = columnColours(values, theme);
  for (let row = 0; row < count; row++) {
    const rgb = of(values[row]);
    colours.set([rgb[0], rgb[1], rgb[2], 255], 4 * row);
  }
  const order = Uint32Array.from({ length: count }, (_, i) => i);
  return { colours, delay: new Float32Array(count), order, legend };
}

/** @param {number} count @param {Theme} theme */
function neutral(count, theme) {
  const colours = new Uint8Array(4 * count);
  const [red, green, blue] = NEUTRAL[theme];
  for (let at = 0; at < colours.length; at += 4) {
    colours[at] = red;
    colours[at + 1] = green;
    colours[at + 2] = blue;
  }
  return colours;
}

/** Rows from the lowest to the topmost: those of the ranking last, the best at the very end. */
function ordered(/** @type {number} */ count, /** @type {number[]} */ above) {
  const raised = new Uint8Array(count);
  for (const row of above) raised[row] = 1;
  const order = new Uint32Array(count);
  let at = 0;
  for (let row = 0; row < count; row++) if (!raised[row]) order[at++] = row;
  for (let place = above.length - 1; place >= 0; place--) order[at++] = above[place];
  return order;
}

/**
 * The colours in the course of a change, as the shader mixes them.
 * @param {Paint} paint
 * @param {number} time 0 to 1
 * @returns {Uint8Array}
 */
export function mixed(paint, time) {
  const { before, after, delay } = paint;
  if (time >= 1) return after;
  const colours = new Uint8Array(after.length);
  for (let row = 0; row < delay.length; row++) {
    const x = Math.min(1, Math.max(0, (time - delay[row] * SPREAD) / (1 - SPREAD)));
    const part = x * x * (3 - 2 * x);
    for (let at = 4 * row; at < 4 * row + 4; at++) colours[at] = before[at] + (after[at] - before[at]) * part;
  }
  return colours;
}
