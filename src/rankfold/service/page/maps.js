/** Two maps in step: points, the overlay above them, and animated colours. */

import { nearestRow } from "./layout.js";
import { CanvasRenderer, WebglRenderer, blend } from "./renderer.js";
import { Viewport, bindGestures } from "./viewport.js";

/** @typedef {import("./api.js").Id} Id */
/** @typedef {import("./layout.js").Layout} Layout */
/** @typedef {[number, number]} Position */
/**
 * @typedef {object} Overlay
 * @property {Position[]} examples
 * @property {Position[]} negatives
 * @property {Position[]} right
 * @property {Position[]} wrong
 * @property {Position[]} listed results of the list
 * @property {Position|null} selected
 * @property {{from: Position, to: Position, weight: number}[]} path weights 0 to 1
 * @property {{from: Position, to: Position}[]} lines
 */

/** @returns {Overlay} */
function emptyOverlay() {
  return { examples: [], negatives: [], right: [], wrong: [], listed: [], selected: null, path: [], lines: [] };
}

/** Draws at positions on the map, in pixels of the screen. */
class OverlayPen {
  /** @param {CanvasRenderingContext2D} context @param {import("./viewport.js").Viewport} viewport */
  constructor(context, viewport) {
    this.context = context;
    this.viewport = viewport;
  }

  /** @param {Position} position */
  at(position) {
    return this.viewport.toPixel(position[0], position[1]);
  }

  /** @param {number} width @param {string} colour */
  stroke(width, colour) {
    this.context.lineWidth = width;
    this.context.strokeStyle = colour;
    this.context.stroke();
  }

  /** @param {Position} from @param {Position} to @param {number} width @param {string} colour */
  line(from, to, width, colour) {
    this.context.beginPath();
    this.context.moveTo(...this.at(from));
    this.context.lineTo(...this.at(to));
    this.stroke(width, colour);
  }

  /** @param {Position} position @param {number} radius @param {number} width @param {string} colour @param {string} [fill] */
  ring(position, radius, width, colour, fill = "") {
    const { context } = this;
    context.beginPath();
    context.arc(...this.at(position), radius, 0, 2 * Math.PI);
    if (fill) {
      context.fillStyle = fill;
      context.fill();
    }
    this.stroke(width, colour);
  }

  /** @param {Position} position @param {number} arm @param {number} width @param {string} colour */
  cross(position, arm, width, colour) {
    const { context } = this,
      [x, y] = this.at(position);
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
 * @param {import("./viewport.js").Viewport} viewport
 * @param {Overlay} overlay
 * @param {number} ratio
 * @param {number} size diameter of a point
 */
function drawOverlay(canvas, viewport, overlay, ratio, size) {
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  const style = getComputedStyle(canvas);
  const [ink, ground, path, right, wrong] = ["--ink", "--map", "--path", "--right", "--wrong"].map((name) =>
    style.getPropertyValue(name).trim(),
  );
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, viewport.width, viewport.height);
  context.lineCap = context.lineJoin = "round";
  const pen = new OverlayPen(context, viewport);
  const near = Math.max(5, size / 2 + 2.5);
  for (const position of overlay.listed) pen.ring(position, Math.max(2.8, size / 2 + 1), 1.3, path);
  context.setLineDash([5, 6]);
  for (const { from, to } of overlay.lines) pen.line(from, to, 2, path);
  context.setLineDash([]);
  for (const { from, to, weight } of overlay.path) pen.line(from, to, 4.5 + 5 * weight, ground);
  for (const { from, to, weight } of overlay.path) pen.line(from, to, 1.5 + 5 * weight, path);
  for (const { to } of overlay.path) pen.ring(to, 2.4, 1.5, path, ground);
  for (const position of overlay.right) pen.ring(position, near + 1, 2.5, right);
  for (const position of overlay.wrong) {
    pen.cross(position, near, 5, ground);
    pen.cross(position, near, 2.5, wrong);
  }
  for (const position of overlay.negatives) {
    pen.cross(position, near + 1, 6, ground);
    pen.cross(position, near + 1, 3.5, wrong);
  }
  for (const position of overlay.examples) {
    pen.ring(position, 9, 6, ground);
    pen.ring(position, 9, 2.5, path, ground);
    pen.ring(position, 3, 2, path, path);
  }
  if (overlay.selected) {
    pen.ring(overlay.selected, near + 1.5, 5, ground);
    pen.ring(overlay.selected, near + 1.5, 2.5, ink);
  }
}

/** @typedef {"plain"|"shape"} Side */
/** @typedef {{colours: Uint8Array, delay: Float32Array, order: Uint32Array}} Colouring */

const FLOW_MS = 900,
  FADE_MS = 260;
const PICK_RADIUS = 14;

class Panel {
  /** @param {HTMLElement} element */
  constructor(element) {
    this.element = element;
    this.pointCanvas = /** @type {HTMLCanvasElement} */ (element.querySelector("canvas.points"));
    this.overlayCanvas = /** @type {HTMLCanvasElement} */ (element.querySelector("canvas.over"));
    this.renderer = WebglRenderer.make(this.pointCanvas) ?? new CanvasRenderer(this.pointCanvas);
    element.dataset.renderer = this.renderer instanceof WebglRenderer ? "webgl2" : "canvas";
    this.overlay = emptyOverlay();
    /** @type {import("./renderer.js").Transition|null} */
    this.transition = null;
    this.started = 0;
    this.duration = 0;
  }

  /** How far the change of colours is. @param {number} now */
  time(now) {
    return this.duration ? Math.min(1, (now - this.started) / this.duration) : 1;
  }
}

export class Maps {
  /**
   * @param {Record<Side, HTMLElement>} elements
   * @param {(row: number|null, position: [number, number], add: boolean) => void} onSelect
   * @param {(row: number|null) => void} onHover
   * @param {(zoomed: boolean) => void} onZoom
   */
  constructor(elements, onSelect, onHover, onZoom) {
    this.viewport = new Viewport();
    this.panels = { plain: new Panel(elements.plain), shape: new Panel(elements.shape) };
    /** @type {Layout|null} */
    this.layout = null;
    this.frame = 0;
    this.reducedMotion = matchMedia("(prefers-reduced-motion: reduce)");
    this.viewport.onChange = () => {
      for (const panel of this.sides) panel.element.dataset.zoomed = String(!this.viewport.showsAll);
      onZoom(!this.viewport.showsAll);
      this.redraw();
    };
    for (const panel of this.sides) {
      panel.renderer.onRestored = () => this.redraw();
      bindGestures(panel.element, this.viewport, {
        select: (px, py, add) => onSelect(this.rowAt(px, py), this.viewport.toPosition(px, py), add),
        hover: (px, py) => onHover(px === null || py === null ? null : this.rowAt(px, py)),
      });
      new ResizeObserver(() => this.measure()).observe(panel.element);
    }
  }

  get sides() {
    return [this.panels.plain, this.panels.shape];
  }

  measure() {
    const box = this.panels.plain.element.getBoundingClientRect();
    if (box.width && box.height) this.viewport.resize(box.width, box.height);
  }

  /** @param {number} px @param {number} py */
  rowAt(px, py) {
    if (!this.layout) return null;
    const [x, y] = this.viewport.toPosition(px, py);
    return nearestRow(this.layout, x, y, PICK_RADIUS / this.viewport.scale);
  }

  /** Where a point is on the map. @param {Id} id @returns {Position|null} */
  position(id) {
    const row = this.layout?.rows.get(id);
    if (row === undefined || !this.layout) return null;
    return [this.layout.xy[2 * row], this.layout.xy[2 * row + 1]];
  }

  /** Where points are that the map has. @param {Id[]} ids @returns {Position[]} */
  positions(ids) {
    return ids.map((id) => this.position(id)).filter((position) => position !== null);
  }

  /** @param {Layout} layout @param {boolean} [stay] where the view is */
  setLayout(layout, stay = false) {
    this.layout = layout;
    for (const panel of this.sides) {
      panel.renderer.setPositions(layout.xy);
      panel.transition = null;
      panel.overlay = emptyOverlay();
    }
    this.measure();
    if (stay && !this.viewport.showsAll) {
      this.viewport.bounds = layout.bounds;
      this.viewport.clamp();
    } else this.viewport.fit(layout.bounds);
  }

  /** Change the colours of a map. @param {Side} side @param {Colouring} target @param {boolean} flow in order of rank */
  recolour(side, target, flow) {
    const panel = this.panels[side],
      now = performance.now();
    const before = panel.transition ? blend(panel.transition, panel.time(now)) : blank(target.colours);
    const delay = flow ? target.delay : new Float32Array(target.delay.length);
    panel.transition = { before, after: target.colours, delay, order: target.order };
    panel.started = now;
    panel.duration = this.reducedMotion.matches ? 0 : flow ? FLOW_MS : FADE_MS;
    panel.renderer.setTransition(panel.transition);
    this.redraw();
  }

  /** @param {Side} side @param {Partial<Overlay>} change */
  setOverlay(side, change) {
    Object.assign(this.panels[side].overlay, change);
    this.redraw();
  }

  redraw() {
    if (!this.frame) this.frame = requestAnimationFrame((now) => this.draw(now));
  }

  /** @param {number} now */
  draw(now) {
    this.frame = 0;
    const ratio = Math.min(3, window.devicePixelRatio || 1);
    const size = this.viewport.pointSize(this.layout?.ids.length ?? 1);
    let moving = false;
    for (const panel of this.sides) {
      for (const canvas of [panel.pointCanvas, panel.overlayCanvas]) {
        const width = Math.round(this.viewport.width * ratio),
          height = Math.round(this.viewport.height * ratio);
        if (canvas.width !== width) canvas.width = width;
        if (canvas.height !== height) canvas.height = height;
      }
      const time = panel.time(now);
      panel.renderer.draw(this.viewport, size, time, ratio);
      drawOverlay(panel.overlayCanvas, this.viewport, panel.overlay, ratio, size);
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
