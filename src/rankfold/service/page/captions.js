/** What the page says about an answer: lead, captions, legend, certificate. */

import { byId, formatCount, formatNumber, make } from "./elements.js";
import { NEUTRAL, colourRamp, toCss } from "./theme.js";

/** @typedef {import("./api.js").Info} Info */
/** @typedef {import("./theme.js").Theme} Theme */

/**
 * How many of the first results have the value of the query.
 * @param {unknown[]} values of the results, best first
 * @param {unknown[]} queryValues values of the query's examples
 * @param {number} first
 */
export function countMatches(values, queryValues, first) {
  const leading = values.slice(0, first);
  return { same: leading.filter((value) => queryValues.includes(value)).length, of: leading.length };
}

/** @type {Record<string, string>} */
const METHOD_NAMES = {
  ran: "RAN",
  self_diffusion: "self-diffusion",
  pagerank: "personalised PageRank",
  manifold: "manifold ranking",
  transduction: "graph transduction",
  lcdp: "locally constrained diffusion",
  tensor: "tensor-product diffusion",
  k_reciprocal: "k-reciprocal re-ranking",
  lhrr: "hypergraph ranking",
  query_expansion: "query expansion",
};

/** Plain distance, by the metric. @type {Record<string, string>} */
const METRIC_NAMES = { euclidean: "straight-line distance", cosine: "distance by angle" };

/**
 * @param {Info} info
 * @param {number} drawn points of the map, which may be some of all
 * @param {string} method
 * @param {string|null} column by which maps are coloured; null: by rank
 */
export function showLead(info, drawn, method, column) {
  const how = column ? `coloured by ${column}` : "coloured by rank from the point you chose";
  const some = drawn < info.points ? `${drawn.toLocaleString("en-GB")} of ` : "";
  const points = `Both maps show the same ${some}${formatCount(info.points, "point")}, ${how}. `;
  const [left, right] = info.example
    ? [" straight-line distance jumps the gap. ", ` ${methodName(method)} follows the curve.`]
    : [` ${METRIC_NAMES[info.metric] ?? "plain distance"}. `, ` ${methodName(method)} follows the shape of the data.`];
  const same = method === "distance";
  byId("lead").replaceChildren(points, direction("Left:", "Above:"), left, direction("Right:", "Below:"), same ? " the same." : right);
  byId("shape-title").textContent = same ? "Plain distance again" : `Shape (${methodName(method)})`;
}

/** Where a map is: beside the other, or on a narrow screen above or below it. */
const direction = (/** @type {string} */ wide, /** @type {string} */ narrow) =>
  make("b", {}, make("span", { class: "wide" }, wide), make("span", { class: "narrow" }, narrow));

/** @param {string} method */
const methodName = (method) => METHOD_NAMES[method] ?? method;

/**
 * How many of the first share the value of the query, in a caption.
 * @param {HTMLElement} element
 * @param {string|null} column
 * @param {unknown[]} values of the results, best first
 * @param {unknown[]} queryValues
 * @param {number} first
 * @param {boolean} brief
 */
export function showMatches(element, column, values, queryValues, first, brief) {
  if (!column || !queryValues.length || !values.length || !first) {
    element.replaceChildren();
    return;
  }
  const { same: matches, of } = countMatches(values, queryValues, first);
  const what = queryValues.length === 1 ? `${column} ${queryValues[0]}` : `a ${column}`;
  const numbers = brief
    ? [
        make("b", {}, matches.toLocaleString("en-GB")),
        ` of the first ${of.toLocaleString("en-GB")} share ${what}`,
      ]
    : [make("b", {}, `${matches} of ${of}`), ` share ${what} with the query`];
  element.replaceChildren(...numbers);
}

/**
 * @param {Theme} theme
 * @param {number} depth
 * @param {number} points
 * @param {{label: string, colour: import("./theme.js").Rgb}[]|null} entries
 * @param {string|null} column
 * @param {boolean} filtered
 */
export function showLegend(theme, depth, points, entries, column, filtered) {
  const dot = (/** @type {import("./theme.js").Rgb} */ colour) => {
    const sign = make("i");
    sign.style.background = toCss(colour);
    return sign;
  };
  if (entries) {
    const labels = entries.map(({ label, colour }) => make("span", {}, dot(colour), label));
    byId("legend").replaceChildren(make("span", {}, `${column}:`), ...labels, ...overlayLegend());
    return;
  }
  const bar = make("canvas", { width: 150, height: 1, "aria-hidden": "true" });
  const context = bar.getContext("2d");
  colourRamp(theme, 150).forEach((colour, x) => {
    context.fillStyle = toCss(colour);
    context.fillRect(x, 0, 1, 1);
  });
  const grey = ["not reached"];
  if (depth < points - 1) grey.unshift(`beyond ${depth.toLocaleString("en-GB")}`);
  if (filtered) grey.push("filtered out");
  byId("legend").replaceChildren(
    make(
      "span",
      {},
      "first",
      bar,
      `rank ${Math.max(1, Math.min(depth, points - 1)).toLocaleString("en-GB")}`,
    ),
    make("span", {}, dot(NEUTRAL[theme]), grey.join(", or ")),
    ...overlayLegend(),
  );
}

/** What lies over the points. */
function overlayLegend() {
  return [
    make("span", {}, make("i", { class: "target" }), "query"),
    make("span", {}, make("i", { class: "ring" }), "listed below"),
  ];
}

export function clearCertificate() {
  byId("certificate").textContent = "";
  byId("collapsed").hidden = true;
}

/**
 * @typedef {object} Outcome how an answer ended
 * @property {boolean} certified
 * @property {number} bound
 * @property {"exact"|"proven"|"tolerance"|"budget"|"max_iter"} stopped
 * @property {number} touched points that were visited
 * @property {number|null} alternations
 * @property {boolean} collapsed
 */

/** Why a solver stopped, in short and in a sentence. @type {Record<string, [string, string]>} */
const STOPPED = {
  exact: ["", "Scores are exact but for rounding."],
  proven: ["", "It ended when the best results were proven."],
  tolerance: ["within tolerance", "It ended when no score could be off by more than the tolerance."],
  budget: ["not proven", "It ended early, with the points around the query; Proven goes on."],
  max_iter: ["gave up", "It gave up before it reached its tolerance."],
};

/** @param {Outcome} answer */
export function showCertificate(answer) {
  const [ended, sentence] = STOPPED[answer.stopped],
    parts = [answer.certified ? "certified" : ended];
  if (Number.isFinite(answer.bound))
    parts.push(answer.bound ? `error at most ${formatNumber(answer.bound)}` : "exact");
  if (answer.stopped === "budget" || answer.stopped === "proven") parts.push(`${formatCount(answer.touched, "point")} seen`);
  if (answer.alternations > 1 || answer.collapsed) parts.push(formatCount(answer.alternations, "alternation"));
  const words = parts.filter(Boolean).map((part) => part.replaceAll(" ", "\u00a0")).join("\u00a0· ");
  byId("certificate").textContent = words.charAt(0).toUpperCase() + words.slice(1);
  const best = answer.certified ? " It is proven that no other point scores higher than these." : "";
  byId("certificate").title = sentence + best;
  byId("collapsed").hidden = !answer.collapsed;
  byId("collapsed").textContent = answer.collapsed
    ? "The alternation was stopped: the query had begun to cut itself off from its neighbours. The answer is that of the last sound graph."
    : "";
}
