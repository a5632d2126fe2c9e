/** Points of two numbers are their own map, moved and scaled: from places to vectors and back. */

import * as api from "./api.js";
import { nearest } from "./places.js";

/** @typedef {import("./places.js").Places} Places */
/** @typedef {import("./moves.js").Id} Id */
/** @typedef {{scale: number, shift: number}} Axis from a place to a vector */
/** @typedef {[Axis, Axis]} Plane */

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
  const [x, y] = rows.map(([low, high], axis) =>
    axisOf(
      places.xy[2 * low + axis],
      places.xy[2 * high + axis],
      /** @type {number[]} */ (vectors.get(places.ids[low]))[axis],
      /** @type {number[]} */ (vectors.get(places.ids[high]))[axis],
    ),
  );
  return [x, y];
}

/** @param {Plane} plane @param {[number, number]} place @returns {[number, number]} */
export function toVector([x, y], place) {
  return [x.scale * place[0] + x.shift, y.scale * place[1] + y.shift];
}

/** @param {Plane} plane @param {number[]} vector @returns {[number, number]} */
export function toPlace([x, y], vector) {
  return [(vector[0] - x.shift) / x.scale, (vector[1] - y.shift) / y.scale];
}

/** The point to ask with when nothing else is asked. @param {string} name @param {Places} places @param {Plane|null} plane @returns {Id} */
export function firstLook(name, places, plane) {
  const at = plane && name in FIRST_LOOK ? toPlace(plane, FIRST_LOOK[name]) : null;
  return places.ids[(at && nearest(places, at[0], at[1], Infinity)) ?? 0];
}
