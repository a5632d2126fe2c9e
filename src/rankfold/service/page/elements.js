/** Elements of the page, and how ids, numbers and texts are written in them. */

/** @typedef {import("./api.js").Id} Id */

/** @param {string} id @returns {any} */
export function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`The page has no element ${id}.`);
  return found;
}

/**
 * @param {string} tag
 * @param {Record<string, unknown>} [attributes] true sets an empty one; false, null and undefined none
 * @param {...(Node|string|null)} children
 * @returns {any}
 */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value == null) continue;
    if (name === "onclick") element.addEventListener("click", /** @type {any} */ (value));
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

/** Say something to those who listen to the page. @param {string} words */
export function announce(words) {
  byId("live").textContent = words;
}

/** How the page is, for all to see. @param {"loading"|"ready"|"error"} now */
export function setState(now) {
  document.documentElement.dataset.state = now;
}

/** What a point is called: a text that looks like a number has quotes. @param {Id} id */
export function formatId(id) {
  return typeof id === "string" && /^-?\d+$|^"/.test(id) ? JSON.stringify(id) : String(id);
}

/** @param {number} share 0 to 1 */
export function formatPercent(share) {
  const value = 100 * share;
  if (value > 0 && value < 0.01) return "under 0.01 %";
  return `${value >= 99.95 || value === 0 ? value.toFixed(0) : value.toPrecision(value < 10 ? 2 : 3)} %`;
}

/** @param {number} value */
export function formatNumber(value) {
  if (!Number.isFinite(value)) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e5 || size < 1e-3) return value.toExponential(1).replace("e+", "e").replaceAll("-", "−");
  return String(Number(value.toPrecision(3)));
}

/** @param {number} count @param {string} one @param {string} [many] */
export function formatCount(count, one, many = `${one}s`) {
  return `${count.toLocaleString("en-GB")} ${count === 1 ? one : many}`;
}

/** A name as a heading: "two-moons" is "Two moons". @param {string} name @param {boolean} example */
export function displayName(name, example) {
  if (!example) return name;
  const words = name.replaceAll("-", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** A text on one line, no longer than some characters. @param {string} text @param {number} length */
export function truncate(text, length) {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length > length ? `${line.slice(0, length - 1)}…` : line;
}
