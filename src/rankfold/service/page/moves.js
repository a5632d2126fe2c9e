/** Ranks of two answers beside each other, in words. Pure functions. */

/** @typedef {string|number|bigint} Id bigint: beyond what a number holds */
/** @typedef {{shape: number, distance: number}} Parts what was fused in a score */
/** @typedef {{id: Id, score: number, shape: number|null, distance: number|null}} Result */
/**
 * @typedef {object} Ranked
 * @property {Id[]} ids best first
 * @property {Map<Id, number>} ranks 1 is the best
 * @property {Map<Id, number>} scores
 * @property {Map<Id, Parts>} parts of the scores, where shape and distance were fused
 */

/** What a point is called: a text that looks like a number has quotes. @param {Id} id */
export function nameOf(id) {
  return typeof id === "string" && /^-?\d+$|^"/.test(id) ? JSON.stringify(id) : String(id);
}

/** @param {Result[]} results best first @returns {Ranked} */
export function ranked(results) {
  return {
    ids: results.map((one) => one.id),
    ranks: new Map(results.map((one, place) => [one.id, place + 1])),
    scores: new Map(results.map((one) => [one.id, one.score])),
    parts: new Map(
      results.flatMap(({ id, shape, distance }) =>
        shape === null || distance === null ? [] : [[id, { shape, distance }]],
      ),
    ),
  };
}

/**
 * How far a result moved from its place by plain distance.
 * @param {number} here its place by shape
 * @param {number|undefined} there its place by plain distance, if that is known
 * @param {number} depth places that are known
 * @returns {{text: string, kind: "up"|"down"|"same"|"beyond", words: string}}
 */
export function move(here, there, depth) {
  if (there === undefined) {
    return { text: `▲ >${depth}`, kind: "beyond", words: `up from beyond place ${depth} by plain distance` };
  }
  const shift = there - here;
  if (shift === 0) return { text: "=", kind: "same", words: "the same place by plain distance" };
  const kind = shift > 0 ? "up" : "down";
  const words = `${Math.abs(shift)} ${kind} from place ${there} by plain distance`;
  return { text: `${shift > 0 ? "▲" : "▼"} ${Math.abs(shift)}`, kind, words };
}

/**
 * Where the shape puts a result of plain distance.
 * @param {number} here its place by plain distance
 * @param {number|undefined} there its place by shape, if that is known
 * @param {number|undefined} score its score by shape
 * @param {number} depth places that are known
 * @returns {{text: string, kind: "up"|"down"|"same"|"beyond", words: string}}
 */
export function counterpart(here, there, score, depth) {
  if (there === undefined)
    return { text: `beyond ${depth}`, kind: "beyond", words: `beyond place ${depth} by shape` };
  if (score === 0) return { text: "not reached", kind: "beyond", words: "not reached along the shape" };
  const kind = there < here ? "up" : there > here ? "down" : "same";
  return { text: `→ ${there}`, kind, words: `place ${there} by shape` };
}

/**
 * How many of the first results have the value of the query.
 * @param {unknown[]} values of the results, best first
 * @param {unknown[]} wanted values of the query's examples
 * @param {number} first
 */
export function sharing(values, wanted, first) {
  const shown = values.slice(0, first);
  return { same: shown.filter((value) => wanted.includes(value)).length, of: shown.length };
}

/** @param {number} share 0 to 1 */
export function percent(share) {
  const value = 100 * share;
  if (value > 0 && value < 0.01) return "under 0.01 %";
  return `${value >= 99.95 || value === 0 ? value.toFixed(0) : value.toPrecision(value < 10 ? 2 : 3)} %`;
}

/** @param {number} value */
export function short(value) {
  if (!Number.isFinite(value)) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e5 || size < 1e-3) return value.toExponential(1).replace("e+", "e").replaceAll("-", "−");
  return String(Number(value.toPrecision(3)));
}

/** What was fused in a score. @param {Parts} parts */
export function partsWords({ shape, distance }) {
  return `shape ${short(shape)}, distance ${short(distance)}`;
}

/** @param {number} count @param {string} one @param {string} [many] */
export function counted(count, one, many = `${one}s`) {
  return `${count.toLocaleString("en-GB")} ${count === 1 ? one : many}`;
}

/** A name as a heading: "two-moons" is "Two moons". @param {string} name @param {boolean} example */
export function title(name, example) {
  if (!example) return name;
  const words = name.replaceAll("-", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}
