/** Sliders, fields, buttons and keys beside the maps, and the examples of the query. */

import { bindDialogs, bindNotice, openVectorDialog, showNotice } from "./dialogs.js";
import { byId, formatId, make } from "./elements.js";
import { BUDGET_METHODS, DEFAULT_SMOOTHNESS, countExamples, defaultFusion, fitsInLink, supportsFusion } from "./query.js";
import { bindThemeButton, onThemeChange } from "./theme.js";
import { VectorError, onFileDrop, readVectors } from "./vectors.js";

/** @typedef {import("./api.js").Id} Id */
/** @typedef {import("./api.js").Info} Info */
/** @typedef {import("./main.js").Page} Page */
/** @typedef {import("./query.js").Query} Query */
/** @typedef {import("./query.js").Example} Example */

/** @typedef {"k"|"smoothness"|"alternations"|"diversity"} Name */
/**
 * @typedef {object} Slider
 * @property {Name} name
 * @property {string} label
 * @property {string} title
 * @property {number} min on the slider
 * @property {number} max
 * @property {number} step
 * @property {(value: number) => number} toSlider
 * @property {(at: number) => number} fromSlider
 */

/** Values of the smoothness, about even on a logarithmic scale, from 0.1 to 1000. */
const SMOOTHNESS_STEPS = [0.1, 1, 10, 100]
  .flatMap((unit) => [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8].map((part) => Number((unit * part).toPrecision(2))))
  .concat(1000);

/** @param {number} value @returns {number} the index of the value that is nearest in ratio */
function smoothnessStep(value) {
  const away = SMOOTHNESS_STEPS.map((one) => Math.abs(Math.log(one / value)));
  return away.indexOf(Math.min(...away));
}

const identity = (/** @type {number} */ value) => value;

/** @type {Slider[]} */
const SLIDERS = [
  {
    name: "k",
    label: "Neighbours",
    title: "Neighbours of a point in the graph",
    min: 2,
    max: 50,
    step: 1,
    toSlider: identity,
    fromSlider: identity,
  },
  {
    name: "smoothness",
    label: "Smoothness",
    title: "How far scores flow along the graph",
    min: 0,
    max: SMOOTHNESS_STEPS.length - 1,
    step: 1,
    toSlider: smoothnessStep,
    fromSlider: (at) => SMOOTHNESS_STEPS[at],
  },
  {
    name: "alternations",
    label: "Alternations",
    title: "How often the graph is learned anew for the query",
    min: 1,
    max: 10,
    step: 1,
    toSlider: identity,
    fromSlider: identity,
  },
  {
    name: "diversity",
    label: "Diversity",
    title: "How different listed results are from each other",
    min: 0,
    max: 1,
    step: 0.05,
    toSlider: identity,
    fromSlider: (at) => Number(at.toFixed(2)),
  },
];

/** @param {Name} name @param {Info} info */
function defaultValue(name, info) {
  return { k: info.n_neighbors, smoothness: DEFAULT_SMOOTHNESS, alternations: 1, diversity: 0 }[name];
}

/**
 * Make the sliders.
 * @param {(name: Name, value: number) => void} onSlide
 */
function makeSliders(onSlide) {
  for (const spec of SLIDERS) {
    const input = make("input", {
      type: "range",
      id: `slider-${spec.name}`,
      min: spec.min,
      max: spec.max,
      step: spec.step,
      title: spec.title,
      "data-testid": `slider-${spec.name}`,
    });
    const output = make("output", {
      id: `value-${spec.name}`,
      for: input.id,
      "data-testid": `value-${spec.name}`,
    });
    input.addEventListener("input", () => {
      const value = spec.fromSlider(Number(input.value));
      showValue(input, output, value);
      onSlide(spec.name, value);
    });
    const slider = make(
      "div",
      { class: "slider", "data-name": spec.name },
      make("div", { class: "head" }, make("label", { for: input.id, title: spec.title }, spec.label), output),
      make("div", { class: "track" }, input, make("i", { "aria-hidden": "true" })),
    );
    byId(spec.name === "diversity" ? "more-sliders" : "sliders").append(slider);
  }
}

/** @param {HTMLInputElement} input @param {HTMLElement} output @param {number} value */
function showValue(input, output, value) {
  output.textContent = String(value);
  input.setAttribute("aria-valuetext", String(value));
}

/** Set everything to what is asked. @param {Query} query @param {Info} info */
export function updateControls(query, info) {
  for (const spec of SLIDERS) {
    const input = byId(`slider-${spec.name}`),
      value = query[spec.name] ?? defaultValue(spec.name, info);
    if (spec.name === "k")
      input.max = String(Math.max(3, Math.min(50, info.points - 2, info.limits?.n_neighbors ?? 50)));
    if (spec.name === "alternations") input.max = String(Math.min(spec.max, info.limits?.max_iter ?? spec.max));
    input.value = String(spec.toSlider(value));
    showValue(input, byId(`value-${spec.name}`), value);
    const min = Number(input.min),
      max = Number(input.max);
    const off = min === max || (spec.name !== "diversity" && query.method !== "ran");
    input.disabled = off;
    const slider = input.closest(".slider");
    slider.dataset.off = String(off);
    // The default of a tiny index may be beyond what it has points for.
    const fraction = Math.min(1, (spec.toSlider(defaultValue(spec.name, info)) - min) / Math.max(1, max - min));
    // The middle of the knob runs from 8 px to 8 px before the end.
    slider.querySelector("i").style.left = `calc(8px + (100% - 16px) * ${fraction.toFixed(4)})`;
  }
  const proven = byId("proven");
  proven.checked = query.proven;
  proven.disabled = !BUDGET_METHODS.includes(query.method);
  proven.closest(".choice").dataset.off = String(proven.disabled);
  const fusion = byId("fusion");
  fusion.value = supportsFusion(query.method) ? (query.fusion ?? defaultFusion(query.method)) : "none";
  fusion.disabled = !supportsFusion(query.method);
  fusion.closest(".field").dataset.off = String(fusion.disabled);
  byId("where").value = query.where;
  byId("where").placeholder = exampleFilter(info);
  fillSelect(byId("method"), info.methods, query.method);
  byId("colouring").value = query.colouring;
  showReset(query);
}

/** @param {Query} query */
function showReset(query) {
  const { k, smoothness, alternations, fusion, proven } = query;
  byId("reset").hidden = [k, smoothness, alternations, fusion].every((one) => one === null) && !proven;
}

/** @param {HTMLSelectElement} select @param {string[]} names @param {string} chosen */
function fillSelect(select, names, chosen) {
  const all = names.includes(chosen) ? names : [...names, chosen];
  select.replaceChildren(...all.map((name) => make("option", { value: name }, name)));
  select.value = chosen;
}

/** @param {Info} info @param {string|null} chosen */
export function updateColumnChoices(info, chosen) {
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
function exampleFilter(info) {
  const [name, kind] = Object.entries(info.columns).find(([column]) => column !== "image") ?? [
    "price",
    "number",
  ];
  return kind === "text" ? `${name} = "…"` : `such as ${name} = 1`;
}

/**
 * @param {Query} query
 * @param {(id: Id) => string|null} image
 * @param {(id: Id) => string|null} text what a point is
 * @param {(example: Example) => void} onRemove
 * @param {(() => void)|null} undo
 */
export function showExamples(query, image, text, onRemove, undo) {
  const alone = countExamples(query) === 1;
  const chips = [
    ...query.ids.map((id) =>
      chip("id", formatId(id), image(id), text(id), alone ? null : () => onRemove({ kind: "id", id })),
    ),
    ...query.vectors.map((vector, index) =>
      chip("vector", formatVector(vector), null, null, alone ? null : () => onRemove({ kind: "vector", index })),
    ),
    ...(query.text ? [chip("text", `“${query.text}”`, null, null, alone ? null : () => onRemove({ kind: "text" }))] : []),
    ...query.negative.map((id) =>
      chip("negative", `✗ not ${formatId(id)}`, image(id), text(id), () => onRemove({ kind: "negative", id })),
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
  byId("unlinked").hidden = fitsInLink(query);
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
function formatVector(vector) {
  if (vector.length <= 3) return `(${vector.map((x) => Number(x.toFixed(2))).join(", ")})`;
  return `vector of ${vector.length}`;
}

/** @param {Page} page */
export function bindControls(page) {
  bindThemeButton(byId("theme"));
  onThemeChange(() => page.answer.recolour(false));
  bindNotice();
  makeSliders((name, value) => {
    if (!page.info) return;
    const chosen = name !== "diversity" && value === defaultValue(name, page.info) ? null : value;
    page.query = { ...page.query, [name]: chosen };
    showReset(page.query);
    page.ask(page.query, { history: "replace", flow: false, live: true });
  });
  byId("reset").addEventListener("click", () => {
    byId("slider-k").focus();
    page.ask(
      { ...page.query, k: null, smoothness: null, alternations: null, fusion: null, proven: false },
      { history: "replace", flow: false },
    );
  });
  bindDialogs({
    onKey: () => (page.retry ? page.retry() : page.loader.connect()),
    onVectors: (vectors) => page.askWithVectors(vectors),
    info: () => page.info,
  });
  onFileDrop((file) => askWithFile(page, file));
  window.addEventListener("paste", (event) => {
    const target = /** @type {Element} */ (event.target),
      text = event.clipboardData?.getData("text");
    if (!text || target.closest?.("input, textarea, dialog")) return;
    byId("vector-text").value = text;
    openVectorDialog(page.info);
  });
  bindFields(page);
  bindChoices(page);
  bindButtons(page);
  bindShortcuts(page);
}

/** @param {Page} page @param {File} file */
async function askWithFile(page, file) {
  if (!page.info) return;
  try {
    page.askWithVectors(await readVectors(file, page.info));
  } catch (error) {
    if (!(error instanceof VectorError)) throw error;
    showNotice(error.message);
  }
}

/** Fields that are typed into. @param {Page} page */
function bindFields(page) {
  byId("filter-form").addEventListener("submit", (/** @type {Event} */ event) => {
    event.preventDefault();
    filter();
  });
  // Enter brings both events; the filter is asked for once.
  const filter = () => {
    const where = byId("where").value;
    if (where !== page.query.where) page.ask({ ...page.query, where }, { history: "replace", flow: false });
  };
  byId("where").addEventListener("change", filter);
}

/** Fields that change how the answer is found or shown. @param {Page} page */
function bindChoices(page) {
  byId("proven").addEventListener("change", () => {
    page.ask({ ...page.query, proven: byId("proven").checked }, { history: "replace", flow: false });
  });
  byId("fusion").addEventListener("change", () => {
    const chosen = byId("fusion").value;
    const fusion = chosen === defaultFusion(page.query.method) ? null : chosen;
    page.ask({ ...page.query, fusion }, { history: "replace", flow: false });
  });
  byId("method").addEventListener("change", () => {
    page.ask({ ...page.query, method: byId("method").value }, { history: "replace", flow: false });
  });
  byId("judge").addEventListener("change", async () => {
    const judge = byId("judge").value;
    const query = {
      ...page.query,
      judge,
      colouring: judge ? page.query.colouring : /** @type {const} */ ("rank"),
    };
    page.query = query;
    await page.judgeBy(query);
    redraw(page);
  });
  byId("colouring").addEventListener("change", () => {
    page.query = { ...page.query, colouring: byId("colouring").value };
    redraw(page);
  });
}

/** @param {Page} page */
function bindButtons(page) {
  byId("ask-again").addEventListener("click", () => page.answer.askAgain());
  byId("clear-marks").addEventListener("click", () => page.answer.clearMarks());
  byId("skip").addEventListener("click", (/** @type {Event} */ event) => {
    event.preventDefault(); // the address names what is shown
    (byId("results").querySelector(".pick[tabindex='0']") ?? byId("results")).focus();
  });
  document.addEventListener("pointerdown", (event) => {
    const target = /** @type {Element} */ (event.target);
    if (event.pointerType === "touch" && !target.closest(".result, .why")) page.explanation.close();
  });
  byId("why").addEventListener("pointerenter", () => page.explanation.keepOpen());
  byId("why").addEventListener("click", () => page.explanation.keepOpen()); // the focus has just left the result
  byId("why").addEventListener("pointerleave", () => page.explanation.request(null));
  byId("fit").addEventListener("click", () => page.maps.viewport.fit());
  const lists = byId("results");
  lists.dataset.show = "shape";
  for (const button of lists.querySelectorAll("[data-show]")) {
    button.addEventListener("click", () => {
      lists.dataset.show = button.dataset.show;
      for (const one of lists.querySelectorAll(".switch button"))
        one.setAttribute("aria-pressed", String(one === button));
    });
  }
}

/** Show the same answer in other colours and with another column. @param {Page} page */
function redraw(page) {
  if (!page.info) return;
  updateControls(page.query, page.info);
  page.saveLink("replace");
  page.answer.recolour(false);
  page.answer.showLists();
}

/** @param {Page} page */
function bindShortcuts(page) {
  document.addEventListener("keydown", (event) => {
    const target = /** @type {HTMLElement} */ (event.target);
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (event.key === "Escape") {
      if (target instanceof HTMLElement) target.blur();
      page.explanation.close();
      return;
    }
    if (target.matches?.("input:not([type=range], [type=checkbox]), textarea, select")) return;
    /** @type {Record<string, () => void>} */
    const keys = {
      "?": () => byId("help-dialog").showModal(),
      "/": () => byId("ask-id").focus(),
      v: () => openVectorDialog(page.info),
      a: () => page.answer.askAgain(),
      u: () => page.undo(),
    };
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  });
}
