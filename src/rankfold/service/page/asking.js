/** From what the user asks to requests, one at a time and in order. */

/** @typedef {import("./link.js").Asked} Asked */
/** @typedef {import("./api.js").Info} Info */

export const SHOWN = 20;
export const SMOOTHNESS = 30;

/** Methods that can end early, before their best results are proven. */
export const BUDGETED = ["ran", "pagerank", "manifold"];

/** Points that may get a score: so few that a click is answered at once, in an index of any size. */
export const BUDGET = 2500;

/** How plain distance shares in the score, where nothing else is asked for. @param {string} method */
export function usualFusion(method) {
  return method === "ran" ? "auto" : "none";
}

/** Whether shape and distance can be fused. @param {string} method */
export function fuses(method) {
  return method !== "euclidean";
}

/** How many places are asked for. @param {Info} info */
export function depthOf(info) {
  return Math.max(1, Math.min(2000, info.limits?.top ?? 2000, info.points));
}

/** The query by the chosen method, as the API takes it. @param {Asked} asked */
export function shapeQuery(asked) {
  /** @type {Record<string, number|string>} */
  const parameters = {};
  if (asked.method === "ran") {
    if (asked.k !== null) parameters.n_neighbors = asked.k;
    if (asked.smoothness !== null) parameters.smoothness = asked.smoothness;
    if (asked.alternations !== null) parameters.max_iter = asked.alternations;
  }
  if (BUDGETED.includes(asked.method)) parameters.budget = asked.proven ? "proven" : BUDGET;
  if (asked.fusion !== null && fuses(asked.method)) parameters.fusion = asked.fusion;
  return {
    ids: asked.ids,
    vectors: asked.vectors,
    negative: asked.negative,
    where: asked.where.trim() || null,
    method: asked.method,
    parameters,
    columns: [],
  };
}

/**
 * All queries of one answer: plain distance, the method, and the diverse results where asked for.
 * @param {Asked} asked
 * @param {Info} info
 */
export function batch(asked, info) {
  const top = depthOf(info),
    shape = { ...shapeQuery(asked), top };
  /** @type {object[]} */
  const queries = [{ ...shape, method: "euclidean", parameters: {} }, shape];
  if (asked.diversity) queries.push({ ...shape, top: SHOWN, diversity: asked.diversity });
  return queries;
}

/** @typedef {(signal: AbortSignal, cut: AbortSignal) => Promise<void>} Task */

/**
 * Runs one task at a time, so that answers never come out of order and the server is not asked
 * for what nobody waits for. A task that comes while another runs waits, and a later one takes its
 * place. An urgent one makes the one that runs stale: its first signal says that its answer must
 * not be shown. The second one cuts it off, after some patience.
 */
export class Turns {
  /** @param {number} patience milliseconds @param {(busy: boolean) => void} [onBusy] */
  constructor(patience, onBusy = () => {}) {
    this.patience = patience;
    this.onBusy = onBusy;
    /** @type {{stale: AbortController, cut: AbortController}|null} */
    this.running = null;
    /** @type {Task|null} */
    this.waiting = null;
    this.timer = 0;
  }

  /** @param {Task} task @param {boolean} urgent */
  async take(task, urgent) {
    if (!this.running) return this.run(task);
    this.waiting = task;
    if (urgent && !this.running.stale.signal.aborted) {
      this.running.stale.abort();
      this.timer = window.setTimeout(() => this.next(), this.patience);
    }
  }

  /** @param {Task} task */
  async run(task) {
    const mine = (this.running = { stale: new AbortController(), cut: new AbortController() });
    this.onBusy(true);
    try {
      await task(mine.stale.signal, mine.cut.signal);
    } finally {
      if (this.running === mine) await this.next();
    }
  }

  /** End what runs, and begin what waits. */
  async next() {
    const task = this.waiting;
    this.stop();
    if (task) await this.run(task);
  }

  stop() {
    clearTimeout(this.timer);
    this.running?.stale.abort();
    this.running?.cut.abort();
    this.running = this.waiting = null;
    this.onBusy(false);
  }
}
