/** Points of one number or two are their own map, moved and scaled: from places to vectors and back. */

import * as api from "./api.js";
import { nearest } from "./places.js";

/** @typedef {import("./places.js").Places} Places */
/** @typedef {import("./moves.js").Id} Id */
/** @typedef {{scale: number, shift: number}} Axis from a place to a vector */
/** @typedef {Axis[]} Plane an axis for each number of a vector */

/** Where a first look says most: the inner tip of a moon, the middle ring. @type {Record<string, [number, number]>} */
const FIRST_LOOK = { "two-moons": [0.98, 0.1], "three-rings": [0, 2] };

/** Rows of the points that lie farthest out along each axis. @param {Places} places @returns {[number, number][]} */
export function farthest(places) {
  return [0, 1].map((axis) => {
    let low = 0,
      high = 0;
    for (let row = 1; row < places.ids.length; row++) {
      const at = places.xy[2 * row + axis];
      if (at < places.xy[2 * low + axis]) low = row;
      if (at > places.xy[2 * high + axis]) high = row;
    }
    return [low, high];
  });
}

/** @param {number} low place @param {number} high @param {number} first value at low @param {number} last @returns {Axis} */
export function axisOf(low, high, first, last) {
  const scale = high > low ? (last - first) / (high - low) : 1;
  return { scale, shift: first - scale * low };
}

/** @param {string} name @param {Places} places @param {AbortSignal} [signal] @returns {Promise<Plane|null>} */
export async function readPlane(name, places, signal) {
  if (!places.ids.length) return null;
  const rows = farthest(places),
    ids = [...new Set(rows.flat())].map((row) => places.ids[row]);
  const vectors = await api.vectors(name, ids, signal);
  const at = (/** @type {number} */ row) => /** @type {number[]} */ (vectors.get(places.ids[row]));
  const axes = rows.slice(0, at(rows[0][0]).length);
  return axes.map(([low, high], axis) =>
    axisOf(places.xy[2 * low + axis], places.xy[2 * high + axis], at(low)[axis], at(high)[axis]),
  );
}

/** @param {Plane} plane @param {[number, number]} place @returns {number[]} */
export function toVector(plane, place) {
  return plane.map(({ scale, shift }, axis) => scale * place[axis] + shift);
}

/** @param {Plane} plane @param {number[]} vector @returns {[number, number]} */
export function toPlace(plane, vector) {
  const [x, y = 0] = plane.map(({ scale, shift }, axis) => (vector[axis] - shift) / scale);
  return [x, y];
}

/** The point to ask with when nothing else is asked. @param {string} name @param {Places} places @param {Plane|null} plane @returns {Id} */
export function firstLook(name, places, plane) {
  const at = plane && name in FIRST_LOOK ? toPlace(plane, FIRST_LOOK[name]) : null;
  return places.ids[(at && nearest(places, at[0], at[1], Infinity)) ?? 0];
}
