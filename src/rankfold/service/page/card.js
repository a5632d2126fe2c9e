/** The explanation of one point: its two places, and the path that leads to it. */

import { cut } from "./columns.js";
import { byId, make } from "./elements.js";
import { writeJson } from "./json.js";
import { counted, move, nameOf, partsWords, percent, short } from "./moves.js";

/** @typedef {import("./moves.js").Id} Id */
/**
 * @typedef {object} Reason
 * @property {number} distance_rank
 * @property {number} score_rank
 * @property {number} n_ranked
 * @property {number} distance
 * @property {number} score
 * @property {number} shape the score by shape alone
 * @property {{kind: string, weight: number, horizon: number, hubness: number}|null} fused
 * @property {{steps: {start: Id|null, end: Id, weight: number, score: number}[], share: number|null, example: number}|null} path
 * @property {string} path_state
 * @property {number} n_visited
 * @property {boolean} first_graph
 * @property {string} text
 */

const MOST_LINKS = 14,
  MOST_FACTS = 8,
  LONGEST_FACT = 40;

/** @type {Record<string, string>} */
const WITHOUT_PATH = {
  "no graph": "This method has no graph.",
  unreached:
    "No path of neighbours leads from the query to this point. What is near need not be connected.",
  apart: "The first graph has no path to it; a later one does.",
};

/** @param {boolean} some whether there is an answer to look at */
export function showHint(some) {
  const words = some
    ? "Point at a result or at a point of a map to see why it is there. Click to ask with it."
    : "Choose a point to begin.";
  byId("why").replaceChildren(make("p", { class: "hint" }, words));
  byId("why").style.bottom = "";
  byId("why").dataset.about = "";
}

/** @param {Id} id @param {string} words */
export function showOwn(id, words) {
  byId("why").replaceChildren(make("p", { class: "hint" }, make("b", {}, nameOf(id)), ` ${words}`));
  byId("why").dataset.about = writeJson(id);
}

/**
 * Show the places at once; the reason follows when it has come.
 * @param {object} about
 * @param {Id} about.id
 * @param {number|undefined} about.plain place by plain distance
 * @param {number|undefined} about.shape place by shape
 * @param {import("./moves.js").Parts|undefined} about.parts of its score, where shape and distance were fused
 * @param {boolean} about.reached whether the query reaches it along the shape
 * @param {number} about.depth
 * @param {boolean} about.filtered
 * @param {boolean} about.complete whether all points that meet the filter are ranked
 * @param {Reason|null} about.reason
 * @param {string|null} about.failed
 * @param {(id: Id) => string|null} about.picture
 * @param {string|null} about.text what the point is
 * @param {Record<string, unknown>} about.payload
 */
export function showCard({
  id,
  plain,
  shape,
  parts,
  reached,
  depth,
  filtered,
  complete,
  reason,
  failed,
  picture,
  text,
  payload,
}) {
  const byDistance = reason && !filtered ? reason.distance_rank : plain;
  const byShape = reason && !filtered ? reason.score_rank : shape;
  const moved = byShape === undefined ? null : move(byShape, byDistance, depth);
  const image = picture(id);
  const places = () => {
    // Points that are in neither answer are beyond both, or do not meet the filter.
    if (filtered && plain === undefined && shape === undefined) {
      const beyond = complete ? "" : `is beyond ${depth.toLocaleString("en-GB")}, or `;
      return [make("small", {}, `${beyond}does not meet the filter`)];
    }
    return [
      place(byDistance, depth, "by distance"),
      make("i", { "aria-hidden": "true" }, "→"),
      reached ? place(byShape, depth, "by shape") : make("small", {}, "not reached"),
      moved && reached ? make("span", { class: "move", "data-kind": moved.kind }, moved.text) : null,
    ];
  };
  const left = make(
    "div",
    {},
    make("h2", {}, image ? make("img", { src: image, alt: "" }) : null, `Why is ${nameOf(id)} here?`),
    make("p", { class: "places", "data-testid": "why-places" }, ...places()),
    make("p", { class: "facts", "data-testid": "why-parts" }, scoreWords(reason, parts)),
    make("p", { class: "facts", "data-testid": "why-facts" }, facts(payload, text)),
  );
  const right = make("div", { "data-testid": "why-path" });
  if (failed) right.append(make("p", {}, failed));
  else if (!reason) right.append(make("p", {}, make("small", {}, "Looking for the path …")));
  else
    right.append(
      make("p", {}, pathWords(reason)),
      ...(reason.path ? [chain(reason.path.steps, picture)] : []),
      full(reason, filtered),
    );
  const open = byId("why").querySelector("details")?.open;
  const whole = text === null ? [] : [make("p", { class: "text", "data-testid": "why-whole" }, text)];
  byId("why").replaceChildren(...whole, left, right);
  byId("why").dataset.about = writeJson(id);
  if (open && right.querySelector("details")) right.querySelector("details").open = true;
  keepClear();
}

/** Move the card above the result that is looked at, where it would cover it and its marks. */
function keepClear() {
  const card = byId("why");
  card.style.bottom = "";
  const row = document.querySelector(".result:hover, .result:focus-within");
  const dock = card.parentElement;
  if (!row || !dock) return;
  const { top, bottom } = row.getBoundingClientRect();
  const covered = card.getBoundingClientRect();
  if (bottom <= covered.top || top >= covered.bottom) return;
  card.style.bottom = `${dock.getBoundingClientRect().bottom - top + 8}px`;
}

/** What else is known about the point, on a line or two. @param {Record<string, unknown>} payload @param {string|null} text shown already */
export function facts(payload, text) {
  return Object.entries(payload)
    .filter(([, value]) => value !== null && value !== text && !String(value).startsWith("data:"))
    .slice(0, MOST_FACTS)
    .map(([column, value]) => `${column} ${cut(String(value), LONGEST_FACT)}`)
    .join(" · ");
}

/** @param {number|undefined} rank @param {number} depth @param {string} how */
function place(rank, depth, how) {
  return make(
    "span",
    {},
    make("b", {}, rank === undefined ? `>${depth}` : rank.toLocaleString("en-GB")),
    make("small", {}, ` ${how}`),
  );
}

/** The score and what was fused in it; nothing where it is of one alone. @param {Reason|null} reason @param {import("./moves.js").Parts|undefined} parts */
function scoreWords(reason, parts) {
  if (reason) return reason.fused && reason.shape > 0 ? `score ${short(reason.score)}: ${partsWords(reason)}` : "";
  return parts && parts.shape > 0 ? partsWords(parts) : "";
}

/** What there is to say about the path. @param {Reason} reason */
export function pathWords({ path, path_state: state, n_visited: visited, fused }) {
  if (!path) return WITHOUT_PATH[state] ?? `No path was found within ${counted(visited, "point")}.`;
  let share = "It is one of very many; all of them add up.";
  if (path.share === null) share = "It illustrates the score, which is no sum over paths.";
  else if (path.share >= 0.001)
    share = `It alone brings ${percent(path.share)} of the ${fused ? "shape score" : "score"}; all paths add up.`;
  return `The strongest path has ${counted(path.steps.length, "step")} from neighbour to neighbour. ${share}`;
}

/** @param {{start: Id|null, end: Id, weight: number}[]} steps @param {(id: Id) => string|null} picture */
function chain(steps, picture) {
  const link = (/** @type {Id|null} */ id) => {
    if (id === null) return make("span", {}, "your vector");
    const image = picture(id);
    return image
      ? make("img", { src: image, alt: nameOf(id), title: nameOf(id) })
      : make("span", {}, nameOf(id));
  };
  const parts = [link(steps[0].start)];
  const most = Math.max(...steps.map((step) => step.weight));
  steps.forEach((step, at) => {
    const left = steps.length > MOST_LINKS && at >= MOST_LINKS / 2 && at < steps.length - MOST_LINKS / 2;
    if (left) {
      if (at === MOST_LINKS / 2) parts.push(make("small", {}, ` … ${steps.length - MOST_LINKS} more … `));
      return;
    }
    const edge = make("i", { title: `weight ${short(step.weight)}` });
    edge.style.height = `${1.5 + 4.5 * (step.weight / most)}px`;
    parts.push(edge, link(step.end));
  });
  return make("div", { class: "chain", "aria-hidden": "true" }, ...parts);
}

/** @param {Reason} reason @param {boolean} filtered */
function full(reason, filtered) {
  const note = filtered ? "Places in this text are among all points, without the filter.\n" : "";
  return make(
    "details",
    {},
    make("summary", {}, "In full"),
    make("pre", { tabindex: 0, "data-testid": "why-text" }, note + reason.text),
  );
}
