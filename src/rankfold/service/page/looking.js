/** Looking at one point: its card, its path on the map, its straight line. */

import * as api from "./api.js";
import { Turns, shapeQuery } from "./asking.js";
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
 * @property {Place[]} vectorPlaces
 */

/** In indexes up to this size every point is explained. */
const EXPLAINED_WHOLE = 5000;

const PATIENCE = 110,
  LEAVING = 140;

export class Looking {
  /**
   * @param {import("./maps.js").Maps} maps
   * @param {(ids: Id[], signal: AbortSignal) => Promise<void>} fetchPoints
   * @param {(id: Id) => string|null} picture
   * @param {(id: Id) => string|null} text
   * @param {(id: Id) => Record<string, unknown>} payload
   * @param {() => boolean} busy whether another answer is on its way
   * @param {(error: unknown) => string} onError says what is wrong
   */
  constructor(maps, fetchPoints, picture, text, payload, busy, onError) {
    this.maps = maps;
    this.fetchPoints = fetchPoints;
    this.picture = picture;
    this.text = text;
    this.payload = payload;
    this.busy = busy;
    this.onError = onError;
    /** @type {Context|null} */
    this.context = null;
    /** @type {Id|null} */
    this.id = null;
    this.leaving = 0;
    this.waiting = 0;
    this.putOff = false;
    this.turns = new Turns(8000);
    /** @type {Map<Id, import("./card.js").Reason>} */
    this.reasons = new Map();
  }

  /** Another answer is shown. @param {Context|null} context */
  follow(context) {
    this.context = context;
    this.reasons.clear();
    const id = this.id;
    this.id = null;
    if (id !== null && context) this.begin(id);
    else this.leave();
  }

  /** @param {Id|null} id null: nothing, after a while */
  look(id) {
    clearTimeout(this.leaving);
    if (id === null) {
      this.leaving = window.setTimeout(() => this.leave(), LEAVING);
    } else this.begin(id);
  }

  /** @param {Id} id */
  begin(id) {
    if (id === this.id || !this.context) return;
    clearTimeout(this.waiting);
    this.putOff = false;
    this.id = id;
    showLooked(id);
    this.draw(null);
    const role = roleOf(id, this.context.asked);
    if (role) {
      showOwn(id, role);
      return;
    }
    const known = this.reasons.get(id) ?? null;
    const far = this.isFar(id);
    this.show(known, far);
    if (!known && !far) this.waiting = window.setTimeout(() => this.explain(id), PATIENCE);
  }

  /**
   * Far points of a large index are not asked about: their path takes long to find.
   * @param {Id} id
   * @returns {string|null} what to say instead
   */
  isFar(id) {
    const { context } = this;
    if (!context || context.info.points <= EXPLAINED_WHOLE || context.shape.ranks.has(id)) return null;
    return `It is beyond the first ${context.depth.toLocaleString("en-GB")} by shape. Only those are explained here.`;
  }

  /** Do not leave: the pointer is on the card. */
  stay() {
    if (this.id !== null && this.reasons.has(this.id)) clearTimeout(this.leaving);
  }

  leave() {
    clearTimeout(this.leaving);
    clearTimeout(this.waiting);
    this.id = null;
    showLooked(null);
    this.draw(null);
    showHint(this.context !== null);
  }

  /** Ask why, one point at a time: what the server has begun, it ends. @param {Id} id */
  explain(id) {
    const { context } = this;
    this.putOff = this.busy();
    if (!context || this.putOff) return; // the answer that comes is explained
    this.turns.take(async (signal, cut) => {
      try {
        const reason = await api.explain(context.info.name, shapeQuery(context.asked), id, cut);
        if (signal.aborted) return;
        const ids = reason.path ? reason.path.steps.map((/** @type {{end: Id}} */ step) => step.end) : [id];
        await this.fetchPoints(ids, cut);
        if (signal.aborted || this.context !== context) return;
        this.reasons.set(id, reason);
        if (this.id !== id) return;
        this.show(reason, null);
        if (document.activeElement?.closest(".result")) announce(pathWords(reason));
      } catch (error) {
        if (!signal.aborted && this.id === id) this.show(null, this.onError(error));
      }
    }, true);
  }

  /** The answer on its way has come, or never will: ask why, if that had to wait. */
  resume() {
    if (!this.putOff || this.id === null) return;
    const { id } = this;
    clearTimeout(this.waiting);
    this.waiting = window.setTimeout(() => this.explain(id), PATIENCE);
  }

  /** @param {import("./card.js").Reason|null} reason @param {string|null} failed */
  show(reason, failed) {
    const { context, id } = this;
    if (!context || id === null) return;
    showCard({
      id,
      reason,
      failed,
      picture: this.picture,
      text: this.text(id),
      payload: this.payload(id),
      plain: context.plain.ranks.get(id),
      shape: context.shape.ranks.get(id),
      parts: context.shape.parts.get(id),
      reached: context.asked.method === "euclidean" || context.shape.scores.get(id) !== 0,
      depth: context.depth,
      filtered: context.asked.where.trim() !== "",
      complete: context.plain.ids.length < context.depth,
    });
    this.draw(reason);
  }

  /** @param {import("./card.js").Reason|null} reason */
  draw(reason) {
    const { maps, context, id } = this;
    const looked = id === null ? null : this.place(id);
    const role = id !== null && context && roleOf(id, context.asked);
    const straight = [],
      path = [];
    if (looked && context && !role) {
      for (const from of this.origins()) straight.push({ from, to: looked });
      const steps = reason?.path?.steps ?? [];
      const most = Math.max(...steps.map((step) => step.weight), 1e-12);
      for (const step of steps) {
        const from = step.start === null ? this.vectorPlace(reason?.path?.example) : this.place(step.start);
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

  /** Where the vector is that a path begins at. @param {number} [example] its place among all examples */
  vectorPlace(example = 0) {
    if (!this.context) return null;
    const { asked, vectorPlaces } = this.context;
    return vectorPlaces[example - asked.ids.length - asked.negative.length] ?? vectorPlaces[0] ?? null;
  }

  /** Places of the examples. @returns {Place[]} */
  origins() {
    if (!this.context) return [];
    const { asked, vectorPlaces } = this.context;
    const places = asked.ids.map((id) => this.place(id)).filter((place) => place !== null);
    return [...places, ...vectorPlaces];
  }
}

/** @param {Id} id @param {import("./link.js").Asked} asked */
function roleOf(id, asked) {
  if (asked.ids.includes(id)) return "is an example of the query.";
  if (asked.negative.includes(id)) return "is an example of what is not looked for.";
  return null;
}
