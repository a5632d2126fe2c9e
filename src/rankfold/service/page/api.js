/** The API of the server: JSON, errors, the API key, and requests that run one at a time. */

/** @typedef {string|number|bigint} Id bigint: beyond what a number holds */

const LONG_NUMBER = /(^|[^\d.])\d{16}/;
const WHOLE_NUMBER = /^-?\d+$/;

/** Newer than the types of the language that checkers know. */
const { rawJSON } = /** @type {{rawJSON?: (text: string) => unknown}} */ (/** @type {unknown} */ (JSON));

/** A whole number that this browser would round. */
class RoundedError extends Error {}

/** @param {string} text @returns {any} */
export function readJson(text) {
  if (!LONG_NUMBER.test(text)) return JSON.parse(text);
  const exact = (/** @type {string} */ _, /** @type {unknown} */ value, /** @type {{source?: string}} */ token) => {
    if (typeof value !== "number" || !Number.isInteger(value) || Number.isSafeInteger(value)) return value;
    if (token?.source === undefined || !rawJSON) throw new RoundedError();
    return WHOLE_NUMBER.test(token.source) ? BigInt(token.source) : value;
  };
  return JSON.parse(text, /** @type {any} */ (exact));
}

/** @param {unknown} value @returns {string} */
export function writeJson(value) {
  return JSON.stringify(value, (_, one) => (typeof one === "bigint" ? rawJSON?.(String(one)) : one));
}

/**
 * @typedef {object} Info
 * @property {string} name
 * @property {number} points
 * @property {number} features
 * @property {string} metric
 * @property {number} n_neighbors
 * @property {number} list_width
 * @property {Record<string, string>} columns
 * @property {string[]} text_columns where words can be found
 * @property {{name: string|null, column: string|null}|null} embedder what makes vectors of texts
 * @property {string|null} layout
 * @property {null|{width: number, height: number, colour: boolean, white: number|null}} image
 * @property {Id|null} query a point to begin with
 * @property {boolean} example
 * @property {Record<string, number>} limits
 * @property {string[]} methods
 * @property {string} version changes whenever the points do
 */

const KEY = "rankfold-key";

/** An answer that is an error: problem JSON, or no answer at all (status 0). */
export class ApiError extends Error {
  /**
   * @param {number} status
   * @param {string} detail
   * @param {{field: string, message: string}[]} [errors]
   * @param {number|null} [retryAfter] seconds
   * @param {number} [duration] seconds
   */
  constructor(status, detail, errors = [], retryAfter = null, duration = 0) {
    super(detail);
    this.status = status;
    this.errors = errors;
    this.retryAfter = retryAfter;
    this.duration = duration;
  }
}

/** Whether a key can be sent: browsers refuse other characters in a header. @param {string} key */
export function isValidKey(key) {
  return /^[\x20-\x7e]*$/.test(key);
}

/** @param {string} key empty: forget it */
export function storeKey(key) {
  if (key) sessionStorage.setItem(KEY, key);
  else sessionStorage.removeItem(KEY);
}

export function hasKey() {
  return sessionStorage.getItem(KEY) !== null;
}

/**
 * @param {string} path
 * @param {unknown} [body] sent as JSON where given
 * @param {AbortSignal} [signal]
 * @returns {Promise<any>}
 */
async function request(path, body, signal) {
  /** @type {Record<string, string>} */
  const headers = { Accept: "application/json" };
  const key = sessionStorage.getItem(KEY);
  if (key && isValidKey(key)) headers.Authorization = `Bearer ${key}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const started = performance.now();
  let response, content;
  try {
    response = await fetch(path, {
      method: body === undefined ? "GET" : "POST",
      headers,
      signal,
      body: body === undefined ? undefined : writeJson(body),
    });
    content = await response.text();
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ApiError(0, "The server does not answer.");
  }
  let parsed = null;
  try {
    parsed = readJson(content);
  } catch (error) {
    if (error instanceof RoundedError)
      throw new ApiError(0, "This browser would round the whole numbers of this index; a newer one does not.");
    if (response.ok) throw new ApiError(0, "The answer of the server is not JSON.");
  }
  if (response.ok) return parsed;
  const wait = Number(response.headers.get("Retry-After"));
  const detail = parsed?.detail ?? parsed?.title ?? `The server answered ${response.status}.`;
  const duration = (performance.now() - started) / 1000;
  throw new ApiError(response.status, String(detail), parsed?.errors ?? [], wait > 0 ? wait : null, duration);
}

/** @param {string} name @param {string} action */
const endpoint = (name, action) => `v1/indexes/${encodeURIComponent(name)}/${action}`;

/** @returns {Promise<Info[]>} */
export const indexes = async () => (await request("v1/indexes")).indexes;

/** @param {string} name @returns {Promise<Info>} */
export const info = (name) => request(`v1/indexes/${encodeURIComponent(name)}`);

/** @param {string} name @param {string|null} column @param {AbortSignal} [signal] */
export const map = (name, column, signal) =>
  request(
    `${endpoint(name, "map")}?limit=100000${column ? `&column=${encodeURIComponent(column)}` : ""}`,
    undefined,
    signal,
  );

/** @param {string} name @param {object[]} queries @param {AbortSignal} [signal] */
export const query = async (name, queries, signal) =>
  (await request(endpoint(name, "query"), { queries }, signal)).answers;

/**
 * Points whose texts hold some of the words.
 * @param {string} name @param {string} words @param {string[]} columns to return @param {number} top @param {AbortSignal} [signal]
 * @returns {Promise<{id: Id, payload: Record<string, unknown>}[]>}
 */
export const find = async (name, words, columns, top, signal) =>
  (await request(endpoint(name, "find"), { words, columns, top }, signal)).results;

/** @param {string} name @param {object} query @param {Id} id @param {AbortSignal} [signal] */
export const explain = (name, query, id, signal) => request(endpoint(name, "explain"), { query, id }, signal);

/** @param {string} name @param {Id[]} ids @param {boolean} images @param {AbortSignal} [signal] */
export const points = async (name, ids, images, signal) =>
  (await request(endpoint(name, "points"), { ids, columns: null, vectors: false, images }, signal)).points;

/** @param {string} name @param {Id[]} ids @param {AbortSignal} [signal] @returns {Promise<Map<Id, number[]>>} */
export const vectors = async (name, ids, signal) => {
  const found = await request(endpoint(name, "points"), { ids, columns: [], vectors: true, images: false }, signal);
  return new Map(found.points.map((/** @type {{id: Id, vector: number[]}} */ one) => [one.id, one.vector]));
};

/** @typedef {(stale: AbortSignal, timeout: AbortSignal) => Promise<void>} Task */

/**
 * Runs one task at a time, so that answers never come out of order and the server is not asked
 * for what nobody waits for. While a task runs, the latest of the others is pending. An urgent one
 * makes the running one stale: its first signal says that its answer must not be shown. Its second
 * signal aborts its requests after a period of grace.
 */
export class RequestQueue {
  /** @param {number} grace milliseconds @param {(busy: boolean) => void} [onBusy] */
  constructor(grace, onBusy = () => {}) {
    this.grace = grace;
    this.onBusy = onBusy;
    /** @type {{stale: AbortController, timeout: AbortController}|null} */
    this.running = null;
    /** @type {Task|null} */
    this.pending = null;
    this.timer = 0;
  }

  /** @param {Task} task @param {boolean} urgent */
  async submit(task, urgent) {
    if (!this.running) return this.run(task);
    this.pending = task;
    if (urgent && !this.running.stale.signal.aborted) {
      this.running.stale.abort();
      this.timer = window.setTimeout(() => this.advance(), this.grace);
    }
  }

  /** @param {Task} task */
  async run(task) {
    const mine = (this.running = { stale: new AbortController(), timeout: new AbortController() });
    this.onBusy(true);
    try {
      await task(mine.stale.signal, mine.timeout.signal);
    } finally {
      if (this.running === mine) await this.advance();
    }
  }

  /** End the running task, and begin the pending one. */
  async advance() {
    const task = this.pending;
    this.cancel();
    if (task) await this.run(task);
  }

  cancel() {
    clearTimeout(this.timer);
    this.running?.stale.abort();
    this.running?.timeout.abort();
    this.running = this.pending = null;
    this.onBusy(false);
  }
}
