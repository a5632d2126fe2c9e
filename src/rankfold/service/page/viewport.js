/** The part of the map that both maps show: pan and zoom, by pointer, wheel and keys. */

/** @typedef {import("./layout.js").Bounds} Bounds */

const MARGIN = 26;
const MAX_ZOOM = 400;

export class Viewport {
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

  get showsAll() {
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
    const [x, y] = this.toPosition(px, py);
    this.zoom = Math.min(MAX_ZOOM, Math.max(1, this.zoom * factor));
    this.x = x - (px - this.width / 2) / this.scale;
    this.y = y + (py - this.height / 2) / this.scale;
    this.clamp();
  }

  /** @param {number} dx pixels @param {number} dy */
  panBy(dx, dy) {
    this.x -= dx / this.scale;
    this.y += dy / this.scale;
    this.clamp();
  }

  clamp() {
    const { left, right, bottom, top } = this.bounds;
    const slack = (/** @type {number} */ size, /** @type {number} */ pixels) =>
      Math.max(0, size / 2 - (pixels / 2 - MARGIN) / this.scale);
    const across = slack(right - left, this.width),
      upwards = slack(top - bottom, this.height);
    const limit = (/** @type {number} */ v, /** @type {number} */ c, /** @type {number} */ room) =>
      Math.min(c + room, Math.max(c - room, v));
    this.x = limit(this.x, (left + right) / 2, across);
    this.y = limit(this.y, (bottom + top) / 2, upwards);
    this.onChange();
  }

  /** @param {number} px @param {number} py @returns {[number, number]} */
  toPosition(px, py) {
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

/**
 * @typedef {object} Handlers
 * @property {(px: number, py: number, add: boolean) => void} select
 * @property {(px: number|null, py: number|null) => void} hover null: the pointer has left
 */

const CLICK_TOLERANCE = 5;

/**
 * @param {HTMLElement} element
 * @param {Viewport} viewport
 * @param {Handlers} handlers
 */
export function bindGestures(element, viewport, handlers) {
  /** @type {Map<number, {x: number, y: number}>} */
  const pointers = new Map();
  let start = { x: 0, y: 0 },
    moved = false,
    gap = 0;
  const at = (/** @type {MouseEvent} */ event) => {
    const box = element.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  const pinch = () => {
    const [a, b] = [...pointers.values()];
    return { gap: Math.hypot(a.x - b.x, a.y - b.y), x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 };
  };

  element.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    pointers.set(event.pointerId, at(event));
    if (pointers.size === 1) {
      start = at(event);
      moved = false;
    }
    if (pointers.size === 2) {
      gap = pinch().gap;
      moved = true;
    }
    element.setPointerCapture(event.pointerId);
  });

  element.addEventListener("pointermove", (event) => {
    const here = at(event),
      before = pointers.get(event.pointerId);
    if (!before) {
      if (event.pointerType !== "touch") handlers.hover(here.x, here.y);
      return;
    }
    if (!moved && Math.hypot(here.x - start.x, here.y - start.y) < CLICK_TOLERANCE) return;
    moved = true;
    pointers.set(event.pointerId, here);
    if (pointers.size === 1) viewport.panBy(here.x - before.x, here.y - before.y);
    if (pointers.size === 2) {
      const now = pinch();
      viewport.panBy((here.x - before.x) / 2, (here.y - before.y) / 2);
      if (gap > 0) viewport.zoomBy(now.gap / gap, now.x, now.y);
      gap = now.gap;
    }
  });

  element.addEventListener("pointerup", (event) => {
    const here = at(event);
    if (pointers.delete(event.pointerId) && !pointers.size && !moved) {
      handlers.select(here.x, here.y, event.altKey || event.shiftKey);
    }
  });
  element.addEventListener("pointercancel", (event) => pointers.delete(event.pointerId));
  element.addEventListener("pointerleave", (event) => {
    if (event.pointerType !== "touch") handlers.hover(null, null);
  });

  element.addEventListener(
    "wheel",
    (event) => {
      // A map that shows everything lets the page scroll past it.
      const scrolls = viewport.showsAll && !event.ctrlKey && (event.deltaY > 0 || window.scrollY > 0);
      if (scrolls) return;
      event.preventDefault();
      const here = at(event),
        unit = event.deltaMode === 1 ? 24 : 1;
      viewport.zoomBy(Math.exp(-Math.max(-240, Math.min(240, event.deltaY * unit)) * 0.0022), here.x, here.y);
    },
    { passive: false },
  );

  element.addEventListener("dblclick", (event) => event.preventDefault());

  element.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target !== element) return;
    const step = 40;
    /** @type {Record<string, () => void>} */
    const keys = {
      ArrowLeft: () => viewport.panBy(step, 0),
      ArrowRight: () => viewport.panBy(-step, 0),
      ArrowUp: () => viewport.panBy(0, step),
      ArrowDown: () => viewport.panBy(0, -step),
      "+": () => viewport.zoomBy(1.4),
      "=": () => viewport.zoomBy(1.4),
      "-": () => viewport.zoomBy(1 / 1.4),
      0: () => viewport.fit(),
    };
    const action = keys[event.key];
    if (!action || (viewport.showsAll && event.key.startsWith("Arrow"))) return;
    event.preventDefault();
    action();
  });
}
