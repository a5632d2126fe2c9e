/** Dialogs, notices, and errors of the server shown where they belong. */

import { ApiError, hasKey, isValidKey, storeKey } from "./api.js";
import { announce, byId, make } from "./elements.js";
import { checkVectors, parseText, readVectors } from "./vectors.js";

/** @typedef {import("./api.js").Info} Info */

/** Elements that say what is wrong with a field of a query. @type {[RegExp, string][]} */
const FIELD_ERRORS = [
  [/\bwhere\b/, "where-error"],
  [/\bparameters\b/, "tuning-error"],
  [/\b(method|diversity)\b/, "method-error"],
  [/\b(ids|vectors|text|negative|negative_vectors|weights)\b/, "query-error"],
];

let countdown = 0;
/** @type {() => void} */
let noticeAction = () => {};

export function hideNotice() {
  clearInterval(countdown);
  byId("notice").hidden = true;
}

/**
 * @param {string} words
 * @param {{label: string, act: () => void}|null} [action]
 * @param {string} [kind]
 */
export function showNotice(words, action = null, kind = "error") {
  clearInterval(countdown);
  byId("notice").hidden = false;
  byId("notice").dataset.kind = kind;
  byId("notice-text").textContent = words;
  byId("notice-action").hidden = !action;
  byId("notice-action").textContent = action?.label ?? "";
  noticeAction = action?.act ?? (() => {});
}

/**
 * Count down, then act.
 * @param {number} seconds
 * @param {() => void} then
 * @param {string} reason
 */
function showCountdown(seconds, then, reason) {
  let left = Math.ceil(seconds);
  const words = () => `${reason} Asking again in ${left} s.`;
  showNotice(
    words(),
    {
      label: "Ask now",
      act: () => {
        hideNotice();
        then();
      },
    },
    "busy",
  );
  countdown = window.setInterval(() => {
    left -= 1;
    byId("notice-text").textContent = words();
    if (left <= 0) noticeAction();
  }, 1000);
}

export function clearFieldErrors() {
  for (const [, id] of FIELD_ERRORS) byId(id).textContent = "";
  for (const id of ["where", "ask-id"]) byId(id).removeAttribute("aria-invalid");
}

/**
 * Show the errors of a problem at their fields.
 * @param {import("./api.js").ApiError} error
 * @returns {boolean} whether there was a field for it
 */
function showFieldErrors(error) {
  let found = false;
  for (const { field, message } of error.errors) {
    const at = FIELD_ERRORS.find(([pattern]) => pattern.test(field));
    if (!at) continue;
    found = true;
    byId(at[1]).textContent = message;
    if (at[1] === "where-error") byId("where").setAttribute("aria-invalid", "true");
    if (at[1] === "query-error") byId("ask-id").setAttribute("aria-invalid", "true");
    if (at[1] === "where-error" || at[1] === "method-error") byId("more").open = true;
  }
  return found;
}

export function bindNotice() {
  byId("notice-action").addEventListener("click", () => noticeAction());
  byId("notice-close").addEventListener("click", hideNotice);
}

/** @type {[string[], string][]} */
const SHORTCUTS = [
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
  const rows = SHORTCUTS.flatMap(([keys, does]) => [
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
export function bindDialogs({ onKey, onVectors, info }) {
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
    if (!isValidKey(key)) {
      byId("key-error").textContent =
        "This key has a character that no key can have, such as a curly quote. Type or paste it again.";
      byId("key").select();
      return;
    }
    storeKey(key);
    byId("key-dialog").close();
    onKey();
  });
  byId("open-vector").addEventListener("click", () => openVectorDialog(info()));
  byId("vector-form").addEventListener("submit", async (/** @type {Event} */ event) => {
    event.preventDefault();
    const about = info();
    if (!about) return;
    try {
      const [file] = byId("vector-file").files;
      const vectors = file
        ? await readVectors(file, about)
        : checkVectors(parseText(byId("vector-text").value, about.features), about.features);
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
function openKeyDialog() {
  byId("key-error").textContent = hasKey() ? "The server does not accept this key." : "";
  if (!byId("key-dialog").open) byId("key-dialog").showModal();
}

/** @param {Info|null} info */
export function openVectorDialog(info) {
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

/** Seconds after which the server gave up, where it was not just busy: asking again would not help. */
const SERVER_TIMEOUT = 5;

/** Say what went wrong, in one sentence. @param {unknown} error */
export function describeError(error) {
  if (!(error instanceof ApiError)) throw error;
  if (error.status === 401) openKeyDialog();
  return error.errors[0]?.message ?? error.message;
}

/**
 * Say it where it belongs, and offer to try again.
 * @param {unknown} error
 * @param {() => void} retry
 */
export function showError(error, retry) {
  if (!(error instanceof ApiError)) {
    showNotice("Something went wrong on this page.", {
      label: "Load it again",
      act: () => location.reload(),
    });
    throw error;
  }
  clearFieldErrors();
  if (error.status === 401) {
    openKeyDialog();
    showNotice("This server asks for an API key.", { label: "Enter key", act: openKeyDialog });
  } else if (error.status === 503 && error.duration < SERVER_TIMEOUT) {
    const away = error.message.includes("database");
    const reason = away ? "The database of this index does not answer." : "The server is busy.";
    showCountdown(error.retryAfter ?? 2, retry, reason);
  } else if (error.status === 0)
    showNotice(`${error.message} What you see stays.`, { label: "Try again", act: retry });
  else if (showFieldErrors(error)) announce(error.errors[0].message);
  else if (error.status === 404 || error.status === 413 || error.status === 422)
    byId("query-error").textContent = error.message;
  else showNotice(error.message, { label: "Try again", act: retry });
}
