/** Points drawn on a plain canvas, where there is no WebGL2. */

import { faintness } from "./gl.js";
import { mixed } from "./painting.js";

export class FlatPoints {
  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    this.context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    /** @type {Float32Array|null} */
    this.xy = null;
    /** @type {import("./gl.js").Paint|null} */
    this.paint = null;
    /** @type {() => void} */
    this.onRestored = () => {};
  }

  /** @param {Float32Array} xy */
  setPlaces(xy) {
    this.xy = xy;
    this.paint = null;
  }

  /** @param {import("./gl.js").Paint} paint */
  setPaint(paint) {
    this.paint = paint;
  }

  /** @param {import("./view.js").View} view @param {number} size @param {number} time @param {number} ratio */
  draw(view, size, time, ratio) {
    const { context, canvas, xy, paint } = this;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, canvas.width, canvas.height);
    if (!xy || !paint) return;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const colours = mixed(paint, time);
    const faint = faintness(paint.order.length);
    const round = paint.order.length <= 20000;
    for (const row of paint.order) {
      const [px, py] = view.toPixel(xy[2 * row], xy[2 * row + 1]);
      if (px < -size || py < -size || px > view.width + size || py > view.height + size) continue;
      const strength = colours[4 * row + 3] / 255;
      const radius = 0.5 * size * (0.8 + 0.2 * strength);
      context.fillStyle = `rgb(${colours[4 * row]} ${colours[4 * row + 1]} ${colours[4 * row + 2]} / ${faint + (1 - faint) * strength})`;
      if (round) {
        context.beginPath();
        context.arc(px, py, radius, 0, 2 * Math.PI);
        context.fill();
      } else context.fillRect(px - radius, py - radius, 2 * radius, 2 * radius);
    }
  }
}
