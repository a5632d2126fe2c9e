/** What went wrong, said where it belongs. */

import { byId } from "./elements.js";

/** Places that say what is wrong with a field of a query. @type {[RegExp, string][]} */
const AT_FIELD = [
  [/\bwhere\b/, "where-error"],
  [/\bparameters\b/, "tuning-error"],
  [/\b(method|diversity)\b/, "method-error"],
  [/\b(ids|vectors|negative|negative_vectors|weights)\b/, "query-error"],
];

let timer = 0;
/** @type {() => void} */
let act = () => {};

export function hideNotice() {
  clearInterval(timer);
  byId("notice").hidden = true;
}

/**
 * @param {string} words
 * @param {{label: string, act: () => void}|null} [action]
 * @param {string} [kind]
 */
export function showNotice(words, action = null, kind = "error") {
  clearInterval(timer);
  byId("notice").hidden = false;
  byId("notice").dataset.kind = kind;
  byId("notice-text").textContent = words;
  byId("notice-action").hidden = !action;
  byId("notice-action").textContent = action?.label ?? "";
  act = action?.act ?? (() => {});
}

/**
 * Count down, then act.
 * @param {number} seconds
 * @param {() => void} then
 * @param {string} reason
 */
export function showBusy(seconds, then, reason) {
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
  timer = window.setInterval(() => {
    left -= 1;
    byId("notice-text").textContent = words();
    if (left <= 0) act();
  }, 1000);
}

export function clearFieldErrors() {
  for (const [, id] of AT_FIELD) byId(id).textContent = "";
  for (const id of ["where", "ask-id"]) byId(id).removeAttribute("aria-invalid");
}

/**
 * Show the errors of a problem at their fields.
 * @param {import("./api.js").ApiError} error
 * @returns {boolean} whether there was a field for it
 */
export function showFieldErrors(error) {
  let found = false;
  for (const { field, message } of error.errors) {
    const at = AT_FIELD.find(([pattern]) => pattern.test(field));
    if (!at) continue;
    found = true;
    byId(at[1]).textContent = message;
    if (at[1] === "where-error") byId("where").setAttribute("aria-invalid", "true");
    if (at[1] === "query-error") byId("ask-id").setAttribute("aria-invalid", "true");
    if (at[1] === "where-error" || at[1] === "method-error") byId("more").open = true;
  }
  return found;
}

export function noticeButtons() {
  byId("notice-action").addEventListener("click", () => act());
  byId("notice-close").addEventListener("click", hideNotice);
}
