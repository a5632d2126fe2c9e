/** What lies over the points: query, marks, the point looked at, and its path. */

/** @typedef {[number, number]} Place */
/**
 * @typedef {object} Scene
 * @property {Place[]} examples
 * @property {Place[]} against
 * @property {Place[]} right
 * @property {Place[]} wrong
 * @property {Place[]} shown results of the list
 * @property {Place|null} looked
 * @property {{from: Place, to: Place, weight: number}[]} path weights 0 to 1
 * @property {{from: Place, to: Place}[]} straight
 */

/** @returns {Scene} */
export function emptyScene() {
  return { examples: [], against: [], right: [], wrong: [], shown: [], looked: null, path: [], straight: [] };
}

/**
 * @param {HTMLCanvasElement} canvas
 * @param {import("./view.js").View} view
 * @param {Scene} scene
 * @param {number} ratio
 * @param {number} size diameter of a point
 */
export function drawScene(canvas, view, scene, ratio, size) {
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  const style = getComputedStyle(canvas);
  const ink = style.getPropertyValue("--ink").trim();
  const ground = style.getPropertyValue("--map").trim();
  const path = style.getPropertyValue("--path").trim();
  const right = style.getPropertyValue("--right").trim();
  const wrong = style.getPropertyValue("--wrong").trim();
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, view.width, view.height);
  context.lineCap = context.lineJoin = "round";
  const at = (/** @type {Place} */ place) => view.toPixel(place[0], place[1]);
  const line = (/** @type {Place} */ from, /** @type {Place} */ to, /** @type {number} */ width, /** @type {string} */ colour) => {
    context.beginPath();
    context.moveTo(...at(from));
    context.lineTo(...at(to));
    context.lineWidth = width;
    context.strokeStyle = colour;
    context.stroke();
  };
  const ring = (/** @type {Place} */ place, /** @type {number} */ radius, /** @type {number} */ width, /** @type {string} */ colour, fill = "") => {
    context.beginPath();
    context.arc(...at(place), radius, 0, 2 * Math.PI);
    if (fill) {
      context.fillStyle = fill;
      context.fill();
    }
    context.lineWidth = width;
    context.strokeStyle = colour;
    context.stroke();
  };
  const cross = (/** @type {Place} */ place, /** @type {number} */ arm, /** @type {number} */ width, /** @type {string} */ colour) => {
    const [x, y] = at(place);
    context.beginPath();
    context.moveTo(x - arm, y - arm);
    context.lineTo(x + arm, y + arm);
    context.moveTo(x + arm, y - arm);
    context.lineTo(x - arm, y + arm);
    context.lineWidth = width;
    context.strokeStyle = colour;
    context.stroke();
  };
  const near = Math.max(5, size / 2 + 2.5);
  for (const place of scene.shown) ring(place, Math.max(2.8, size / 2 + 1), 1.3, path);
  context.setLineDash([5, 6]);
  for (const { from, to } of scene.straight) line(from, to, 2, path);
  context.setLineDash([]);
  for (const { from, to, weight } of scene.path) line(from, to, 4.5 + 5 * weight, ground);
  for (const { from, to, weight } of scene.path) line(from, to, 1.5 + 5 * weight, path);
  for (const { to } of scene.path) ring(to, 2.4, 1.5, path, ground);
  for (const place of scene.right) ring(place, near + 1, 2.5, right);
  for (const place of scene.wrong) { cross(place, near, 5, ground); cross(place, near, 2.5, wrong); }
  for (const place of scene.against) { cross(place, near + 1, 6, ground); cross(place, near + 1, 3.5, wrong); }
  for (const place of scene.examples) {
    ring(place, 9, 6, ground);
    ring(place, 9, 2.5, path, ground);
    ring(place, 3, 2, path, path);
  }
  if (scene.looked) {
    ring(scene.looked, near + 1.5, 5, ground);
    ring(scene.looked, near + 1.5, 2.5, ink);
  }
}
