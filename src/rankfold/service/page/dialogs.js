/** Help, the API key, and the vector to ask with. */

import { hasKey, isKey, keepKey } from "./api.js";
import { byId, make } from "./elements.js";
import { checkVectors, parseText } from "./vectors.js";
import { vectorsOf } from "./dropping.js";

/** @typedef {import("./api.js").Info} Info */

/** @type {[string[], string][]} */
const KEYS = [
  [["click"], "ask with a point, or with a result"],
  [["Shift", "click"], "add it as another example"],
  [["↑", "↓", "←", "→"], "go through results; move a map"],
  [["Enter"], "ask with the result"],
  [["r"], "mark the result as right"],
  [["w"], "mark the result as wrong"],
  [["a"], "ask again with the marks"],
  [["u"], "undo: back to the query before"],
  [["+", "−", "0"], "zoom in, zoom out, show everything"],
  [["/"], "type the id of a point"],
  [["v"], "ask with a vector"],
  [["Esc"], "close, or leave a result"],
  [["?"], "this help"],
];

function fillHelp() {
  const rows = KEYS.flatMap(([keys, does]) => [
    make("dt", {}, ...keys.map((key) => make("kbd", {}, key))),
    make("dd", {}, does),
  ]);
  byId("help-dialog").append(
    make("h2", { id: "help-title", tabindex: -1, autofocus: true }, "What you see"),
    make(
      "p",
      {},
      "The same points twice. Left, they are ranked by plain distance to the query. Right, by RAN, Ranking with Adaptive Neighbors: scores flow from neighbour to neighbour, so that what is connected to the query comes first, even where something else is nearer.",
    ),
    make(
      "p",
      {},
      "Sliders change the graph, and the answer follows. Distance says how nearness counts beside shape: on auto, near points stay ahead, and shape decides further out. Mark results as right or wrong and ask again. Drop a file with a vector anywhere to ask with something new.",
    ),
    make("dl", {}, ...rows),
    make(
      "div",
      { class: "buttons" },
      make("button", { type: "button", class: "main", "data-close": true }, "Close"),
    ),
  );
}

/** @param {{onKey: () => void, onVectors: (vectors: number[][]) => void, info: () => Info|null}} given */
export function makeDialogs({ onKey, onVectors, info }) {
  fillHelp();
  for (const dialog of document.querySelectorAll("dialog")) {
    for (const button of dialog.querySelectorAll("[data-close]"))
      button.addEventListener("click", () => dialog.close());
    dialog.addEventListener("click", (event) => {
      if (event.target === dialog) dialog.close();
    });
  }
  byId("help").addEventListener("click", () => byId("help-dialog").showModal());
  byId("key-form").addEventListener("submit", (/** @type {Event} */ event) => {
    event.preventDefault();
    const key = byId("key").value.trim();
    if (!isKey(key)) {
      byId("key-error").textContent =
        "This key has a character that no key can have, such as a curly quote. Type or paste it again.";
      byId("key").select();
      return;
    }
    keepKey(key);
    byId("key-dialog").close();
    onKey();
  });
  byId("open-vector").addEventListener("click", () => openVector(info()));
  byId("vector-form").addEventListener("submit", async (/** @type {Event} */ event) => {
    event.preventDefault();
    const about = info();
    if (!about) return;
    try {
      const [file] = byId("vector-file").files;
      const vectors = file
        ? await vectorsOf(file, about)
        : checkVectors(parseText(byId("vector-text").value, about.features), about.features, 20);
      byId("vector-dialog").close();
      byId("vector-file").value = "";
      onVectors(vectors);
    } catch (error) {
      byId("vector-error").textContent = error instanceof Error ? error.message : String(error);
    }
  });
  byId("vector-text").addEventListener("input", () => {
    byId("vector-error").textContent = "";
  });
  byId("vector-file").addEventListener("change", () => {
    byId("vector-error").textContent = "";
  });
}

/** Ask for the key; say so where the one that was given is not accepted. */
export function openKey() {
  byId("key-error").textContent = hasKey() ? "The server does not accept this key." : "";
  if (!byId("key-dialog").open) byId("key-dialog").showModal();
}

/** @param {Info|null} info */
export function openVector(info) {
  if (!info) return;
  const numbers = info.features === 1 ? "1 number" : `${info.features} numbers`;
  const picture = info.image ? ", or a picture" : "";
  byId("vector-hint").textContent =
    `Points here have ${numbers}. Paste them with commas or spaces between, as JSON, or choose an .npy, .json, .csv or .txt file${picture}.`;
  byId("vector-text").placeholder = info.features === 2 ? "0.5, 0.25" : "0.1, 0.2, …";
  byId("vector-file").accept = `.npy,.json,.csv,.txt${info.image ? ",image/*" : ""}`;
  byId("vector-error").textContent = "";
  byId("vector-dialog").showModal();
  byId("vector-text").focus();
}
