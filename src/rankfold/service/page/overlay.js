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

/** Draws at places of the map, in pixels of the screen. */
class Pen {
  /** @param {CanvasRenderingContext2D} context @param {import("./view.js").View} view */
  constructor(context, view) {
    this.context = context;
    this.view = view;
  }

  /** @param {Place} place */
  at(place) {
    return this.view.toPixel(place[0], place[1]);
  }

  /** @param {number} width @param {string} colour */
  stroke(width, colour) {
    this.context.lineWidth = width;
    this.context.strokeStyle = colour;
    this.context.stroke();
  }

  /** @param {Place} from @param {Place} to @param {number} width @param {string} colour */
  line(from, to, width, colour) {
    this.context.beginPath();
    this.context.moveTo(...this.at(from));
    this.context.lineTo(...this.at(to));
    this.stroke(width, colour);
  }

  /** @param {Place} place @param {number} radius @param {number} width @param {string} colour @param {string} [fill] */
  ring(place, radius, width, colour, fill = "") {
    const { context } = this;
    context.beginPath();
    context.arc(...this.at(place), radius, 0, 2 * Math.PI);
    if (fill) {
      context.fillStyle = fill;
      context.fill();
    }
    this.stroke(width, colour);
  }

  /** @param {Place} place @param {number} arm @param {number} width @param {string} colour */
  cross(place, arm, width, colour) {
    const { context } = this,
      [x, y] = this.at(place);
    context.beginPath();
    context.moveTo(x - arm, y - arm);
    context.lineTo(x + arm, y + arm);
    context.moveTo(x + arm, y - arm);
    context.lineTo(x - arm, y + arm);
    this.stroke(width, colour);
  }
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
  const [ink, ground, path, right, wrong] = ["--ink", "--map", "--path", "--right", "--wrong"].map((name) =>
    style.getPropertyValue(name).trim(),
  );
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, view.width, view.height);
  context.lineCap = context.lineJoin = "round";
  const pen = new Pen(context, view);
  const near = Math.max(5, size / 2 + 2.5);
  for (const place of scene.shown) pen.ring(place, Math.max(2.8, size / 2 + 1), 1.3, path);
  context.setLineDash([5, 6]);
  for (const { from, to } of scene.straight) pen.line(from, to, 2, path);
  context.setLineDash([]);
  for (const { from, to, weight } of scene.path) pen.line(from, to, 4.5 + 5 * weight, ground);
  for (const { from, to, weight } of scene.path) pen.line(from, to, 1.5 + 5 * weight, path);
  for (const { to } of scene.path) pen.ring(to, 2.4, 1.5, path, ground);
  for (const place of scene.right) pen.ring(place, near + 1, 2.5, right);
  for (const place of scene.wrong) {
    pen.cross(place, near, 5, ground);
    pen.cross(place, near, 2.5, wrong);
  }
  for (const place of scene.against) {
    pen.cross(place, near + 1, 6, ground);
    pen.cross(place, near + 1, 3.5, wrong);
  }
  for (const place of scene.examples) {
    pen.ring(place, 9, 6, ground);
    pen.ring(place, 9, 2.5, path, ground);
    pen.ring(place, 3, 2, path, path);
  }
  if (scene.looked) {
    pen.ring(scene.looked, near + 1.5, 5, ground);
    pen.ring(scene.looked, near + 1.5, 2.5, ink);
  }
}
