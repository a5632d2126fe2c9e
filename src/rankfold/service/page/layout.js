/** The layout: positions of the points on the map, and the vectors that positions of a plane stand for. */

import * as api from "./api.js";

/** @typedef {import("./api.js").Id} Id */

/**
 * @typedef {object} Layout
 * @property {Id[]} ids
 * @property {Float32Array} xy x, y, x, y, ...
 * @property {Map<Id, number>} rows
 * @property {Bounds} bounds
 * @property {Grid} grid
 * @property {number} points all of the index, also those that the map leaves out
 * @property {string} version of the index
 */
/** @typedef {{left: number, right: number, bottom: number, top: number}} Bounds */
/** @typedef {{bounds: Bounds, side: number, starts: Uint32Array, rows: Uint32Array}} Grid */

/** @param {{ids: Id[], places: string, points: number, version: string}} given @returns {Layout} */
export function parseLayout(given) {
  const text = atob(given.places);
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at++) bytes[at] = text.charCodeAt(at);
  const view = new DataView(bytes.buffer);
  const xy = new Float32Array(bytes.length >> 2);
  for (let at = 0; at < xy.length; at++) xy[at] = view.getFloat32(4 * at, true);
  const bounds = boundingBox(xy);
  const rows = new Map(given.ids.map((id, row) => [id, row]));
  const { ids, points, version } = given;
  return { ids, xy, rows, bounds, grid: makeGrid(xy, bounds), points, version };
}

/** @param {Float32Array} xy @returns {Bounds} */
function boundingBox(xy) {
  const bounds = { left: Infinity, right: -Infinity, bottom: Infinity, top: -Infinity };
  for (let at = 0; at < xy.length; at += 2) {
    bounds.left = Math.min(bounds.left, xy[at]);
    bounds.right = Math.max(bounds.right, xy[at]);
    bounds.bottom = Math.min(bounds.bottom, xy[at + 1]);
    bounds.top = Math.max(bounds.top, xy[at + 1]);
  }
  return xy.length ? bounds : { left: -1, right: 1, bottom: -1, top: 1 };
}

/** Sort points into square cells. @param {Float32Array} xy @param {Bounds} bounds @returns {Grid} */
function makeGrid(xy, bounds) {
  const count = xy.length >> 1;
  const side = Math.max(1, Math.min(256, Math.round(Math.sqrt(count / 2))));
  const starts = new Uint32Array(side * side + 1);
  const cells = new Uint32Array(count);
  for (let row = 0; row < count; row++) {
    const [column, line] = cellOf(bounds, side, xy[2 * row], xy[2 * row + 1]);
    cells[row] = line * side + column;
    starts[cells[row] + 1]++;
  }
  for (let cell = 0; cell < side * side; cell++) starts[cell + 1] += starts[cell];
  const next = starts.slice();
  const rows = new Uint32Array(count);
  for (let row = 0; row < count; row++) rows[next[cells[row]]++] = row;
  return { bounds, side, starts, rows };
}

/** @param {Bounds} bounds @param {number} side @param {number} x @param {number} y */
function cellOf(bounds, side, x, y) {
  const cell = (/** @type {number} */ v, /** @type {number} */ low, /** @type {number} */ high) =>
    Math.max(0, Math.min(side - 1, Math.floor(((v - low) / (high - low || 1)) * side)));
  return [cell(x, bounds.left, bounds.right), cell(y, bounds.bottom, bounds.top)];
}

/**
 * The point nearest to a position, within a radius.
 * @param {Layout} layout
 * @param {number} x
 * @param {number} y
 * @param {number} radius
 * @returns {number|null} its row
 */
export function nearestRow(layout, x, y, radius) {
  const { grid, xy } = layout;
  const [left, low] = cellOf(grid.bounds, grid.side, x - radius, y - radius);
  const [right, high] = cellOf(grid.bounds, grid.side, x + radius, y + radius);
  let best = null,
    smallest = radius * radius;
  for (let line = low; line <= high; line++) {
    for (let column = left; column <= right; column++) {
      const cell = line * grid.side + column;
      for (let at = grid.starts[cell]; at < grid.starts[cell + 1]; at++) {
        const row = grid.rows[at];
        const square = (xy[2 * row] - x) ** 2 + (xy[2 * row + 1] - y) ** 2;
        if (square <= smallest) {
          smallest = square;
          best = row;
        }
      }
    }
  }
  return best;
}

/** The mean position of some points. @param {Layout} layout @param {Id[]} ids @returns {[number, number]|null} */
export function centroid(layout, ids) {
  const rows = ids.map((id) => layout.rows.get(id)).filter((row) => row !== undefined);
  if (!rows.length) return null;
  const sum = rows.reduce((s, row) => [s[0] + layout.xy[2 * row], s[1] + layout.xy[2 * row + 1]], [0, 0]);
  return [sum[0] / rows.length, sum[1] / rows.length];
}

/** @typedef {{scale: number, shift: number}} Axis from a position to a vector */
/** @typedef {Axis[]} Plane an axis for each number of a vector */

/** Where a first query shows most: the inner tip of a moon, the middle ring. @type {Record<string, [number, number]>} */
const FIRST_POSITION = { "two-moons": [0.98, 0.1], "three-rings": [0, 2] };

/** Rows of the points that lie farthest out along each axis. @param {Layout} layout @returns {[number, number][]} */
function extremeRows(layout) {
  return [0, 1].map((axis) => {
    let low = 0,
      high = 0;
    for (let row = 1; row < layout.ids.length; row++) {
      const at = layout.xy[2 * row + axis];
      if (at < layout.xy[2 * low + axis]) low = row;
      if (at > layout.xy[2 * high + axis]) high = row;
    }
    return [low, high];
  });
}

/** @param {number} low position @param {number} high @param {number} first value at low @param {number} last @returns {Axis} */
function fitAxis(low, high, first, last) {
  const scale = high > low ? (last - first) / (high - low) : 1;
  return { scale, shift: first - scale * low };
}

/** @param {string} name @param {Layout} layout @param {AbortSignal} [signal] @returns {Promise<Plane|null>} */
export async function fetchPlane(name, layout, signal) {
  if (!layout.ids.length) return null;
  const rows = extremeRows(layout),
    ids = [...new Set(rows.flat())].map((row) => layout.ids[row]);
  const vectors = await api.vectors(name, ids, signal);
  const at = (/** @type {number} */ row) => /** @type {number[]} */ (vectors.get(layout.ids[row]));
  const axes = rows.slice(0, at(rows[0][0]).length);
  return axes.map(([low, high], axis) =>
    fitAxis(layout.xy[2 * low + axis], layout.xy[2 * high + axis], at(low)[axis], at(high)[axis]),
  );
}

/** @param {Plane} plane @param {[number, number]} position @returns {number[]} */
export function positionToVector(plane, position) {
  return plane.map(({ scale, shift }, axis) => scale * position[axis] + shift);
}

/** @param {Plane} plane @param {number[]} vector @returns {[number, number]} */
export function vectorToPosition(plane, vector) {
  const [x, y = 0] = plane.map(({ scale, shift }, axis) => (vector[axis] - shift) / scale);
  return [x, y];
}

/** The point to begin with when the query has no example. @param {string} name @param {Layout} layout @param {Plane|null} plane @returns {Id} */
export function firstExample(name, layout, plane) {
  const at = plane && name in FIRST_POSITION ? vectorToPosition(plane, FIRST_POSITION[name]) : null;
  return layout.ids[(at && nearestRow(layout, at[0], at[1], Infinity)) ?? 0];
}
