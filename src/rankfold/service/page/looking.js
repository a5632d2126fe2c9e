/** Looking at one point: its card, its path on the map, its straight line. */

import * as api from "./api.js";
import { shapeQuery } from "./asking.js";
import { pathWords, showCard, showHint, showOwn } from "./card.js";
import { announce } from "./elements.js";
import { showLooked } from "./lists.js";

/** @typedef {import("./moves.js").Id} Id */
/** @typedef {import("./overlay.js").Place} Place */
/**
 * @typedef {object} Context what is shown now
 * @property {import("./api.js").Info} info
 * @property {import("./link.js").Asked} asked
 * @property {import("./moves.js").Ranked} plain
 * @property {import("./moves.js").Ranked} shape
 * @property {number} depth
 * @property {Place|null} vectorPlace
 */

const PATIENCE = 110, LEAVING = 140;

export class Looking {
  /**
   * @param {import("./maps.js").Maps} maps
   * @param {(ids: Id[], signal: AbortSignal) => Promise<void>} fetchPoints
   * @param {(id: Id) => string|null} picture
   * @param {(error: unknown) => string} onError says what is wrong
   */
  constructor(maps, fetchPoints, picture, onError) {
    this.maps = maps;
    this.fetchPoints = fetchPoints;
    this.picture = picture;
    this.onError = onError;
    /** @type {Context|null} */
    this.context = null;
    /** @type {Id|null} */
    this.id = null;
    this.leaving = 0;
    this.waiting = 0;
    /** @type {AbortController|null} */
    this.asking = null;
    /** @type {Map<Id, import("./card.js").Reason>} */
    this.reasons = new Map();
  }

  /** Another answer is shown. @param {Context|null} context */
  follow(context) {
    this.context = context;
    this.reasons.clear();
    this.asking?.abort();
    const id = this.id;
    this.id = null;
    if (id !== null && context) this.look(id);
    else this.leave();
  }

  /** @param {Id|null} id null: nothing, after a while */
  look(id) {
    clearTimeout(this.leaving);
    if (id === null) {
      this.leaving = window.setTimeout(() => this.leave(), LEAVING);
      return;
    }
    if (id === this.id || !this.context) return;
    clearTimeout(this.waiting);
    this.asking?.abort();
    this.id = id;
    showLooked(id);
    this.draw(null);
    const role = roleOf(id, this.context.asked);
    if (role) {
      showOwn(id, role);
      return;
    }
    const known = this.reasons.get(id) ?? null;
    this.show(known, null);
    if (!known) this.waiting = window.setTimeout(() => this.explain(id), PATIENCE);
  }

  /** Do not leave: the pointer is on the card. */
  stay() {
    if (this.id !== null && this.reasons.has(this.id)) clearTimeout(this.leaving);
  }

  leave() {
    clearTimeout(this.leaving);
    clearTimeout(this.waiting);
    this.asking?.abort();
    this.id = null;
    showLooked(null);
    this.draw(null);
    showHint(this.context !== null);
  }

  /** @param {Id} id */
  async explain(id) {
    const { context } = this;
    if (!context) return;
    const mine = (this.asking = new AbortController());
    try {
      const reason = await api.explain(context.info.name, shapeQuery(context.asked), id, mine.signal);
      const ids = reason.path ? reason.path.steps.map((/** @type {{end: Id}} */ step) => step.end) : [id];
      await this.fetchPoints(ids, mine.signal);
      if (mine.signal.aborted || this.id !== id || this.context !== context) return;
      this.reasons.set(id, reason);
      this.show(reason, null);
      if (document.activeElement?.closest(".result")) announce(pathWords(reason));
    } catch (error) {
      if (mine.signal.aborted) return;
      this.show(null, this.onError(error));
    }
  }

  /** @param {import("./card.js").Reason|null} reason @param {string|null} failed */
  show(reason, failed) {
    const { context, id } = this;
    if (!context || id === null) return;
    showCard({
      id, reason, failed, picture: this.picture, plain: context.plain.ranks.get(id), shape: context.shape.ranks.get(id),
      depth: context.depth, filtered: context.asked.where.trim() !== "",
    });
    this.draw(reason);
  }

  /** @param {import("./card.js").Reason|null} reason */
  draw(reason) {
    const { maps, context, id } = this;
    const looked = id === null ? null : this.place(id);
    const role = id !== null && context && roleOf(id, context.asked);
    const straight = [], path = [];
    if (looked && context && !role) {
      for (const from of this.origins()) straight.push({ from, to: looked });
      const steps = reason?.path?.steps ?? [];
      const most = Math.max(...steps.map((step) => step.weight), 1e-12);
      for (const step of steps) {
        const from = step.start === null ? context.vectorPlace : this.place(step.start);
        const to = this.place(step.end);
        if (from && to) path.push({ from, to, weight: step.weight / most });
      }
    }
    maps.setScene("plain", { looked, straight, path: [] });
    maps.setScene("shape", { looked, straight: [], path });
  }

  /** @param {Id} id @returns {Place|null} */
  place(id) {
    const row = this.maps.places?.rows.get(id);
    if (row === undefined || !this.maps.places) return null;
    return [this.maps.places.xy[2 * row], this.maps.places.xy[2 * row + 1]];
  }

  /** Places of the examples. @returns {Place[]} */
  origins() {
    if (!this.context) return [];
    const { asked, vectorPlace } = this.context;
    const places = asked.ids.map((id) => this.place(id)).filter((place) => place !== null);
    return vectorPlace && asked.vectors.length ? [...places, vectorPlace] : places;
  }
}

/** @param {Id} id @param {import("./link.js").Asked} asked */
function roleOf(id, asked) {
  if (asked.ids.includes(id)) return "is an example of the query.";
  if (asked.negative.includes(id)) return "is an example of what is not looked for.";
  return null;
}
