/** The two lists of results, and how far a result moved between them. */

import { readJson, writeJson } from "./api.js";
import { byId, formatId, formatNumber, make, truncate } from "./elements.js";

/** @typedef {import("./api.js").Id} Id */

/** @typedef {{shape: number, distance: number}} ScoreParts what was fused in a score */
/** @typedef {{id: Id, score: number, shape: number|null, distance: number|null}} Result */
/**
 * @typedef {object} Ranking
 * @property {Id[]} ids best first
 * @property {Map<Id, number>} ranks 1 is the best
 * @property {Map<Id, number>} scores
 * @property {Map<Id, ScoreParts>} parts of the scores, where shape and distance were fused
 */

/** @param {Result[]} results best first @returns {Ranking} */
export function toRanking(results) {
  return {
    ids: results.map((one) => one.id),
    ranks: new Map(results.map((one, index) => [one.id, index + 1])),
    scores: new Map(results.map((one) => [one.id, one.score])),
    parts: new Map(
      results.flatMap(({ id, shape, distance }) =>
        shape === null || distance === null ? [] : [[id, { shape, distance }]],
      ),
    ),
  };
}

/**
 * How far a result moved from its rank by plain distance.
 * @param {number} here its rank by shape
 * @param {number|undefined} there its rank by plain distance, if that is known
 * @param {number} depth ranks that are known
 * @returns {{text: string, kind: "up"|"down"|"same"|"beyond", words: string}}
 */
export function rankShift(here, there, depth) {
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
 * @param {number} here its rank by plain distance
 * @param {number|undefined} there its rank by shape, if that is known
 * @param {number|undefined} score its score by shape
 * @param {number} depth ranks that are known
 * @returns {{text: string, kind: "up"|"down"|"same"|"beyond", words: string}}
 */
export function rankByShape(here, there, score, depth) {
  if (there === undefined)
    return { text: `beyond ${depth}`, kind: "beyond", words: `beyond place ${depth} by shape` };
  if (score === 0) return { text: "not reached", kind: "beyond", words: "not reached along the shape" };
  const kind = there < here ? "up" : there > here ? "down" : "same";
  return { text: `→ ${there}`, kind, words: `place ${there} by shape` };
}

/** What was fused in a score. @param {ScoreParts} parts */
export function formatParts({ shape, distance }) {
  return `shape ${formatNumber(shape)}, distance ${formatNumber(distance)}`;
}

/** @typedef {{payload: Record<string, unknown>, image?: string|null}} Point */
/**
 * @typedef {object} ResultLists what both lists show
 * @property {import("./api.js").Info} info
 * @property {Ranking} plain
 * @property {Ranking} shape
 * @property {Id[]} listed best by shape, as listed
 * @property {number} depth
 * @property {number} count
 * @property {boolean} hasImages
 * @property {boolean} hasNegatives whether negative examples push points away
 * @property {string|null} column to judge by
 * @property {string|null} textColumn the column that says what points are
 * @property {(id: Id) => string|null} text what a point is
 * @property {unknown[]} queryValues values of the column that the query has
 * @property {Map<Id, Point>} points
 * @property {Map<Id, "right"|"wrong">} marks
 */
/**
 * @typedef {object} Actions
 * @property {(id: Id, add: boolean) => void} ask
 * @property {(id: Id, mark: "right"|"wrong") => void} mark
 * @property {(id: Id|null) => void} explain
 */

/** Characters of a text that are said aloud. */
const MAX_SPOKEN = 80;

/** @param {ResultLists} lists @param {Actions} actions */
export function showLists(lists, actions) {
  const focused = focusedRow();
  const side = focused?.parentElement?.id,
    index = focused ? [...(focused.parentElement?.children ?? [])].indexOf(focused) : -1;
  fillList(byId("list-plain"), lists.plain.ids.slice(0, lists.count), lists, actions, false);
  fillList(byId("list-shape"), lists.listed.slice(0, lists.count), lists, actions, true);
  if (side) byId(side).children[Math.max(0, index)]?.querySelector(".pick")?.focus({ preventScroll: true });
}

/** @param {HTMLElement} list @param {Id[]} ids @param {ResultLists} lists @param {Actions} actions @param {boolean} shape */
function fillList(list, ids, lists, actions, shape) {
  list.classList.toggle("pictures", lists.hasImages);
  list.classList.toggle("texts", lists.textColumn !== null);
  const rows = ids.map((id, index) => resultRow(id, index + 1, lists, actions, shape));
  if (!rows.length) rows.push(make("li", { class: "none" }, "No point meets the filter."));
  list.replaceChildren(...rows);
  setTabStop(list.querySelector(".result"), true);
}

/** One result of a list is reached by Tab; arrow keys choose which. @param {Element|null} row @param {boolean} now */
function setTabStop(row, now) {
  for (const button of row?.querySelectorAll("button") ?? [])
    button.setAttribute("tabindex", now ? "0" : "-1");
}

/** @param {Id} id @param {number} rank @param {ResultLists} lists @param {Actions} actions @param {boolean} shape */
function resultRow(id, rank, lists, actions, shape) {
  const point = lists.points.get(id);
  const text = lists.text(id);
  const value = lists.column && lists.column !== lists.textColumn ? point?.payload?.[lists.column] : undefined;
  const other = lists.queryValues.length > 0 && !lists.queryValues.includes(value);
  const [score, scoreWords] = shape
    ? [formatNumber(lists.shape.scores.get(id) ?? NaN), "score"]
    : formatPlain(lists.plain.scores.get(id) ?? NaN, lists.info.metric, lists.hasNegatives);
  const shift = shape
    ? rankShift(rank, lists.plain.ranks.get(id), lists.depth)
    : rankByShape(rank, lists.shape.ranks.get(id), lists.shape.scores.get(id), lists.depth);
  const parts = shape ? lists.shape.parts.get(id) : undefined;
  const scoreText = `${scoreWords} ${score}${parts ? ` (${formatParts(parts)})` : ""}`;
  const textWords = text === null ? "" : `, ${truncate(text, MAX_SPOKEN)}`;
  const valueWords = value === undefined ? "" : `, ${lists.column} ${value}${other ? ", unlike the query" : ""}`;
  const pick = make(
    "button",
    {
      type: "button",
      class: "pick",
      tabindex: -1,
      title: `${formatId(id)}: ${scoreText}; ${shift.words}`,
      "aria-label": `Rank ${rank}, id ${formatId(id)}${textWords}${valueWords}, ${scoreText}, ${shift.words}`,
    },
    lists.hasImages && point?.image ? make("img", { src: point.image, alt: "", loading: "lazy" }) : null,
    make("span", { class: "rank" }, String(rank)),
    lists.textColumn === null ? null : make("span", { class: "text", title: text }, text ?? "–"),
    make("span", { class: "name" }, formatId(id)),
    make("span", { class: "value", title: typeof value === "string" ? value : null }, ...valueParts(lists.column, value)),
    make("span", { class: "score" }, score),
    make("span", { class: "move", "data-kind": shift.kind }, shift.text),
  );
  const row = make(
    "li",
    {
      class: `result${other ? " other" : ""}`,
      "data-testid": "result",
      "data-id": writeJson(id),
      "data-rank": rank,
    },
    pick,
    shape ? markButtons(id, lists, actions) : null,
  );
  bindRow(row, pick, id, actions);
  return row;
}

/** Pointing at a result explains it, and choosing it asks with it. @param {HTMLElement} row @param {HTMLElement} pick @param {Id} id @param {Actions} actions */
function bindRow(row, pick, id, actions) {
  let activates = true; // with a finger, the first touch explains and the second asks
  pick.addEventListener("pointerdown", (/** @type {PointerEvent} */ event) => {
    activates = event.pointerType !== "touch" || row.classList.contains("explained");
  });
  pick.addEventListener("click", (/** @type {MouseEvent} */ event) => {
    if (activates) actions.ask(id, event.altKey || event.shiftKey);
    else actions.explain(id);
  });
  pick.addEventListener("focus", () => actions.explain(id));
  pick.addEventListener("blur", () => actions.explain(null));
  // Not when it comes under the pointer by scrolling: then keys choose what is explained.
  row.addEventListener("pointermove", (/** @type {PointerEvent} */ event) => {
    if (event.pointerType !== "touch" && pointerMoved) actions.explain(id);
  });
  row.addEventListener("pointerleave", (/** @type {PointerEvent} */ event) => {
    if (event.pointerType !== "touch") actions.explain(focusedId());
  });
}

let pointerMoved = false,
  pointerAt = "";
window.addEventListener(
  "pointermove",
  (event) => {
    const at = `${event.screenX} ${event.screenY}`;
    pointerMoved = at !== pointerAt;
    pointerAt = at;
  },
  { capture: true },
);

/** The result that keys have chosen. */
function focusedRow() {
  const focused = document.activeElement;
  return focused?.matches(":focus-visible")
    ? /** @type {HTMLElement|null} */ (focused.closest(".result"))
    : null;
}

function focusedId() {
  const row = focusedRow();
  return row ? readJson(/** @type {string} */ (row.dataset.id)) : null;
}

/** A text speaks for itself; a number needs the name of its column. @param {string|null} column @param {unknown} value */
function valueParts(column, value) {
  if (value === undefined || value === null) return value === null ? ["–"] : [];
  return typeof value === "string" ? [value] : [make("small", {}, `${column} `), String(value)];
}

/** @param {number} score cosine similarity, or minus the distance @param {string} metric @param {boolean} hasNegatives */
export function formatPlain(score, metric, hasNegatives) {
  if (metric === "cosine" && !hasNegatives) return [formatNumber(score), "similarity"];
  return hasNegatives || score > 0 ? [formatNumber(score), "score"] : [formatNumber(-score), "distance"];
}

/** @param {Id} id @param {ResultLists} lists @param {Actions} actions */
function markButtons(id, lists, actions) {
  const button = (/** @type {"right"|"wrong"} */ mark, /** @type {string} */ sign) =>
    make(
      "button",
      {
        type: "button",
        tabindex: -1,
        "data-mark": mark,
        "data-testid": `mark-${mark}`,
        title: `Mark as ${mark}`,
        "aria-label": `Mark ${formatId(id)} as ${mark}`,
        "aria-pressed": lists.marks.get(id) === mark,
        onclick: () => actions.mark(id, mark),
      },
      sign,
    );
  return make("span", { class: "marks" }, button("right", "✓"), button("wrong", "✗"));
}

/** Show which results are marked. @param {Map<Id, "right"|"wrong">} marks */
export function showMarks(marks) {
  for (const row of byId("list-shape").querySelectorAll(".result")) {
    const mark = marks.get(readJson(row.dataset.id));
    for (const button of row.querySelectorAll("[data-mark]")) {
      button.setAttribute("aria-pressed", String(button.dataset.mark === mark));
    }
  }
}

/** Show which result is explained. @param {Id|null} id */
export function highlightResult(id) {
  for (const row of document.querySelectorAll(".result")) {
    row.classList.toggle(
      "explained",
      id !== null && /** @type {HTMLElement} */ (row).dataset.id === writeJson(id),
    );
  }
}

/** Arrow keys move through a list, r and w mark, Escape leaves. @param {HTMLElement} list @param {Actions} actions */
export function bindListKeys(list, actions) {
  list.addEventListener("keydown", (event) => {
    const row = /** @type {HTMLElement|null} */ (/** @type {Element} */ (event.target).closest(".result"));
    if (!row || event.ctrlKey || event.metaKey) return;
    const rows = [...list.querySelectorAll(".result")],
      at = rows.indexOf(row);
    const across = list.classList.contains("pictures") ? rowsPerLine(rows) : 1;
    /** @type {Record<string, number>} */
    const steps = {
      ArrowDown: across,
      ArrowUp: -across,
      ArrowRight: 1,
      ArrowLeft: -1,
      Home: -at,
      End: rows.length - 1 - at,
    };
    if (event.key in steps) {
      event.preventDefault();
      const next = rows[Math.max(0, Math.min(rows.length - 1, at + steps[event.key]))];
      for (const one of rows) setTabStop(one, one === next);
      /** @type {HTMLElement} */ (next.querySelector(".pick")).focus();
    } else if (list.id === "list-shape" && (event.key === "r" || event.key === "w")) {
      event.preventDefault();
      actions.mark(readJson(/** @type {string} */ (row.dataset.id)), event.key === "r" ? "right" : "wrong");
    }
  });
}

/** @param {Element[]} rows */
function rowsPerLine(rows) {
  const top = rows[0]?.getBoundingClientRect().top;
  return Math.max(1, rows.filter((row) => row.getBoundingClientRect().top === top).length);
}
