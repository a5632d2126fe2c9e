/** The API of the server, and what may go wrong with it. */

import { RoundedError, readJson, writeJson } from "./json.js";

/** @typedef {import("./moves.js").Id} Id */
/**
 * @typedef {object} Info
 * @property {string} name
 * @property {number} points
 * @property {number} features
 * @property {string} metric
 * @property {number} n_neighbors
 * @property {number} list_width
 * @property {Record<string, string>} columns
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
   * @param {number} [took] seconds
   */
  constructor(status, detail, errors = [], retryAfter = null, took = 0) {
    super(detail);
    this.status = status;
    this.errors = errors;
    this.retryAfter = retryAfter;
    this.took = took;
  }
}

/** Whether a key can be sent: browsers refuse other characters in a header. @param {string} key */
export function isKey(key) {
  return /^[\x20-\x7e]*$/.test(key);
}

/** @param {string} key empty: forget it */
export function keepKey(key) {
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
async function call(path, body, signal) {
  /** @type {Record<string, string>} */
  const headers = { Accept: "application/json" };
  const key = sessionStorage.getItem(KEY);
  if (key && isKey(key)) headers.Authorization = `Bearer ${key}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const begun = performance.now();
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
  const took = (performance.now() - begun) / 1000;
  throw new ApiError(response.status, String(detail), parsed?.errors ?? [], wait > 0 ? wait : null, took);
}

/** @param {string} name @param {string} action */
const of = (name, action) => `v1/indexes/${encodeURIComponent(name)}/${action}`;

/** @returns {Promise<Info[]>} */
export const indexes = async () => (await call("v1/indexes")).indexes;

/** @param {string} name @returns {Promise<Info>} */
export const info = (name) => call(`v1/indexes/${encodeURIComponent(name)}`);

/** @param {string} name @param {string|null} column @param {AbortSignal} [signal] */
export const map = (name, column, signal) =>
  call(
    `${of(name, "map")}?limit=100000${column ? `&column=${encodeURIComponent(column)}` : ""}`,
    undefined,
    signal,
  );

/** @param {string} name @param {object[]} queries @param {AbortSignal} [signal] */
export const query = async (name, queries, signal) =>
  (await call(of(name, "query"), { queries }, signal)).answers;

/** @param {string} name @param {object} asked @param {Id} id @param {AbortSignal} [signal] */
export const explain = (name, asked, id, signal) => call(of(name, "explain"), { query: asked, id }, signal);

/** @param {string} name @param {Id[]} ids @param {boolean} images @param {AbortSignal} [signal] */
export const points = async (name, ids, images, signal) =>
  (await call(of(name, "points"), { ids, columns: null, vectors: false, images }, signal)).points;

/** @param {string} name @param {Id[]} ids @param {AbortSignal} [signal] @returns {Promise<Map<Id, number[]>>} */
export const vectors = async (name, ids, signal) => {
  const found = await call(of(name, "points"), { ids, columns: [], vectors: true, images: false }, signal);
  return new Map(found.points.map((/** @type {{id: Id, vector: number[]}} */ one) => [one.id, one.vector]));
};
