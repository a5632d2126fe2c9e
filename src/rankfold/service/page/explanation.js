/** The explanation of one point: its card, its path on the map, its straight line. */

import * as api from "./api.js";
import { announce, byId, formatCount, formatId, formatNumber, formatPercent, make, truncate } from "./elements.js";
import { requestQuery } from "./query.js";
import { formatParts, highlightResult, rankShift } from "./results.js";

/** @typedef {import("./api.js").Id} Id */
/** @typedef {import("./maps.js").Position} Position */

/**
 * @typedef {object} Reason
 * @property {number} distance_rank
 * @property {number} score_rank
 * @property {number} n_ranked
 * @property {number} distance
 * @property {number} score
 * @property {number} shape the score by shape alone
 * @property {{kind: string, weight: number, horizon: number, hubness: number}|null} fused
 * @property {{steps: {start: Id|null, end: Id, weight: number, score: number, end_place: number|null, start_place: number|null}[], share: number|null, example: number}|null} path
 * @property {string} path_state
 * @property {number} n_visited
 * @property {boolean} first_graph
 * @property {string} text
 */

const MAX_LINKS = 14,
  MAX_FACTS = 8,
  MAX_FACT_LENGTH = 40;

/** @type {Record<string, string>} */
const WITHOUT_PATH = {
  "no graph": "This method has no graph.",
  unreached:
    "No path of neighbours leads from the query to this point. What is near need not be connected.",
  apart: "The first graph has no path to it; a later one does.",
};

/** @param {boolean} some whether there is an answer to explain */
function showHint(some) {
  const words = some
    ? "Point at a result or at a point of a map to see why it is there. Click to ask with it."
    : "Choose a point to begin.";
  byId("why").replaceChildren(make("p", { class: "hint" }, words));
  byId("why").style.bottom = "";
  byId("why").dataset.about = "";
}

/** @param {Id} id @param {string} words */
function showRole(id, words) {
  byId("why").replaceChildren(make("p", { class: "hint" }, make("b", {}, formatId(id)), ` ${words}`));
  byId("why").dataset.about = api.writeJson(id);
}

/**
 * Show the ranks at once; the reason follows when it has come.
 * @param {object} about
 * @param {Id} about.id
 * @param {number|undefined} about.plain rank by plain distance
 * @param {number|undefined} about.shape rank by shape
 * @param {import("./results.js").ScoreParts|undefined} about.parts of its score, where shape and distance were fused
 * @param {boolean} about.reached whether the query reaches it along the shape
 * @param {number} about.depth
 * @param {boolean} about.filtered
 * @param {boolean} about.complete whether all points that meet the filter are ranked
 * @param {Reason|null} about.reason
 * @param {string|null} about.failed
 * @param {(id: Id) => string|null} about.imageOf
 * @param {string|null} about.text what the point is
 * @param {Record<string, unknown>} about.payload
 */
function showCard({
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
  imageOf,
  text,
  payload,
}) {
  const byDistance = reason && !filtered ? reason.distance_rank : plain;
  const byShape = reason && !filtered ? reason.score_rank : shape;
  const shift = byShape === undefined ? null : rankShift(byShape, byDistance, depth);
  const image = imageOf(id),
    ranked = byDistance !== undefined || byShape !== undefined;
  const ranks = () => {
    // Points that are in neither answer are beyond both, or do not meet the filter.
    if (filtered && plain === undefined && shape === undefined) {
      const beyond = complete ? "" : `is beyond ${depth.toLocaleString("en-GB")}, or `;
      return [make("small", {}, `${beyond}does not meet the filter`)];
    }
    if (!ranked)
      return [make("small", {}, `is not among the first ${depth.toLocaleString("en-GB")}, by distance or by shape`)];
    return [
      rankLabel(byDistance, depth, "by distance"),
      make("i", { "aria-hidden": "true" }, "→"),
      reached ? rankLabel(byShape, depth, "by shape") : make("small", {}, "not reached"),
      shift && reached ? make("span", { class: "move", "data-kind": shift.kind }, shift.text) : null,
    ];
  };
  const left = make(
    "div",
    {},
    make("h2", {}, image ? make("img", { src: image, alt: "" }) : null, ranked ? `Why is ${formatId(id)} here?` : formatId(id)),
    make("p", { class: "places", "data-testid": "why-places" }, ...ranks()),
    make("p", { class: "facts", "data-testid": "why-parts" }, describeScore(reason, parts)),
    make("p", { class: "facts", "data-testid": "why-facts" }, describePayload(payload, text)),
  );
  const right = make("div", { "data-testid": "why-path" });
  if (failed) right.append(make("p", {}, failed));
  else if (!reason) right.append(make("p", {}, make("small", {}, "Looking for the path …")));
  else
    right.append(
      make("p", {}, describePath(reason)),
      ...(reason.path ? [pathChain(reason.path.steps, imageOf)] : []),
      fullText(reason, filtered),
    );
  const open = byId("why").querySelector("details")?.open;
  const fullTextElement = text === null ? [] : [make("p", { class: "text", "data-testid": "why-whole" }, text)];
  byId("why").replaceChildren(...fullTextElement, left, right);
  byId("why").dataset.about = api.writeJson(id);
  if (open && right.querySelector("details")) right.querySelector("details").open = true;
  avoidOverlap();
}

/** Move the card above the result that is explained, where it would cover it and its marks. */
function avoidOverlap() {
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
function describePayload(payload, text) {
  return Object.entries(payload)
    .filter(([, value]) => value !== null && value !== text && !String(value).startsWith("data:"))
    .slice(0, MAX_FACTS)
    .map(([column, value]) => `${column} ${truncate(String(value), MAX_FACT_LENGTH)}`)
    .join(" · ");
}

/** @param {number|undefined} rank @param {number} depth @param {string} how */
function rankLabel(rank, depth, how) {
  return make(
    "span",
    {},
    make("b", {}, rank === undefined ? "later" : rank.toLocaleString("en-GB")),
    make("small", {}, rank === undefined ? ` than ${depth.toLocaleString("en-GB")} ${how}` : ` ${how}`),
  );
}

/** The score and what was fused in it; nothing where it is of one alone. @param {Reason|null} reason @param {import("./results.js").ScoreParts|undefined} parts */
function describeScore(reason, parts) {
  if (reason) return reason.fused && reason.shape > 0 ? `score ${formatNumber(reason.score)}: ${formatParts(reason)}` : "";
  return parts && parts.shape > 0 ? formatParts(parts) : "";
}

/** What there is to say about the path. @param {Reason} reason */
function describePath({ path, path_state: state, n_visited: visited, fused }) {
  if (!path) return WITHOUT_PATH[state] ?? `No path was found within ${formatCount(visited, "point")}.`;
  let share = "It is one of very many; all of them add up.";
  if (path.share === null) share = "It illustrates the score, which is no sum over paths.";
  else if (path.share >= 0.001)
    share = `It alone brings ${formatPercent(path.share)} of the ${fused ? "shape score" : "score"}; all paths add up.`;
  if (path.steps.length === 1) return `The strongest path has 1 step: ${describeNeighbours(path.steps[0])} ${share}`;
  return `The strongest path has ${formatCount(path.steps.length, "step")} from neighbour to neighbour. ${share}`;
}

/** Whose neighbour is whose. @param {{start: Id|null, end: Id, end_place: number|null, start_place: number|null}} step */
function describeNeighbours({ start, end, end_place: endPlace, start_place: startPlace }) {
  const one = formatId(end),
    other = start === null ? "your vector" : formatId(start);
  if (endPlace === null && startPlace === null) return `${one} and ${other} are joined in the graph.`;
  if (endPlace === null) return `${other} is number ${startPlace} among the nearest of ${one}; ${one} is not among those of ${other}.`;
  const first = `${one} is number ${endPlace} among the nearest of ${other}`;
  if (startPlace !== null) return `${first}, and ${other} number ${startPlace} among those of ${one}.`;
  return start === null ? `${first}.` : `${first}; ${other} is not among those of ${one}.`;
}

/** @param {{start: Id|null, end: Id, weight: number}[]} steps @param {(id: Id) => string|null} imageOf */
function pathChain(steps, imageOf) {
  const link = (/** @type {Id|null} */ id) => {
    if (id === null) return make("span", {}, "your vector");
    const image = imageOf(id);
    return image
      ? make("img", { src: image, alt: formatId(id), title: formatId(id) })
      : make("span", {}, formatId(id));
  };
  const parts = [link(steps[0].start)];
  const maxWeight = Math.max(...steps.map((step) => step.weight));
  steps.forEach((step, at) => {
    const omitted = steps.length > MAX_LINKS && at >= MAX_LINKS / 2 && at < steps.length - MAX_LINKS / 2;
    if (omitted) {
      if (at === MAX_LINKS / 2) parts.push(make("small", {}, ` … ${steps.length - MAX_LINKS} more … `));
      return;
    }
    const edge = make("i", { title: `weight ${formatNumber(step.weight)}` });
    edge.style.height = `${1.5 + 4.5 * (step.weight / maxWeight)}px`;
    parts.push(edge, link(step.end));
  });
  return make("div", { class: "chain", "aria-hidden": "true" }, ...parts);
}

/** @param {Reason} reason @param {boolean} filtered */
function fullText(reason, filtered) {
  const note = filtered ? "Places in this text are among all points, without the filter.\n" : "";
  return make(
    "details",
    {},
    make("summary", {}, "In full"),
    make("pre", { tabindex: 0, "data-testid": "why-text" }, note + reason.text),
  );
}

/**
 * @typedef {object} Context what is shown now
 * @property {import("./api.js").Info} info
 * @property {import("./query.js").Query} query
 * @property {import("./results.js").Ranking} plain
 * @property {import("./results.js").Ranking} shape
 * @property {number} depth
 * @property {Position[]} vectorPositions
 */

/** In indexes up to this size every point is explained. */
const MAX_FULLY_EXPLAINED = 5000;

const FETCH_DELAY = 110,
  CLOSE_DELAY = 140;

export class Explanation {
  /**
   * @param {import("./maps.js").Maps} maps
   * @param {import("./answer.js").AnswerView} answer
   * @param {() => boolean} busy whether another answer is on its way
   * @param {(error: unknown) => string} onError says what is wrong
   */
  constructor(maps, answer, busy, onError) {
    this.maps = maps;
    this.answer = answer;
    this.busy = busy;
    this.onError = onError;
    /** @type {Context|null} */
    this.context = null;
    /** @type {Id|null} */
    this.id = null;
    this.closeTimer = 0;
    this.fetchTimer = 0;
    this.postponed = false;
    this.queue = new api.RequestQueue(8000);
    /** @type {Map<Id, Reason>} */
    this.reasons = new Map();
  }

  /** Another answer is shown. @param {Context|null} context */
  setAnswer(context) {
    this.context = context;
    this.reasons.clear();
    const id = this.id;
    this.id = null;
    if (id !== null && context) this.open(id);
    else this.close();
  }

  /** @param {Id|null} id null: nothing, after a while */
  request(id) {
    clearTimeout(this.closeTimer);
    if (id === null) {
      this.closeTimer = window.setTimeout(() => this.close(), CLOSE_DELAY);
    } else this.open(id);
  }

  /** @param {Id} id */
  open(id) {
    if (id === this.id || !this.context) return;
    clearTimeout(this.fetchTimer);
    this.postponed = false;
    this.id = id;
    highlightResult(id);
    this.draw(null);
    const role = roleOf(id, this.context.query);
    if (role) {
      showRole(id, role);
      return;
    }
    const cached = this.reasons.get(id) ?? null;
    const skipped = this.skipReason(id);
    this.show(cached, skipped);
    if (!this.answer.knows(id)) this.fetchTimer = window.setTimeout(() => this.fetchPoint(id, skipped), FETCH_DELAY);
    else if (!cached && !skipped) this.fetchTimer = window.setTimeout(() => this.fetch(id), FETCH_DELAY);
  }

  /**
   * Far points of a large index are not asked about: their path takes long to find.
   * @param {Id} id
   * @returns {string|null} what to say instead
   */
  skipReason(id) {
    const { context } = this;
    if (!context || context.info.points <= MAX_FULLY_EXPLAINED || context.shape.ranks.has(id)) return null;
    const depth = context.depth.toLocaleString("en-GB");
    return `At least ${depth} points are closer to the query along the shape of the data; only the paths to those are drawn. Click to ask with it.`;
  }

  /** Do not close: the pointer is on the card. */
  keepOpen() {
    if (this.id !== null && this.reasons.has(this.id)) clearTimeout(this.closeTimer);
  }

  close() {
    clearTimeout(this.closeTimer);
    clearTimeout(this.fetchTimer);
    this.id = null;
    highlightResult(null);
    this.draw(null);
    showHint(this.context !== null);
  }

  /** Fetch what a point of the map is, then why it is there. @param {Id} id @param {string|null} skipped */
  fetchPoint(id, skipped) {
    const { context } = this;
    this.queue.submit(async (stale, timeout) => {
      try {
        await this.answer.fetchPoints([id], timeout);
      } catch (error) {
        if (!stale.aborted && this.id === id) this.show(null, this.onError(error));
        return;
      }
      if (stale.aborted || this.id !== id || this.context !== context) return;
      this.show(null, skipped);
      if (!skipped) this.fetch(id);
    }, true);
  }

  /** Ask why, one point at a time: what the server has begun, it ends. @param {Id} id */
  fetch(id) {
    const { context } = this;
    this.postponed = this.busy();
    if (!context || this.postponed) return; // the answer that comes is explained
    this.queue.submit(async (stale, timeout) => {
      try {
        const reason = await api.explain(context.info.name, requestQuery(context.query), id, timeout);
        if (stale.aborted) return;
        const ids = reason.path ? reason.path.steps.map((/** @type {{end: Id}} */ step) => step.end) : [id];
        await this.answer.fetchPoints(ids, timeout);
        if (stale.aborted || this.context !== context) return;
        this.reasons.set(id, reason);
        if (this.id !== id) return;
        this.show(reason, null);
        if (document.activeElement?.closest(".result")) announce(describePath(reason));
      } catch (error) {
        if (!stale.aborted && this.id === id) this.show(null, this.onError(error));
      }
    }, true);
  }

  /** The answer on its way has come, or never will: ask why, if that had to wait. */
  resume() {
    if (!this.postponed || this.id === null) return;
    const { id } = this;
    clearTimeout(this.fetchTimer);
    this.fetchTimer = window.setTimeout(() => this.fetch(id), FETCH_DELAY);
  }

  /** @param {Reason|null} reason @param {string|null} failed */
  show(reason, failed) {
    const { context, id } = this;
    if (!context || id === null) return;
    showCard({
      id,
      reason,
      failed,
      imageOf: (one) => this.answer.image(one),
      text: this.answer.text(id),
      payload: this.answer.payload(id),
      plain: context.plain.ranks.get(id),
      shape: context.shape.ranks.get(id),
      parts: context.shape.parts.get(id),
      reached: context.query.method === "distance" || context.shape.scores.get(id) !== 0,
      depth: context.depth,
      filtered: context.query.where.trim() !== "",
      complete: context.plain.ids.length < context.depth,
    });
    this.draw(reason);
  }

  /** @param {Reason|null} reason */
  draw(reason) {
    const { maps, context, id } = this;
    const selected = id === null ? null : maps.position(id);
    const role = id !== null && context && roleOf(id, context.query);
    const lines = [],
      path = [];
    if (selected && context && !role) {
      for (const from of [...maps.positions(context.query.ids), ...context.vectorPositions])
        lines.push({ from, to: selected });
      const steps = reason?.path?.steps ?? [];
      const maxWeight = Math.max(...steps.map((step) => step.weight), 1e-12);
      for (const step of steps) {
        const from = step.start === null ? this.vectorPosition(reason?.path?.example) : maps.position(step.start);
        const to = maps.position(step.end);
        if (from && to) path.push({ from, to, weight: step.weight / maxWeight });
      }
    }
    maps.setOverlay("plain", { selected, lines, path: [] });
    maps.setOverlay("shape", { selected, lines: [], path });
  }

  /** Where the vector is that a path begins at. @param {number} [example] its index among all examples */
  vectorPosition(example = 0) {
    if (!this.context) return null;
    const { query, vectorPositions } = this.context;
    return vectorPositions[example - query.ids.length - query.negative.length] ?? vectorPositions[0] ?? null;
  }
}

/** @param {Id} id @param {import("./query.js").Query} query */
function roleOf(id, query) {
  if (query.ids.includes(id)) return "is an example of the query.";
  if (query.negative.includes(id)) return "is an example of what is not looked for.";
  return null;
}
