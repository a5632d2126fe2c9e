/** Sliders and choices beside the maps. */

import { BUDGETED, SMOOTHNESS, fuses, usualFusion } from "./asking.js";
import { byId, make } from "./elements.js";

/** @typedef {import("./link.js").Asked} Asked */
/** @typedef {import("./api.js").Info} Info */
/** @typedef {"k"|"smoothness"|"alternations"|"diversity"} Name */
/**
 * @typedef {object} Kind
 * @property {Name} name
 * @property {string} label
 * @property {string} title
 * @property {number} least on the slider
 * @property {number} most
 * @property {number} step
 * @property {(value: number) => number} toSlider
 * @property {(at: number) => number} fromSlider
 */

/** Values of the smoothness, about even on a logarithmic scale, from 0.1 to 1000. */
const SMOOTH = [0.1, 1, 10, 100]
  .flatMap((unit) => [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8].map((part) => Number((unit * part).toPrecision(2))))
  .concat(1000);

/** @param {number} value @returns {number} the place of the value that is nearest in ratio */
export function smoothPlace(value) {
  const away = SMOOTH.map((one) => Math.abs(Math.log(one / value)));
  return away.indexOf(Math.min(...away));
}

const same = (/** @type {number} */ value) => value;

/** @type {Kind[]} */
const KINDS = [
  {
    name: "k",
    label: "Neighbours",
    title: "Neighbours of a point in the graph",
    least: 2,
    most: 50,
    step: 1,
    toSlider: same,
    fromSlider: same,
  },
  {
    name: "smoothness",
    label: "Smoothness",
    title: "How far scores flow along the graph",
    least: 0,
    most: SMOOTH.length - 1,
    step: 1,
    toSlider: smoothPlace,
    fromSlider: (at) => SMOOTH[at],
  },
  {
    name: "alternations",
    label: "Alternations",
    title: "How often the graph is learned anew for the query",
    least: 1,
    most: 10,
    step: 1,
    toSlider: same,
    fromSlider: same,
  },
  {
    name: "diversity",
    label: "Diversity",
    title: "How different listed results are from each other",
    least: 0,
    most: 1,
    step: 0.05,
    toSlider: same,
    fromSlider: (at) => Number(at.toFixed(2)),
  },
];

/** @param {Name} name @param {Info} info */
export function usual(name, info) {
  return { k: info.n_neighbors, smoothness: SMOOTHNESS, alternations: 1, diversity: 0 }[name];
}

/**
 * Make the sliders.
 * @param {(name: Name, value: number) => void} onSlide
 */
export function makeSliders(onSlide) {
  for (const kind of KINDS) {
    const input = make("input", {
      type: "range",
      id: `slider-${kind.name}`,
      min: kind.least,
      max: kind.most,
      step: kind.step,
      title: kind.title,
      "data-testid": `slider-${kind.name}`,
    });
    const output = make("output", {
      id: `value-${kind.name}`,
      for: input.id,
      "data-testid": `value-${kind.name}`,
    });
    input.addEventListener("input", () => {
      const value = kind.fromSlider(Number(input.value));
      show(input, output, value);
      onSlide(kind.name, value);
    });
    const slider = make(
      "div",
      { class: "slider", "data-name": kind.name },
      make("div", { class: "head" }, make("label", { for: input.id, title: kind.title }, kind.label), output),
      make("div", { class: "track" }, input, make("i", { "aria-hidden": "true" })),
    );
    byId(kind.name === "diversity" ? "more-sliders" : "sliders").append(slider);
  }
}

/** @param {HTMLInputElement} input @param {HTMLElement} output @param {number} value */
function show(input, output, value) {
  output.textContent = String(value);
  input.setAttribute("aria-valuetext", String(value));
}

/** Set everything to what is asked. @param {Asked} asked @param {Info} info */
export function setControls(asked, info) {
  for (const kind of KINDS) {
    const input = byId(`slider-${kind.name}`),
      value = asked[kind.name] ?? usual(kind.name, info);
    if (kind.name === "k")
      input.max = String(Math.max(3, Math.min(50, info.points - 2, info.limits?.n_neighbors ?? 50)));
    if (kind.name === "alternations") input.max = String(Math.min(kind.most, info.limits?.max_iter ?? kind.most));
    input.value = String(kind.toSlider(value));
    show(input, byId(`value-${kind.name}`), value);
    const least = Number(input.min),
      most = Number(input.max);
    const off = least === most || (kind.name !== "diversity" && asked.method !== "ran");
    input.disabled = off;
    const slider = input.closest(".slider");
    slider.dataset.off = String(off);
    const part = (kind.toSlider(usual(kind.name, info)) - least) / Math.max(1, most - least);
    // The middle of the knob runs from 8 px to 8 px before the end.
    slider.querySelector("i").style.left = `calc(8px + (100% - 16px) * ${part.toFixed(4)})`;
  }
  const proven = byId("proven");
  proven.checked = asked.proven;
  proven.disabled = !BUDGETED.includes(asked.method);
  proven.closest(".choice").dataset.off = String(proven.disabled);
  const fusion = byId("fusion");
  fusion.value = fuses(asked.method) ? (asked.fusion ?? usualFusion(asked.method)) : "none";
  fusion.disabled = !fuses(asked.method);
  fusion.closest(".field").dataset.off = String(fusion.disabled);
  byId("where").value = asked.where;
  byId("where").placeholder = example(info);
  fill(byId("method"), info.methods, asked.method);
  byId("colouring").value = asked.colouring;
  showReset(asked);
}

/** @param {Asked} asked */
export function showReset(asked) {
  const { k, smoothness, alternations, fusion, proven } = asked;
  byId("reset").hidden = [k, smoothness, alternations, fusion].every((one) => one === null) && !proven;
}

/** @param {HTMLSelectElement} select @param {string[]} names @param {string} chosen */
function fill(select, names, chosen) {
  const all = names.includes(chosen) ? names : [...names, chosen];
  select.replaceChildren(...all.map((name) => make("option", { value: name }, name)));
  select.value = chosen;
}

/** @param {Info} info @param {string|null} chosen */
export function setColumns(info, chosen) {
  const columns = Object.keys(info.columns).filter((name) => name !== "image");
  byId("judging").hidden = !columns.length;
  byId("judge").replaceChildren(
    make("option", { value: "" }, "nothing"),
    ...columns.map((name) => make("option", { value: name }, name)),
  );
  byId("judge").value = chosen ?? "";
  byId("colouring").disabled = !chosen;
  byId("colouring").options[1].textContent = chosen ? chosen : "column";
}

/** A condition that this index understands. @param {Info} info */
function example(info) {
  const [name, kind] = Object.entries(info.columns).find(([column]) => column !== "image") ?? [
    "price",
    "number",
  ];
  return kind === "text" ? `${name} = "…"` : `such as ${name} = 1`;
}
