/** Which columns of the payload the page judges by, and which says what a point is. Pure functions. */

/** Names of columns that tell points apart; others are likelier to name kinds. */
const TELLING = new Set(["text", "title", "name", "caption", "summary", "abstract", "description", "body", "content"]);

/**
 * The column to judge by: the one asked for, or the first that names kinds.
 * @param {import("./api.js").Info} info
 * @param {import("./link.js").Asked} asked
 * @returns {string|null}
 */
export function judgedColumn(info, asked) {
  if (asked.judge !== null) return asked.judge in info.columns ? asked.judge : null;
  const kinds = Object.keys(info.columns).filter(
    (name) => name !== "image" && info.columns[name] !== "number",
  );
  return kinds.find((name) => !TELLING.has(name.toLowerCase())) ?? kinds[0] ?? null;
}

/**
 * The column to read: of those whose texts mostly differ, so that they tell points apart, the one with the longest.
 * @param {Record<string, string>} columns names and kinds
 * @param {Record<string, unknown>[]} payloads of the points at hand
 * @returns {string|null}
 */
export function readColumn(columns, payloads) {
  let found = null,
    longest = 0;
  for (const name of Object.keys(columns).filter((one) => columns[one] === "text")) {
    const texts = payloads.map((payload) => payload[name]).filter((text) => typeof text === "string");
    const length = texts.reduce((sum, text) => sum + text.length, 0) / texts.length;
    if (length > longest && new Set(texts).size > texts.length / 2) [found, longest] = [name, length];
  }
  return found;
}

/** A text on one line, no longer than some characters. @param {string} text @param {number} longest */
export function cut(text, longest) {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length > longest ? `${line.slice(0, longest - 1)}…` : line;
}
