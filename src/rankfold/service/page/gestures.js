/** Pointer, wheel and keys on a map. */

/**
 * @typedef {object} Handlers
 * @property {(px: number, py: number, more: boolean) => void} pick
 * @property {(px: number|null, py: number|null) => void} look null: the pointer has left
 */

const STILL = 5;

/**
 * @param {HTMLElement} element
 * @param {import("./view.js").View} view
 * @param {Handlers} handlers
 */
export function listen(element, view, handlers) {
  /** @type {Map<number, {x: number, y: number}>} */
  const fingers = new Map();
  let begun = { x: 0, y: 0 }, moved = false, apart = 0;
  const at = (/** @type {MouseEvent} */ event) => {
    const box = element.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  const spread = () => {
    const [a, b] = [...fingers.values()];
    return { apart: Math.hypot(a.x - b.x, a.y - b.y), x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 };
  };

  element.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    fingers.set(event.pointerId, at(event));
    if (fingers.size === 1) { begun = at(event); moved = false; }
    if (fingers.size === 2) { apart = spread().apart; moved = true; }
    element.setPointerCapture(event.pointerId);
  });

  element.addEventListener("pointermove", (event) => {
    const here = at(event), before = fingers.get(event.pointerId);
    if (!before) {
      if (event.pointerType !== "touch") handlers.look(here.x, here.y);
      return;
    }
    if (!moved && Math.hypot(here.x - begun.x, here.y - begun.y) < STILL) return;
    moved = true;
    fingers.set(event.pointerId, here);
    if (fingers.size === 1) view.panBy(here.x - before.x, here.y - before.y);
    if (fingers.size === 2) {
      const now = spread();
      view.panBy((here.x - before.x) / 2, (here.y - before.y) / 2);
      if (apart > 0) view.zoomBy(now.apart / apart, now.x, now.y);
      apart = now.apart;
    }
  });

  element.addEventListener("pointerup", (event) => {
    const here = at(event);
    if (fingers.delete(event.pointerId) && !fingers.size && !moved) {
      handlers.pick(here.x, here.y, event.altKey || event.shiftKey);
    }
  });
  element.addEventListener("pointercancel", (event) => fingers.delete(event.pointerId));
  element.addEventListener("pointerleave", (event) => { if (event.pointerType !== "touch") handlers.look(null, null); });

  element.addEventListener("wheel", (event) => {
    // A map that shows everything lets the page scroll past it.
    const passing = view.fits && !event.ctrlKey && (event.deltaY > 0 || window.scrollY > 0);
    if (passing) return;
    event.preventDefault();
    const here = at(event), unit = event.deltaMode === 1 ? 24 : 1;
    view.zoomBy(Math.exp(-Math.max(-240, Math.min(240, event.deltaY * unit)) * 0.0022), here.x, here.y);
  }, { passive: false });

  element.addEventListener("dblclick", (event) => event.preventDefault());

  element.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target !== element) return;
    const step = 40;
    /** @type {Record<string, () => void>} */
    const keys = {
      ArrowLeft: () => view.panBy(step, 0), ArrowRight: () => view.panBy(-step, 0),
      ArrowUp: () => view.panBy(0, step), ArrowDown: () => view.panBy(0, -step),
      "+": () => view.zoomBy(1.4), "=": () => view.zoomBy(1.4), "-": () => view.zoomBy(1 / 1.4), 0: () => view.fit(),
    };
    const does = keys[event.key];
    if (!does || (view.fits && event.key.startsWith("Arrow"))) return;
    event.preventDefault();
    does();
  });
}
