/** JSON whose whole numbers stay exact: those that a number cannot hold are read as BigInt. */

const LONG = /(^|[^\d.])\d{16}/;
const WHOLE = /^-?\d+$/;

/** Newer than the types of the language that checkers know. */
const { rawJSON } = /** @type {{rawJSON?: (text: string) => unknown}} */ (/** @type {unknown} */ (JSON));

/** A whole number that this browser would round. */
export class RoundedError extends Error {}

/** @param {string} text @returns {any} */
export function readJson(text) {
  if (!LONG.test(text)) return JSON.parse(text);
  const exact = (/** @type {string} */ _, /** @type {unknown} */ value, /** @type {{source?: string}} */ token) => {
    if (typeof value !== "number" || !Number.isInteger(value) || Number.isSafeInteger(value)) return value;
    if (token?.source === undefined || !rawJSON) throw new RoundedError();
    return WHOLE.test(token.source) ? BigInt(token.source) : value;
  };
  return JSON.parse(text, /** @type {any} */ (exact));
}

/** @param {unknown} value @returns {string} */
export function writeJson(value) {
  return JSON.stringify(value, (_, one) => (typeof one === "bigint" ? rawJSON?.(String(one)) : one));
}
