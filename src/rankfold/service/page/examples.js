/** What the query consists of: points, vectors, and points that are not looked for. */

import { byId, make } from "./elements.js";
import { holdsVectors } from "./link.js";
import { nameOf } from "./moves.js";

/** @typedef {import("./moves.js").Id} Id */
/** @typedef {import("./link.js").Asked} Asked */
/** @typedef {{kind: "id"|"negative", id: Id}|{kind: "vector", place: number}} Part */

/**
 * @param {Asked} asked
 * @param {(id: Id) => string|null} picture
 * @param {(id: Id) => string|null} text what a point is
 * @param {(part: Part) => void} onRemove
 * @param {(() => void)|null} undo
 */
export function showExamples(asked, picture, text, onRemove, undo) {
  const alone = asked.ids.length + asked.vectors.length === 1;
  const chips = [
    ...asked.ids.map((id) =>
      chip("id", nameOf(id), picture(id), text(id), alone ? null : () => onRemove({ kind: "id", id })),
    ),
    ...asked.vectors.map((vector, place) =>
      chip("vector", vectorName(vector), null, null, alone ? null : () => onRemove({ kind: "vector", place })),
    ),
    ...asked.negative.map((id) =>
      chip("negative", `✗ not ${nameOf(id)}`, picture(id), text(id), () => onRemove({ kind: "negative", id })),
    ),
  ];
  if (undo) {
    chips.push(
      make(
        "button",
        {
          type: "button",
          class: "quiet",
          "data-testid": "undo",
          title: "Back to the query before",
          onclick: undo,
        },
        "Undo",
      ),
    );
  }
  byId("examples").replaceChildren(...chips);
  byId("unlinked").hidden = holdsVectors(asked);
}

/** @param {string} kind @param {string} name @param {string|null} image @param {string|null} text @param {(() => void)|null} remove */
function chip(kind, name, image, text, remove) {
  const button =
    remove &&
    make("button", { type: "button", class: "quiet", "aria-label": `Remove ${name}`, onclick: remove }, "✕");
  return make(
    "li",
    { "data-kind": kind, "data-testid": "example" },
    image ? make("img", { src: image, alt: "" }) : null,
    make("span", { title: name }, name),
    button,
    text === null ? null : make("p", { title: text, "data-testid": "example-text" }, text),
  );
}

/** @param {number[]} vector */
export function vectorName(vector) {
  if (vector.length <= 3) return `(${vector.map((x) => Number(x.toFixed(2))).join(", ")})`;
  return `vector of ${vector.length}`;
}

/**
 * The query without one of its parts.
 * @param {Asked} asked
 * @param {Part} part
 * @returns {Asked}
 */
export function without(asked, part) {
  if (part.kind === "vector")
    return { ...asked, vectors: asked.vectors.filter((_, place) => place !== part.place) };
  return {
    ...asked,
    ids: part.kind === "id" ? asked.ids.filter((id) => id !== part.id) : asked.ids,
    negative: part.kind === "negative" ? asked.negative.filter((id) => id !== part.id) : asked.negative,
  };
}

/**
 * The query after results were marked: right ones are examples, wrong ones are not looked for.
 * @param {Asked} asked
 * @param {Map<Id, "right"|"wrong">} marks
 * @returns {Asked}
 */
export function refined(asked, marks) {
  const right = [...marks].filter(([, mark]) => mark === "right").map(([id]) => id);
  const wrong = [...marks].filter(([, mark]) => mark === "wrong").map(([id]) => id);
  const ids = [
    ...asked.ids.filter((id) => !wrong.includes(id)),
    ...right.filter((id) => !asked.ids.includes(id)),
  ];
  const negative = [...asked.negative.filter((id) => !right.includes(id) && !wrong.includes(id)), ...wrong];
  return { ...asked, ids, negative };
}
