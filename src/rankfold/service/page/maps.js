/** Two maps in step: points, what lies over them, and colours that flow. */

import { FlatPoints } from "./flat.js";
import { listen } from "./gestures.js";
import { GlPoints } from "./gl.js";
import { drawScene, emptyScene } from "./overlay.js";
import { mixed } from "./painting.js";
import { nearest } from "./places.js";
import { View } from "./view.js";

/** @typedef {import("./places.js").Places} Places */
/** @typedef {"plain"|"shape"} Side */
/** @typedef {{colours: Uint8Array, delay: Float32Array, order: Uint32Array}} Target */

const FLOW = 900,
  SLIDE = 260;
const REACH = 14;

class Panel {
  /** @param {HTMLElement} element */
  constructor(element) {
    this.element = element;
    this.below = /** @type {HTMLCanvasElement} */ (element.querySelector("canvas.points"));
    this.above = /** @type {HTMLCanvasElement} */ (element.querySelector("canvas.over"));
    this.points = GlPoints.make(this.below) ?? new FlatPoints(this.below);
    element.dataset.renderer = this.points instanceof GlPoints ? "webgl2" : "canvas";
    this.scene = emptyScene();
    /** @type {import("./gl.js").Paint|null} */
    this.paint = null;
    this.begun = 0;
    this.lasts = 0;
  }

  /** How far the change of colours is. @param {number} now */
  time(now) {
    return this.lasts ? Math.min(1, (now - this.begun) / this.lasts) : 1;
  }
}

export class Maps {
  /**
   * @param {Record<Side, HTMLElement>} elements
   * @param {(row: number|null, place: [number, number], more: boolean) => void} onPick
   * @param {(row: number|null) => void} onLook
   * @param {(zoomed: boolean) => void} onZoom
   */
  constructor(elements, onPick, onLook, onZoom) {
    this.view = new View();
    this.panels = { plain: new Panel(elements.plain), shape: new Panel(elements.shape) };
    /** @type {Places|null} */
    this.places = null;
    this.frame = 0;
    this.calm = matchMedia("(prefers-reduced-motion: reduce)");
    this.view.onChange = () => {
      for (const panel of this.sides) panel.element.dataset.zoomed = String(!this.view.fits);
      onZoom(!this.view.fits);
      this.redraw();
    };
    for (const panel of this.sides) {
      panel.points.onRestored = () => this.redraw();
      listen(panel.element, this.view, {
        pick: (px, py, more) => onPick(this.rowAt(px, py), this.view.toPlace(px, py), more),
        look: (px, py) => onLook(px === null || py === null ? null : this.rowAt(px, py)),
      });
      new ResizeObserver(() => this.measure()).observe(panel.element);
    }
  }

  get sides() {
    return [this.panels.plain, this.panels.shape];
  }

  measure() {
    const box = this.panels.plain.element.getBoundingClientRect();
    if (box.width && box.height) this.view.resize(box.width, box.height);
  }

  /** @param {number} px @param {number} py */
  rowAt(px, py) {
    if (!this.places) return null;
    const [x, y] = this.view.toPlace(px, py);
    return nearest(this.places, x, y, REACH / this.view.scale);
  }

  /** @param {Places} places @param {boolean} [stay] where the view is */
  setPlaces(places, stay = false) {
    this.places = places;
    for (const panel of this.sides) {
      panel.points.setPlaces(places.xy);
      panel.paint = null;
      panel.scene = emptyScene();
    }
    this.measure();
    if (stay && !this.view.fits) {
      this.view.bounds = places.bounds;
      this.view.keepInside();
    } else this.view.fit(places.bounds);
  }

  /** Change the colours of a map. @param {Side} side @param {Target} target @param {boolean} flow in order of rank */
  recolour(side, target, flow) {
    const panel = this.panels[side],
      now = performance.now();
    const before = panel.paint ? mixed(panel.paint, panel.time(now)) : blank(target.colours);
    const delay = flow ? target.delay : new Float32Array(target.delay.length);
    panel.paint = { before, after: target.colours, delay, order: target.order };
    panel.begun = now;
    panel.lasts = this.calm.matches ? 0 : flow ? FLOW : SLIDE;
    panel.points.setPaint(panel.paint);
    this.redraw();
  }

  /** @param {Side} side @param {Partial<import("./overlay.js").Scene>} change */
  setScene(side, change) {
    Object.assign(this.panels[side].scene, change);
    this.redraw();
  }

  redraw() {
    if (!this.frame) this.frame = requestAnimationFrame((now) => this.draw(now));
  }

  /** @param {number} now */
  draw(now) {
    this.frame = 0;
    const ratio = Math.min(3, window.devicePixelRatio || 1);
    const size = this.view.pointSize(this.places?.ids.length ?? 1);
    let moving = false;
    for (const panel of this.sides) {
      for (const canvas of [panel.below, panel.above]) {
        const width = Math.round(this.view.width * ratio),
          height = Math.round(this.view.height * ratio);
        if (canvas.width !== width) canvas.width = width;
        if (canvas.height !== height) canvas.height = height;
      }
      const time = panel.time(now);
      panel.points.draw(this.view, size, time, ratio);
      drawScene(panel.above, this.view, panel.scene, ratio, size);
      moving ||= time < 1;
    }
    if (moving) this.redraw();
  }
}

/** The neutral colours that a map has before its first answer. @param {Uint8Array} colours */
function blank(colours) {
  const grey = new Uint8Array(colours.length);
  for (let at = 0; at < grey.length; at++) grey[at] = at % 4 === 3 ? 0 : 140;
  return grey;
}
