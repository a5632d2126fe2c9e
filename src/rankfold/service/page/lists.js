/** The two lists of results. */

import { cut } from "./columns.js";
import { byId, make } from "./elements.js";
import { readJson, writeJson } from "./json.js";
import { counterpart, move, nameOf, partsWords, short } from "./moves.js";

/** @typedef {import("./moves.js").Id} Id */
/** @typedef {import("./moves.js").Ranked} Ranked */
/** @typedef {{payload: Record<string, unknown>, image?: string|null}} Point */
/**
 * @typedef {object} Shown what both lists show
 * @property {Ranked} plain
 * @property {Ranked} shape
 * @property {Id[]} listed best by shape, as listed
 * @property {number} depth
 * @property {number} count
 * @property {boolean} pictures
 * @property {boolean} pushed whether negative examples push points away
 * @property {string|null} column to judge by
 * @property {string|null} read the column that says what points are
 * @property {(id: Id) => string|null} text what a point is
 * @property {unknown[]} wanted values of the column that the query has
 * @property {Map<Id, Point>} known
 * @property {Map<Id, "right"|"wrong">} marks
 */
/**
 * @typedef {object} Actions
 * @property {(id: Id, more: boolean) => void} ask
 * @property {(id: Id, mark: "right"|"wrong") => void} mark
 * @property {(id: Id|null) => void} look
 */

/** Characters of a text that are said aloud. */
const SAID = 80;

/** @param {Shown} shown @param {Actions} actions */
export function showLists(shown, actions) {
  const focused = focusedRow();
  const side = focused?.parentElement?.id,
    place = focused ? [...(focused.parentElement?.children ?? [])].indexOf(focused) : -1;
  fill(byId("list-plain"), shown.plain.ids.slice(0, shown.count), shown, actions, false);
  fill(byId("list-shape"), shown.listed.slice(0, shown.count), shown, actions, true);
  if (side) byId(side).children[Math.max(0, place)]?.querySelector(".pick")?.focus({ preventScroll: true });
}

/** @param {HTMLElement} list @param {Id[]} ids @param {Shown} shown @param {Actions} actions @param {boolean} shape */
function fill(list, ids, shown, actions, shape) {
  list.classList.toggle("pictures", shown.pictures);
  list.classList.toggle("texts", shown.read !== null);
  const rows = ids.map((id, place) => item(id, place + 1, shown, actions, shape));
  if (!rows.length) rows.push(make("li", { class: "none" }, "No point meets the filter."));
  list.replaceChildren(...rows);
  reachable(list.querySelector(".result"), true);
}

/** One result of a list is reached by Tab; arrow keys choose which. @param {Element|null} row @param {boolean} now */
function reachable(row, now) {
  for (const button of row?.querySelectorAll("button") ?? [])
    button.setAttribute("tabindex", now ? "0" : "-1");
}

/** @param {Id} id @param {number} rank @param {Shown} shown @param {Actions} actions @param {boolean} shape */
function item(id, rank, shown, actions, shape) {
  const point = shown.known.get(id);
  const text = shown.text(id);
  const value = shown.column && shown.column !== shown.read ? point?.payload?.[shown.column] : undefined;
  const other = shown.wanted.length > 0 && !shown.wanted.includes(value);
  const [score, scoreWords] = shape
    ? [short(shown.shape.scores.get(id) ?? NaN), "score"]
    : distance(shown.plain.scores.get(id) ?? NaN, shown.pushed);
  const moved = shape
    ? move(rank, shown.plain.ranks.get(id), shown.depth)
    : counterpart(rank, shown.shape.ranks.get(id), shown.shape.scores.get(id), shown.depth);
  const parts = shape ? shown.shape.parts.get(id) : undefined;
  const measured = `${scoreWords} ${score}${parts ? ` (${partsWords(parts)})` : ""}`;
  const told = text === null ? "" : `, ${cut(text, SAID)}`;
  const says = value === undefined ? "" : `, ${shown.column} ${value}${other ? ", unlike the query" : ""}`;
  const pick = make(
    "button",
    {
      type: "button",
      class: "pick",
      tabindex: -1,
      title: `${nameOf(id)}: ${measured}; ${moved.words}`,
      "aria-label": `Rank ${rank}, id ${nameOf(id)}${told}${says}, ${measured}, ${moved.words}`,
    },
    shown.pictures && point?.image ? make("img", { src: point.image, alt: "", loading: "lazy" }) : null,
    make("span", { class: "rank" }, String(rank)),
    shown.read === null ? null : make("span", { class: "text", title: text }, text ?? "–"),
    make("span", { class: "name" }, nameOf(id)),
    make("span", { class: "value", title: typeof value === "string" ? value : null }, ...valueParts(shown.column, value)),
    make("span", { class: "score" }, score),
    make("span", { class: "move", "data-kind": moved.kind }, moved.text),
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
    shape ? marks(id, shown, actions) : null,
  );
  listen(row, pick, id, actions);
  return row;
}

/** Pointing at a result explains it, and choosing it asks with it. @param {HTMLElement} row @param {HTMLElement} pick @param {Id} id @param {Actions} actions */
function listen(row, pick, id, actions) {
  let explained = true; // with a finger, the first touch explains and the second asks
  pick.addEventListener("pointerdown", (/** @type {PointerEvent} */ event) => {
    explained = event.pointerType !== "touch" || row.classList.contains("looked");
  });
  pick.addEventListener("click", (/** @type {MouseEvent} */ event) => {
    if (explained) actions.ask(id, event.altKey || event.shiftKey);
    else actions.look(id);
  });
  pick.addEventListener("focus", () => actions.look(id));
  pick.addEventListener("blur", () => actions.look(null));
  // Not when it comes under the pointer by scrolling: then keys choose what is looked at.
  row.addEventListener("pointermove", (/** @type {PointerEvent} */ event) => {
    if (event.pointerType !== "touch" && pointerMoved) actions.look(id);
  });
  row.addEventListener("pointerleave", (/** @type {PointerEvent} */ event) => {
    if (event.pointerType !== "touch") actions.look(focusedId());
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

/** @param {number} score minus the squared distance @param {boolean} pushed */
function distance(score, pushed) {
  return pushed || score > 0 ? [short(score), "score"] : [short(Math.sqrt(-score)), "distance"];
}

/** @param {Id} id @param {Shown} shown @param {Actions} actions */
function marks(id, shown, actions) {
  const button = (/** @type {"right"|"wrong"} */ mark, /** @type {string} */ sign) =>
    make(
      "button",
      {
        type: "button",
        tabindex: -1,
        "data-mark": mark,
        "data-testid": `mark-${mark}`,
        title: `Mark as ${mark}`,
        "aria-label": `Mark ${nameOf(id)} as ${mark}`,
        "aria-pressed": shown.marks.get(id) === mark,
        onclick: () => actions.mark(id, mark),
      },
      sign,
    );
  return make("span", { class: "marks" }, button("right", "✓"), button("wrong", "✗"));
}

/** Show which results are marked. @param {Map<Id, "right"|"wrong">} marked */
export function showMarks(marked) {
  for (const row of byId("list-shape").querySelectorAll(".result")) {
    const mark = marked.get(readJson(row.dataset.id));
    for (const button of row.querySelectorAll("[data-mark]")) {
      button.setAttribute("aria-pressed", String(button.dataset.mark === mark));
    }
  }
}

/** Show which result is looked at. @param {Id|null} id */
export function showLooked(id) {
  for (const row of document.querySelectorAll(".result")) {
    row.classList.toggle(
      "looked",
      id !== null && /** @type {HTMLElement} */ (row).dataset.id === writeJson(id),
    );
  }
}

/** Arrow keys move through a list, r and w mark, Escape leaves. @param {HTMLElement} list @param {Actions} actions */
export function listKeys(list, actions) {
  list.addEventListener("keydown", (event) => {
    const row = /** @type {HTMLElement|null} */ (/** @type {Element} */ (event.target).closest(".result"));
    if (!row || event.ctrlKey || event.metaKey) return;
    const rows = [...list.querySelectorAll(".result")],
      at = rows.indexOf(row);
    const across = list.classList.contains("pictures") ? perLine(rows) : 1;
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
      for (const one of rows) reachable(one, one === next);
      /** @type {HTMLElement} */ (next.querySelector(".pick")).focus();
    } else if (list.id === "list-shape" && (event.key === "r" || event.key === "w")) {
      event.preventDefault();
      actions.mark(readJson(/** @type {string} */ (row.dataset.id)), event.key === "r" ? "right" : "wrong");
    }
  });
}

/** @param {Element[]} rows */
function perLine(rows) {
  const top = rows[0]?.getBoundingClientRect().top;
  return Math.max(1, rows.filter((row) => row.getBoundingClientRect().top === top).length);
}
