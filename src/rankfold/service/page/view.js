/** The part of the map that both maps show. */

/** @typedef {import("./places.js").Bounds} Bounds */

const MARGIN = 26;
const MOST_ZOOM = 400;

export class View {
  constructor() {
    /** @type {Bounds} */
    this.bounds = { left: -1, right: 1, bottom: -1, top: 1 };
    this.width = 1;
    this.height = 1;
    this.zoom = 1;
    this.x = 0;
    this.y = 0;
    /** @type {() => void} */
    this.onChange = () => {};
  }

  /** Pixels a unit. */
  get scale() {
    const { left, right, bottom, top } = this.bounds;
    const across = Math.max(40, this.width - 2 * MARGIN) / (right - left || 1);
    const upwards = Math.max(40, this.height - 2 * MARGIN) / (top - bottom || 1);
    return Math.min(across, upwards) * this.zoom;
  }

  get fits() {
    return this.zoom <= 1.001;
  }

  /** Show everything. @param {Bounds} [bounds] */
  fit(bounds = this.bounds) {
    this.bounds = bounds;
    this.zoom = 1;
    this.x = (bounds.left + bounds.right) / 2;
    this.y = (bounds.bottom + bounds.top) / 2;
    this.onChange();
  }

  /** @param {number} width @param {number} height */
  resize(width, height) {
    this.width = width;
    this.height = height;
    this.onChange();
  }

  /** Zoom so that what is under a pixel stays there. @param {number} factor @param {number} [px] @param {number} [py] */
  zoomBy(factor, px = this.width / 2, py = this.height / 2) {
    const [x, y] = this.toPlace(px, py);
    this.zoom = Math.min(MOST_ZOOM, Math.max(1, this.zoom * factor));
    this.x = x - (px - this.width / 2) / this.scale;
    this.y = y + (py - this.height / 2) / this.scale;
    this.keepInside();
  }

  /** @param {number} dx pixels @param {number} dy */
  panBy(dx, dy) {
    this.x -= dx / this.scale;
    this.y += dy / this.scale;
    this.keepInside();
  }

  keepInside() {
    const { left, right, bottom, top } = this.bounds;
    const slack = (/** @type {number} */ size, /** @type {number} */ pixels) =>
      Math.max(0, size / 2 - (pixels / 2 - MARGIN) / this.scale);
    const across = slack(right - left, this.width), upwards = slack(top - bottom, this.height);
    const clamp = (/** @type {number} */ v, /** @type {number} */ c, /** @type {number} */ room) =>
      Math.min(c + room, Math.max(c - room, v));
    this.x = clamp(this.x, (left + right) / 2, across);
    this.y = clamp(this.y, (bottom + top) / 2, upwards);
    this.onChange();
  }

  /** @param {number} px @param {number} py @returns {[number, number]} */
  toPlace(px, py) {
    return [this.x + (px - this.width / 2) / this.scale, this.y - (py - this.height / 2) / this.scale];
  }

  /** @param {number} x @param {number} y @returns {[number, number]} */
  toPixel(x, y) {
    return [(x - this.x) * this.scale + this.width / 2, (this.y - y) * this.scale + this.height / 2];
  }

  /** Diameter of a point in pixels. @param {number} count of points */
  pointSize(count) {
    const room = Math.sqrt((this.width * this.height) / Math.max(1, count));
    const base = Math.min(9, Math.max(2.8, 0.42 * room));
    return Math.min(16, base * this.zoom ** 0.45);
  }
}
