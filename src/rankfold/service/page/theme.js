/** Light, dark, or as the system is. Runs before the first drawing. */

/** @typedef {"system"|"light"|"dark"} Choice */

const KEY = "rankfold-theme";
const NEXT = /** @type {const} */ ({ system: "light", light: "dark", dark: "system" });
const SIGN = { system: "◐", light: "☀", dark: "☾" };
const dark = matchMedia("(prefers-color-scheme: dark)");

/** @type {Set<() => void>} */
const followers = new Set();

/** @returns {Choice} */
export function choice() {
  const kept = localStorage.getItem(KEY);
  return kept === "light" || kept === "dark" ? kept : "system";
}

/** @returns {"light"|"dark"} */
export function theme() {
  const chosen = choice();
  return chosen === "system" ? (dark.matches ? "dark" : "light") : chosen;
}

function apply() {
  document.documentElement.dataset.theme = theme();
  for (const follow of followers) follow();
}

/** @param {() => void} follow called after every change */
export function onTheme(follow) {
  followers.add(follow);
}

/** A button that goes from one choice to the next. @param {HTMLElement} button */
export function themeSwitch(button) {
  const show = () => {
    const words = `Theme: ${choice()}. Change to ${NEXT[choice()]}.`;
    button.textContent = `${SIGN[choice()]}\ufe0e`;
    button.setAttribute("aria-label", words);
    button.title = words;
  };
  button.addEventListener("click", () => {
    localStorage.setItem(KEY, NEXT[choice()]);
    apply();
  });
  onTheme(show);
  show();
}

dark.addEventListener("change", apply);
apply();
