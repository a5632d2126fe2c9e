/** The search box: an id, words that a point holds, or a text to ask with. */

import * as api from "./api.js";
import { byId, formatId, make, truncate } from "./elements.js";
import { parseId } from "./query.js";

/** @typedef {import("./api.js").Id} Id */
/** @typedef {import("./api.js").Info} Info */
/** @typedef {import("./main.js").Page} Page */
/** @typedef {{id: Id, text: string|null, image: string|null}} Suggestion */

const MAX_IDS = 5;
const MAX_FOUND = 6;
const MAX_TEXT = 90;
/** Milliseconds after the last key before the server is asked. */
const PAUSE = 120;

/**
 * Ids that begin with what was typed, in the order of the map.
 * @param {Id[]} ids
 * @param {string} typed
 * @param {number} most
 */
export function completions(ids, typed, most) {
  const begin = typed.toLowerCase(),
    found = [];
  for (const id of ids) {
    if (!String(id).toLowerCase().startsWith(begin)) continue;
    found.push(id);
    if (found.length === most) break;
  }
  return found;
}

/** What is looked for while somebody types: the last word may have just begun. @param {string} typed */
export function typedWords(typed) {
  return /[\p{L}\p{N}]$/u.test(typed) ? `${typed}*` : typed;
}

/** Where the texts of suggestions come from. @param {Info} info @param {string|null} shown */
function textColumn(info, shown) {
  return info.embedder?.column ?? shown ?? info.text_columns?.[0];
}

/**
 * What a request brings, or something else where the server refuses it or nobody waits for it: what is typed need
 * not be words yet, and the box works without.
 * @param {Promise<any>} request
 * @param {any} instead
 */
async function tolerated(request, instead) {
  try {
    return await request;
  } catch (error) {
    const known = error instanceof api.ApiError || (error instanceof DOMException && error.name === "AbortError");
    if (!known) throw error;
    return instead;
  }
}

export class SearchBox {
  /** @param {Page} page */
  constructor(page) {
    this.page = page;
    this.input = byId("ask-id");
    this.list = byId("suggestions");
    /** @type {Suggestion[]} */
    this.shown = [];
    this.active = -1;
    this.timer = 0;
    /** @type {AbortController|null} */
    this.running = null;
    this.input.addEventListener("input", () => this.type());
    this.input.addEventListener("blur", () => this.close());
    this.input.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => this.key(event));
    byId("ask-form").addEventListener("submit", (/** @type {Event} */ event) => {
      event.preventDefault();
      this.submit();
    });
  }

  /** Say what can be typed here. @param {Info} info */
  setIndex(info) {
    this.close();
    this.input.placeholder = info.embedder ? "Words or point id" : info.text_columns?.length ? "Point id, or words to find" : "Point id";
  }

  type() {
    clearTimeout(this.timer);
    this.running?.abort();
    const typed = this.input.value.trim();
    if (!typed) return this.close();
    this.timer = window.setTimeout(() => this.suggest(typed), PAUSE);
  }

  /** @param {string} typed */
  async suggest(typed) {
    const running = (this.running = new AbortController());
    const suggestions = await this.find(typed, running.signal);
    if (!running.signal.aborted && document.activeElement === this.input) this.show(suggestions);
  }

  /**
   * Points whose ids begin with what was typed, then those that hold its words.
   * @param {string} typed
   * @param {AbortSignal} signal
   * @returns {Promise<Suggestion[]>}
   */
  async find(typed, signal) {
    const { info, maps, answer } = this.page;
    if (!info) return [];
    const column = textColumn(info, answer.textColumn);
    const ids = completions(maps.layout?.ids ?? [], typed, MAX_IDS);
    const words = column !== undefined && /[\p{L}\p{N}]/u.test(typed);
    const [found] = await Promise.all([
      words ? tolerated(api.find(info.name, typedWords(typed), [column], MAX_FOUND, signal), []) : [],
      tolerated(answer.fetchPoints(ids, signal), null),
    ]);
    const texts = new Map(found.map((one) => [one.id, one.payload[column]]));
    return [...new Set([...ids, ...texts.keys()])].map((id) => {
      const text = texts.get(id) ?? answer.payload(id)[column];
      return { id, text: typeof text === "string" ? text : null, image: answer.image(id) };
    });
  }

  /** @param {Suggestion[]} suggestions */
  show(suggestions) {
    this.shown = suggestions;
    this.list.replaceChildren(
      ...suggestions.map((one, index) => {
        const option = make(
          "li",
          { id: `suggestion-${index}`, role: "option", "aria-selected": "false", "data-testid": "suggestion" },
          one.image === null ? null : make("img", { src: one.image, alt: "" }),
          make("b", {}, formatId(one.id)),
          one.text === null ? null : make("span", {}, truncate(one.text, MAX_TEXT)),
        );
        option.addEventListener("pointerdown", (/** @type {Event} */ event) => event.preventDefault()); // keeps the focus
        option.addEventListener("click", () => this.choose(one.id));
        return option;
      }),
    );
    this.list.hidden = !suggestions.length;
    this.input.setAttribute("aria-expanded", String(!this.list.hidden));
    this.activate(-1);
  }

  /** @param {number} index */
  activate(index) {
    this.active = index;
    [...this.list.children].forEach((option, at) => option.setAttribute("aria-selected", String(at === index)));
    if (index < 0) this.input.removeAttribute("aria-activedescendant");
    else {
      this.input.setAttribute("aria-activedescendant", `suggestion-${index}`);
      this.list.children[index].scrollIntoView({ block: "nearest" });
    }
  }

  close() {
    clearTimeout(this.timer);
    this.running?.abort();
    this.show([]);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0,
      n = this.shown.length;
    if (step && n) {
      event.preventDefault();
      this.activate((Math.max(this.active, step < 0 ? 0 : -1) + step + n) % n);
    } else if (event.key === "Escape" && n) {
      event.stopPropagation(); // the first Escape closes the list, the next leaves the box
      this.close();
    }
  }

  /** @param {Id} id */
  choose(id) {
    this.close();
    this.input.value = formatId(id);
    this.page.askWithPoint(id, false);
    this.input.select();
  }

  /** Ask with what is chosen; else with the id that was typed; else with the text, or what holds its words. */
  async submit() {
    const chosen = this.shown[this.active],
      text = this.input.value.trim(),
      { info, maps, answer } = this.page;
    if (chosen) return this.choose(chosen.id);
    if (!text || !info) return;
    // A number may also be the text of an id: take what the map has.
    const id = parseId(text),
      known = maps.layout?.rows;
    const found = known?.has(id) ? id : known?.has(text) ? text : null;
    this.close();
    if (found === null && info.embedder) this.page.askWithText(text);
    else if (found === null && info.text_columns?.length && answer.lacks([id])) {
      const running = (this.running = new AbortController());
      const [first] = await this.find(text, running.signal);
      if (running.signal.aborted) return;
      this.page.askWithPoint(first?.id ?? id, false);
    } else this.page.askWithPoint(found ?? id, false);
    this.input.select();
  }
}
