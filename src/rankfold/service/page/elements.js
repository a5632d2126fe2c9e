/** Elements of the page: found by id, made with attributes. */

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
