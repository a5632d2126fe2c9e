/** The query: its link, its form for the API, and its examples. Pure functions. */

import { formatId } from "./elements.js";

/** @typedef {import("./api.js").Id} Id */
/** @typedef {import("./api.js").Info} Info */

/**
 * @typedef {object} Query what the user asks for
 * @property {string|null} index
 * @property {Id[]} ids
 * @property {number[][]} vectors
 * @property {string} text an example in words
 * @property {Id[]} negative
 * @property {number|null} k null: the default of the index
 * @property {number|null} smoothness
 * @property {number|null} alternations
 * @property {"auto"|"none"|"reciprocal_rank"|null} fusion null: the default of the method
 * @property {boolean} proven whether to go on until the best results are proven
 * @property {string} where
 * @property {number} diversity
 * @property {string} method
 * @property {string|null} judge a column; null: the first one; "": none
 * @property {"rank"|"column"} colouring
 */

/** @typedef {{kind: "id"|"negative", id: Id}|{kind: "vector", index: number}|{kind: "text"}} Example */

export const LIST_LENGTH = 20;
export const DEFAULT_SMOOTHNESS = 30;

/** Methods that can end early, before their best results are proven. */
export const BUDGET_METHODS = ["ran", "distance", "pagerank", "manifold"];

/** Points that may get a score: so few that a click is answered at once, in an index of any size. */
const BUDGET = 2000;

/** Names of columns whose texts identify points; others are likelier to hold classes. */
const TEXT_COLUMNS = new Set(["text", "title", "name", "caption", "summary", "abstract", "description", "body", "content"]);

/** Numbers of vectors that a link has room for. */
const MAX_LINK_NUMBERS = 64;
const FUSIONS = /** @type {const} */ (["auto", "none", "reciprocal_rank"]);

/** @returns {Query} */
export function emptyQuery() {
  return {
    index: null,
    ids: [],
    vectors: [],
    text: "",
    negative: [],
    k: null,
    smoothness: null,
    alternations: null,
    fusion: null,
    proven: false,
    where: "",
    diversity: 0,
    method: "ran",
    judge: null,
    colouring: "rank",
  };
}

/** @param {Id} id */
function encodeId(id) {
  return encodeURIComponent(formatId(id));
}

/** @param {string} text as typed or as in a link @returns {Id} */
export function parseId(text) {
  if (/^-?\d+$/.test(text)) return Number.isSafeInteger(Number(text)) ? Number(text) : BigInt(text);
  if (/^".*"$/.test(text)) {
    try {
      return String(JSON.parse(text));
    } catch {
      return text;
    }
  }
  return text;
}

/** Whether the vectors are short enough for a link. @param {Query} query */
export function fitsInLink(query) {
  return query.vectors.flat().length <= MAX_LINK_NUMBERS;
}

/** @param {Query} query @returns {string} with "#" */
export function formatLink(query) {
  /** @type {string[]} */
  const parts = [];
  const add = (/** @type {string} */ name, /** @type {string} */ value) => parts.push(`${name}=${value}`);
  if (query.ids.length) add("ids", query.ids.map(encodeId).join(","));
  if (query.text) add("text", encodeURIComponent(query.text));
  if (query.negative.length) add("not", query.negative.map(encodeId).join(","));
  if (query.vectors.length && fitsInLink(query)) {
    add("vectors", query.vectors.map((v) => v.map((x) => Number(x.toPrecision(7))).join(",")).join(";"));
  }
  for (const name of /** @type {const} */ (["k", "smoothness", "alternations"])) {
    const value = query[name];
    if (value !== null) add(name, String(value));
  }
  if (query.fusion !== null) add("fusion", query.fusion);
  if (query.proven) add("budget", "proven");
  if (query.where) add("where", encodeURIComponent(query.where));
  if (query.diversity) add("diversity", String(query.diversity));
  if (query.method !== "ran") add("method", encodeURIComponent(query.method));
  if (query.judge !== null) add("judge", encodeURIComponent(query.judge));
  if (query.colouring !== "rank") add("colour", "column");
  return `#${encodeURIComponent(query.index ?? "")}${parts.length ? `?${parts.join("&")}` : ""}`;
}

/** @param {string} hash with or without "#" @returns {Query} */
export function parseLink(hash) {
  const query = emptyQuery();
  const [name, rest = ""] = hash.replace(/^#/, "").split(/\?(.*)/s);
  query.index = decode(name) || null;
  const given = new Map(
    rest
      .split("&")
      .filter(Boolean)
      .map((part) => {
        const at = part.indexOf("=");
        return at < 0 ? [part, ""] : [part.slice(0, at), part.slice(at + 1)];
      }),
  );
  const text = (/** @type {string} */ key) => decode(given.get(key) ?? "");
  const ids = (/** @type {string} */ key) =>
    (given.get(key) ?? "")
      .split(",")
      .filter(Boolean)
      .map((one) => parseId(decode(one)));
  query.ids = [...new Set(ids("ids"))];
  query.negative = [...new Set(ids("not"))].filter((id) => !query.ids.includes(id));
  const rows = (given.get("vectors") ?? "")
    .split(";")
    .filter(Boolean)
    .map((row) => row.split(",").map(Number));
  if (rows.every((row) => row.every(Number.isFinite))) query.vectors = rows;
  query.text = text("text");
  query.k = parseNumber(given.get("k"), 1, 200, true);
  query.smoothness = parseNumber(given.get("smoothness"), 1e-6, 1e9, false);
  query.alternations = parseNumber(given.get("alternations"), 1, 20, true);
  query.fusion = FUSIONS.find((one) => one === given.get("fusion")) ?? null;
  query.proven = given.get("budget") === "proven";
  query.diversity = parseNumber(given.get("diversity"), 0, 1, false) ?? 0;
  query.where = text("where");
  query.method = text("method") || "ran";
  query.judge = given.has("judge") ? text("judge") : null;
  query.colouring = given.get("colour") === "column" ? "column" : "rank";
  return query;
}

/** @param {string} text */
function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** @param {string|undefined} text @param {number} min @param {number} max @param {boolean} whole */
function parseNumber(text, min, max, whole) {
  const value = Number(text);
  if (text === undefined || text === "" || !Number.isFinite(value)) return null;
  if (value < min || value > max) return null;
  return whole ? Math.round(value) : value;
}

/** How many examples there are of what is looked for. @param {Query} query */
export function countExamples(query) {
  return query.ids.length + query.vectors.length + (query.text ? 1 : 0);
}

/** How plain distance counts in the score, unless the query says so. @param {string} method */
export function defaultFusion(method) {
  return method === "ran" ? "auto" : "none";
}

/** Whether shape and distance can be fused. @param {string} method */
export function supportsFusion(method) {
  return method !== "distance";
}

/** How many ranks are asked for. @param {Info} info */
export function rankingDepth(info) {
  return Math.max(1, Math.min(2000, info.limits?.top ?? 2000, info.points));
}

/** The query by the chosen method, as the API takes it. @param {Query} query */
export function requestQuery(query) {
  /** @type {Record<string, number|string>} */
  const parameters = {};
  if (query.method === "ran") {
    if (query.k !== null) parameters.n_neighbors = query.k;
    if (query.smoothness !== null) parameters.smoothness = query.smoothness;
    if (query.alternations !== null) parameters.max_iter = query.alternations;
  }
  if (BUDGET_METHODS.includes(query.method)) parameters.budget = query.proven ? "proven" : BUDGET;
  if (query.fusion !== null && supportsFusion(query.method)) parameters.fusion = query.fusion;
  return {
    ids: query.ids,
    vectors: query.vectors,
    text: query.text || null,
    negative: query.negative,
    where: query.where.trim() || null,
    method: query.method,
    parameters,
    columns: [],
  };
}

/**
 * All queries of one answer: plain distance, the method, and the diverse results where asked for.
 * @param {Query} query
 * @param {Info} info
 */
export function requestBatch(query, info) {
  const top = rankingDepth(info),
    shape = { ...requestQuery(query), top };
  /** @type {object[]} */
  const queries = [{ ...shape, method: "distance", parameters: {} }, shape];
  if (query.diversity) queries.push({ ...shape, top: LIST_LENGTH, diversity: query.diversity });
  return queries;
}

/**
 * The column to judge by: the one asked for, or the first that holds classes.
 * @param {Info} info
 * @param {Query} query
 * @returns {string|null}
 */
export function judgedColumn(info, query) {
  if (query.judge !== null) return query.judge in info.columns ? query.judge : null;
  const columns = Object.keys(info.columns).filter(
    (name) => name !== "image" && info.columns[name] !== "number",
  );
  return columns.find((name) => !TEXT_COLUMNS.has(name.toLowerCase())) ?? columns[0] ?? null;
}

/**
 * The query without one of its examples.
 * @param {Query} query
 * @param {Example} example
 * @returns {Query}
 */
export function withoutExample(query, example) {
  if (example.kind === "text") return { ...query, text: "" };
  if (example.kind === "vector")
    return { ...query, vectors: query.vectors.filter((_, index) => index !== example.index) };
  return {
    ...query,
    ids: example.kind === "id" ? query.ids.filter((id) => id !== example.id) : query.ids,
    negative: example.kind === "negative" ? query.negative.filter((id) => id !== example.id) : query.negative,
  };
}

/** @param {Map<Id, "right"|"wrong">} marks @param {"right"|"wrong"} mark @returns {Id[]} */
export function markedAs(marks, mark) {
  return [...marks].filter(([, one]) => one === mark).map(([id]) => id);
}

/**
 * The query after results were marked: right ones become examples, wrong ones negative examples.
 * @param {Query} query
 * @param {Map<Id, "right"|"wrong">} marks
 * @returns {Query}
 */
export function refine(query, marks) {
  const right = markedAs(marks, "right"),
    wrong = markedAs(marks, "wrong");
  const ids = [
    ...query.ids.filter((id) => !wrong.includes(id)),
    ...right.filter((id) => !query.ids.includes(id)),
  ];
  const negative = [...query.negative.filter((id) => !right.includes(id) && !wrong.includes(id)), ...wrong];
  return { ...query, ids, negative };
}
