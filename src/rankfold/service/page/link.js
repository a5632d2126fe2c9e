/** The address of what is shown: index, query and parameters in the hash. Pure functions. */

import { nameOf } from "./moves.js";

/** @typedef {import("./moves.js").Id} Id */
/**
 * @typedef {object} Asked what the user asks
 * @property {string|null} index
 * @property {Id[]} ids
 * @property {number[][]} vectors
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

const LONGEST_VECTOR = 64;
const FUSIONS = /** @type {const} */ (["auto", "none", "reciprocal_rank"]);

/** @returns {Asked} */
export function nothing() {
  return {
    index: null,
    ids: [],
    vectors: [],
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
export function writeId(id) {
  return encodeURIComponent(nameOf(id));
}

/** @param {string} text as typed or as in a link @returns {Id} */
export function readId(text) {
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

/** Whether a link is long enough for the vectors. @param {Asked} asked */
export function holdsVectors(asked) {
  return asked.vectors.flat().length <= LONGEST_VECTOR;
}

/** @param {Asked} asked @returns {string} with "#" */
export function writeLink(asked) {
  /** @type {string[]} */
  const parts = [];
  const add = (/** @type {string} */ name, /** @type {string} */ value) => parts.push(`${name}=${value}`);
  if (asked.ids.length) add("ids", asked.ids.map(writeId).join(","));
  if (asked.negative.length) add("not", asked.negative.map(writeId).join(","));
  if (asked.vectors.length && holdsVectors(asked)) {
    add("vectors", asked.vectors.map((v) => v.map((x) => Number(x.toPrecision(7))).join(",")).join(";"));
  }
  for (const name of /** @type {const} */ (["k", "smoothness", "alternations"])) {
    const value = asked[name];
    if (value !== null) add(name, String(value));
  }
  if (asked.fusion !== null) add("fusion", asked.fusion);
  if (asked.proven) add("budget", "proven");
  if (asked.where) add("where", encodeURIComponent(asked.where));
  if (asked.diversity) add("diversity", String(asked.diversity));
  if (asked.method !== "ran") add("method", encodeURIComponent(asked.method));
  if (asked.judge !== null) add("judge", encodeURIComponent(asked.judge));
  if (asked.colouring !== "rank") add("colour", "column");
  return `#${encodeURIComponent(asked.index ?? "")}${parts.length ? `?${parts.join("&")}` : ""}`;
}

/** @param {string} hash with or without "#" @returns {Asked} */
export function readLink(hash) {
  const asked = nothing();
  const [name, rest = ""] = hash.replace(/^#/, "").split(/\?(.*)/s);
  asked.index = decoded(name) || null;
  const given = new Map(
    rest
      .split("&")
      .filter(Boolean)
      .map((part) => {
        const at = part.indexOf("=");
        return at < 0 ? [part, ""] : [part.slice(0, at), part.slice(at + 1)];
      }),
  );
  const text = (/** @type {string} */ key) => decoded(given.get(key) ?? "");
  const ids = (/** @type {string} */ key) =>
    (given.get(key) ?? "")
      .split(",")
      .filter(Boolean)
      .map((one) => readId(decoded(one)));
  asked.ids = [...new Set(ids("ids"))];
  asked.negative = [...new Set(ids("not"))].filter((id) => !asked.ids.includes(id));
  const rows = (given.get("vectors") ?? "")
    .split(";")
    .filter(Boolean)
    .map((row) => row.split(",").map(Number));
  if (rows.every((row) => row.every(Number.isFinite))) asked.vectors = rows;
  asked.k = within(given.get("k"), 1, 200, true);
  asked.smoothness = within(given.get("smoothness"), 1e-6, 1e9, false);
  asked.alternations = within(given.get("alternations"), 1, 20, true);
  asked.fusion = FUSIONS.find((one) => one === given.get("fusion")) ?? null;
  asked.proven = given.get("budget") === "proven";
  asked.diversity = within(given.get("diversity"), 0, 1, false) ?? 0;
  asked.where = text("where");
  asked.method = text("method") || "ran";
  asked.judge = given.has("judge") ? text("judge") : null;
  asked.colouring = given.get("colour") === "column" ? "column" : "rank";
  return asked;
}

/** @param {string} text */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** @param {string|undefined} text @param {number} least @param {number} most @param {boolean} whole */
function within(text, least, most, whole) {
  const value = Number(text);
  if (text === undefined || text === "" || !Number.isFinite(value)) return null;
  if (value < least || value > most) return null;
  return whole ? Math.round(value) : value;
}
