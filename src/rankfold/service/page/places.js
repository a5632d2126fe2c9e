/** Where the points are on the map, and which one is near a place. Pure but for `atob`. */

/** @typedef {import("./moves.js").Id} Id */
/**
 * @typedef {object} Places
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

/** @param {{ids: Id[], places: string, points: number, version: string}} given @returns {Places} */
export function readPlaces(given) {
  const text = atob(given.places);
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at++) bytes[at] = text.charCodeAt(at);
  const view = new DataView(bytes.buffer);
  const xy = new Float32Array(bytes.length >> 2);
  for (let at = 0; at < xy.length; at++) xy[at] = view.getFloat32(4 * at, true);
  const bounds = boundsOf(xy);
  const rows = new Map(given.ids.map((id, row) => [id, row]));
  const { ids, points, version } = given;
  return { ids, xy, rows, bounds, grid: makeGrid(xy, bounds), points, version };
}

/** @param {Float32Array} xy @returns {Bounds} */
export function boundsOf(xy) {
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
export function makeGrid(xy, bounds) {
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
  const part = (/** @type {number} */ v, /** @type {number} */ low, /** @type {number} */ high) =>
    Math.max(0, Math.min(side - 1, Math.floor(((v - low) / (high - low || 1)) * side)));
  return [part(x, bounds.left, bounds.right), part(y, bounds.bottom, bounds.top)];
}

/**
 * The point nearest to a place, within a radius.
 * @param {Places} places
 * @param {number} x
 * @param {number} y
 * @param {number} radius
 * @returns {number|null} its row
 */
export function nearest(places, x, y, radius) {
  const { grid, xy } = places;
  const [left, low] = cellOf(grid.bounds, grid.side, x - radius, y - radius);
  const [right, high] = cellOf(grid.bounds, grid.side, x + radius, y + radius);
  let best = null,
    least = radius * radius;
  for (let line = low; line <= high; line++) {
    for (let column = left; column <= right; column++) {
      const cell = line * grid.side + column;
      for (let at = grid.starts[cell]; at < grid.starts[cell + 1]; at++) {
        const row = grid.rows[at];
        const square = (xy[2 * row] - x) ** 2 + (xy[2 * row + 1] - y) ** 2;
        if (square <= least) {
          least = square;
          best = row;
        }
      }
    }
  }
  return best;
}

/** The middle of some points. @param {Places} places @param {Id[]} ids @returns {[number, number]|null} */
export function middle(places, ids) {
  const rows = ids.map((id) => places.rows.get(id)).filter((row) => row !== undefined);
  if (!rows.length) return null;
  const sum = rows.reduce((s, row) => [s[0] + places.xy[2 * row], s[1] + places.xy[2 * row + 1]], [0, 0]);
  return [sum[0] / rows.length, sum[1] / rows.length];
}
