/** From what the user asks to requests, one at a time and in order. */

/** @typedef {import("./link.js").Asked} Asked */
/** @typedef {import("./api.js").Info} Info */

export const SHOWN = 20;
export const SMOOTHNESS = 30;

/** How many places are asked for. @param {Info} info */
export function depthOf(info) {
  return Math.max(1, Math.min(2000, info.limits?.top ?? 2000, info.points));
}

/** The query by the chosen method, as the API takes it. @param {Asked} asked */
export function shapeQuery(asked) {
  /** @type {Record<string, number>} */
  const parameters = {};
  if (asked.method === "ran") {
    if (asked.k !== null) parameters.n_neighbors = asked.k;
    if (asked.smoothness !== null) parameters.smoothness = asked.smoothness;
    if (asked.alternations !== null) parameters.max_iter = asked.alternations;
  }
  return {
    ids: asked.ids, vectors: asked.vectors, negative: asked.negative, where: asked.where.trim() || null,
    method: asked.method, parameters, columns: [],
  };
}

/**
 * All queries of one answer: plain distance, the method, and the diverse results where asked for.
 * @param {Asked} asked
 * @param {Info} info
 */
export function batch(asked, info) {
  const top = depthOf(info), shape = { ...shapeQuery(asked), top };
  const queries = [{ ...shape, method: "euclidean", parameters: {} }, shape];
  if (asked.diversity) queries.push({ ...shape, top: SHOWN, diversity: asked.diversity });
  return queries;
}

/**
 * Runs one task at a time. A task that comes while another runs waits, and a later one takes its
 * place; an urgent one ends the one that runs. So answers never come out of order.
 */
export class Turns {
  constructor() {
    /** @type {AbortController|null} */
    this.running = null;
    /** @type {((signal: AbortSignal) => Promise<void>)|null} */
    this.waiting = null;
  }

  /** @param {(signal: AbortSignal) => Promise<void>} task @param {boolean} urgent */
  async take(task, urgent) {
    if (this.running && !urgent) {
      this.waiting = task;
      return;
    }
    this.running?.abort();
    this.waiting = null;
    const mine = (this.running = new AbortController());
    document.documentElement.classList.add("busy");
    try {
      await task(mine.signal);
    } finally {
      if (this.running === mine) {
        this.running = null;
        const next = this.waiting;
        this.waiting = null;
        if (next) this.take(next, false);
        else document.documentElement.classList.remove("busy");
      }
    }
  }

  stop() {
    this.running?.abort();
    this.running = this.waiting = null;
    document.documentElement.classList.remove("busy");
  }
}
