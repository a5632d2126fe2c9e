/** Buttons, keys and fields of the page. */

import { usualFusion } from "./asking.js";
import { makeSliders, setControls, showReset, usual } from "./controls.js";
import { makeDialogs, openVector } from "./dialogs.js";
import { listenForFiles, vectorsOf } from "./dropping.js";
import { byId } from "./elements.js";
import { readId } from "./link.js";
import { noticeButtons, showNotice } from "./notice.js";
import { onTheme, themeSwitch } from "./theme.js";
import { VectorError } from "./vectors.js";

/** @typedef {import("./main.js").Page} Page */

/** @param {Page} page */
export function makeControls(page) {
  themeSwitch(byId("theme"));
  onTheme(() => page.view.paint(false));
  noticeButtons();
  makeSliders((name, value) => {
    if (!page.info) return;
    const chosen = name !== "diversity" && value === usual(name, page.info) ? null : value;
    page.asked = { ...page.asked, [name]: chosen };
    showReset(page.asked);
    page.ask(page.asked, { history: "replace", flow: false, live: true });
  });
  byId("reset").addEventListener("click", () => {
    byId("slider-k").focus();
    page.ask(
      { ...page.asked, k: null, smoothness: null, alternations: null, fusion: null, proven: false },
      { history: "replace", flow: false },
    );
  });
  makeDialogs({
    onKey: () => (page.again ? page.again() : page.opening.connect()),
    onVectors: (vectors) => page.askVectors(vectors),
    info: () => page.info,
  });
  listenForFiles((file) => drop(page, file));
  window.addEventListener("paste", (event) => {
    const target = /** @type {Element} */ (event.target),
      text = event.clipboardData?.getData("text");
    if (!text || target.closest?.("input, textarea, dialog")) return;
    byId("vector-text").value = text;
    openVector(page.info);
  });
  makeFields(page);
  makeChoices(page);
  makeButtons(page);
  makeKeys(page);
}

/** @param {Page} page @param {File} file */
async function drop(page, file) {
  if (!page.info) return;
  try {
    page.askVectors(await vectorsOf(file, page.info));
  } catch (error) {
    if (!(error instanceof VectorError)) throw error;
    showNotice(error.message);
  }
}

/** Fields that are typed into. @param {Page} page */
function makeFields(page) {
  byId("ask-form").addEventListener("submit", (/** @type {Event} */ event) => {
    event.preventDefault();
    const text = byId("ask-id").value.trim();
    if (!text) return;
    // A number may also be the text of an id: take what the map has.
    const id = readId(text),
      known = page.maps.places?.rows;
    page.askWith(known?.has(id) || !known?.has(text) ? id : text, false);
    byId("ask-id").select();
  });
  byId("filter-form").addEventListener("submit", (/** @type {Event} */ event) => {
    event.preventDefault();
    filter();
  });
  // Enter brings both events; the filter is asked for once.
  const filter = () => {
    const where = byId("where").value;
    if (where !== page.asked.where) page.ask({ ...page.asked, where }, { history: "replace", flow: false });
  };
  byId("where").addEventListener("change", filter);
}

/** Fields that change how the answer is found or shown. @param {Page} page */
function makeChoices(page) {
  byId("proven").addEventListener("change", () => {
    page.ask({ ...page.asked, proven: byId("proven").checked }, { history: "replace", flow: false });
  });
  byId("fusion").addEventListener("change", () => {
    const chosen = byId("fusion").value;
    const fusion = chosen === usualFusion(page.asked.method) ? null : chosen;
    page.ask({ ...page.asked, fusion }, { history: "replace", flow: false });
  });
  byId("method").addEventListener("change", () => {
    page.ask({ ...page.asked, method: byId("method").value }, { history: "replace", flow: false });
  });
  byId("judge").addEventListener("change", async () => {
    const judge = byId("judge").value;
    const asked = {
      ...page.asked,
      judge,
      colouring: judge ? page.asked.colouring : /** @type {const} */ ("rank"),
    };
    page.asked = asked;
    await page.judge(asked);
    redress(page);
  });
  byId("colouring").addEventListener("change", () => {
    page.asked = { ...page.asked, colouring: byId("colouring").value };
    redress(page);
  });
}

/** @param {Page} page */
function makeButtons(page) {
  byId("ask-again").addEventListener("click", () => page.view.askAgain());
  byId("clear-marks").addEventListener("click", () => page.view.clearMarks());
  byId("skip").addEventListener("click", (/** @type {Event} */ event) => {
    event.preventDefault(); // the address names what is shown
    (byId("results").querySelector(".pick[tabindex='0']") ?? byId("results")).focus();
  });
  document.addEventListener("pointerdown", (event) => {
    const target = /** @type {Element} */ (event.target);
    if (event.pointerType === "touch" && !target.closest(".result, .why")) page.looking.leave();
  });
  byId("why").addEventListener("pointerenter", () => page.looking.stay());
  byId("why").addEventListener("click", () => page.looking.stay()); // the focus has just left the result
  byId("why").addEventListener("pointerleave", () => page.looking.look(null));
  byId("fit").addEventListener("click", () => page.maps.view.fit());
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
function redress(page) {
  if (!page.info) return;
  setControls(page.asked, page.info);
  page.keepLink("replace");
  page.view.paint(false);
  page.view.showLists();
}

/** @param {Page} page */
function makeKeys(page) {
  document.addEventListener("keydown", (event) => {
    const target = /** @type {HTMLElement} */ (event.target);
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (event.key === "Escape") {
      if (target instanceof HTMLElement) target.blur();
      page.looking.leave();
      return;
    }
    if (target.matches?.("input:not([type=range], [type=checkbox]), textarea, select")) return;
    /** @type {Record<string, () => void>} */
    const keys = {
      "?": () => byId("help-dialog").showModal(),
      "/": () => byId("ask-id").focus(),
      v: () => openVector(page.info),
      a: () => page.view.askAgain(),
      u: () => page.undo(),
    };
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  });
}
