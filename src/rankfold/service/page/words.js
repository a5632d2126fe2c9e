/** What the page says about an answer: lead, captions, legend, certificate. */

import { NEUTRAL, ramp, toCss } from "./colour.js";
import { byId, make } from "./elements.js";
import { counted, sharing, short } from "./moves.js";

/** @typedef {import("./api.js").Info} Info */
/** @typedef {import("./colour.js").Theme} Theme */
/** @typedef {import("./moves.js").Ranked} Ranked */
/** @typedef {import("./moves.js").Id} Id */

/** @type {Record<string, string>} */
const NAMES = {
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
const PLAIN = { euclidean: "straight-line distance", cosine: "distance by angle" };

/**
 * @param {Info} info
 * @param {number} drawn points of the map, which may be some of all
 * @param {string} method
 * @param {string|null} column by which maps are coloured; null: by rank
 */
export function showLead(info, drawn, method, column) {
  const how = column ? `coloured by ${column}` : "coloured by rank from the point you chose";
  const some = drawn < info.points ? `${drawn.toLocaleString("en-GB")} of ` : "";
  const points = `Both maps show the same ${some}${counted(info.points, "point")}, ${how}. `;
  const [left, right] = info.example
    ? [" straight-line distance jumps the gap. ", ` ${name(method)} follows the curve.`]
    : [` ${PLAIN[info.metric] ?? "plain distance"}. `, ` ${name(method)} follows the shape of the data.`];
  const same = method === "euclidean";
  byId("lead").replaceChildren(points, side("Left:", "Above:"), left, side("Right:", "Below:"), same ? " the same." : right);
  byId("shape-title").textContent = same ? "Plain distance again" : `Shape (${name(method)})`;
}

/** Where a map is: beside the other, or on a narrow screen above or below it. */
const side = (/** @type {string} */ wide, /** @type {string} */ narrow) =>
  make("b", {}, make("span", { class: "wide" }, wide), make("span", { class: "narrow" }, narrow));

/** @param {string} method */
const name = (method) => NAMES[method] ?? method;

/**
 * How many of the first share the value of the query, in a caption.
 * @param {HTMLElement} element
 * @param {string|null} column
 * @param {unknown[]} values of the results, best first
 * @param {unknown[]} wanted
 * @param {number} first
 * @param {boolean} brief
 */
export function showSharing(element, column, values, wanted, first, brief) {
  if (!column || !wanted.length || !values.length || !first) {
    element.replaceChildren();
    return;
  }
  const { same, of } = sharing(values, wanted, first);
  const what = wanted.length === 1 ? `${column} ${wanted[0]}` : `a ${column}`;
  const numbers = brief
    ? [
        make("b", {}, same.toLocaleString("en-GB")),
        ` of the first ${of.toLocaleString("en-GB")} share ${what}`,
      ]
    : [make("b", {}, `${same} of ${of}`), ` share ${what} with the query`];
  element.replaceChildren(...numbers);
}

/**
 * @param {Theme} theme
 * @param {number} depth
 * @param {number} points
 * @param {{label: string, colour: import("./colour.js").Rgb}[]|null} kinds
 * @param {string|null} column
 * @param {boolean} filtered
 */
export function showLegend(theme, depth, points, kinds, column, filtered) {
  const dot = (/** @type {import("./colour.js").Rgb} */ colour) => {
    const sign = make("i");
    sign.style.background = toCss(colour);
    return sign;
  };
  if (kinds) {
    const entries = kinds.map(({ label, colour }) => make("span", {}, dot(colour), label));
    byId("legend").replaceChildren(make("span", {}, `${column}:`), ...entries, ...signs());
    return;
  }
  const bar = make("canvas", { width: 150, height: 1, "aria-hidden": "true" });
  const context = bar.getContext("2d");
  ramp(theme, 150).forEach((colour, x) => {
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
    ...signs(),
  );
}

/** What lies over the points. */
function signs() {
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
 * @typedef {object} Ended how an answer ended
 * @property {boolean} certified
 * @property {number} bound
 * @property {"exact"|"proven"|"tolerance"|"budget"|"max_iter"} stopped
 * @property {number} touched points that were looked at
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

/** @param {Ended} answer */
export function showCertificate(answer) {
  const [ended, sentence] = STOPPED[answer.stopped],
    parts = [answer.certified ? "certified" : ended];
  if (Number.isFinite(answer.bound))
    parts.push(answer.bound ? `error at most ${short(answer.bound)}` : "exact");
  if (answer.stopped === "budget" || answer.stopped === "proven") parts.push(`${counted(answer.touched, "point")} seen`);
  if (answer.alternations != null) parts.push(counted(answer.alternations, "alternation"));
  const words = parts.filter(Boolean).map((part) => part.replaceAll(" ", "\u00a0")).join("\u00a0· ");
  byId("certificate").textContent = words.charAt(0).toUpperCase() + words.slice(1);
  const best = answer.certified ? " It is proven that no other point scores higher than these." : "";
  byId("certificate").title = sentence + best;
  byId("collapsed").hidden = !answer.collapsed;
  byId("collapsed").textContent = answer.collapsed
    ? "The alternation was stopped: the query had begun to cut itself off from its neighbours. The answer is that of the last sound graph."
    : "";
}
