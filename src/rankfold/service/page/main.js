/** The page: asks, and shows the answer. */

import * as api from "./api.js";
import { Turns, batch } from "./asking.js";
import { judgedColumn } from "./columns.js";
import { setColumns, setControls } from "./controls.js";
import { byId, setState } from "./elements.js";
import { showExamples, without } from "./examples.js";
import { showFailure, wrong } from "./failing.js";
import { nothing, writeLink } from "./link.js";
import { Looking } from "./looking.js";
import { Maps } from "./maps.js";
import { clearFieldErrors, hideNotice } from "./notice.js";
import { Opening } from "./opening.js";
import { middle } from "./places.js";
import { toPlace, toVector } from "./plane.js";
import { AnswerView } from "./shown.js";
import { makeControls } from "./wiring.js";

/** @typedef {import("./link.js").Asked} Asked */
/** @typedef {import("./moves.js").Id} Id */

/** Queries that can be gone back to. */
const MOST_PAST = 100;

export class Page {
  constructor() {
    /** @type {Asked} */
    this.asked = nothing();
    /** @type {api.Info|null} */
    this.info = null;
    /** @type {import("./plane.js").Plane|null} */
    this.plane = null;
    /** @type {Asked[]} queries to go back to */
    this.past = [];
    this.turns = new Turns(2000, (busy) => {
      document.documentElement.classList.toggle("busy", busy);
      if (!busy) this.looking.resume();
    });
    this.linking = 0;
    /** @type {(() => void)|null} what to do once there is a key */
    this.again = null;
    this.maps = new Maps(
      { plain: byId("map-plain"), shape: byId("map-shape") },
      (row, place, more) => this.pick(row, place, more),
      (row) => this.looking.look(row === null ? null : /** @type {any} */ (this.maps.places).ids[row]),
      (zoomed) => {
        byId("fit").hidden = !zoomed;
      },
    );
    this.opening = new Opening(this);
    this.view = new AnswerView(this);
    this.looking = new Looking(
      this.maps,
      (ids, signal) => this.view.fetchPoints(ids, signal),
      (id) => this.view.picture(id),
      (id) => this.view.text(id),
      (id) => this.view.known.get(id)?.payload ?? {},
      () => this.turns.running !== null,
      wrong,
    );
  }

  async start() {
    makeControls(this);
    window.addEventListener("popstate", () => this.opening.followLink());
    await this.opening.connect();
  }

  /** Judge by the column that is asked for. @param {Asked} asked */
  async judge(asked) {
    const { info } = this;
    if (!info) return;
    try {
      const changed = await this.view.judge(info, asked);
      if (this.info !== info) return;
      setColumns(info, this.view.column);
      if (changed) await this.ask(this.asked, { history: "none", flow: false });
    } catch (error) {
      if (this.view.isWanted(info, judgedColumn(info, asked))) this.fail(error, () => this.judge(asked));
    }
  }

  /** @param {number|null} row @param {[number, number]} place @param {boolean} more */
  pick(row, place, more) {
    if (!this.info?.points) return;
    if (row !== null && this.maps.places) this.askWith(this.maps.places.ids[row], more);
    else if (this.plane) this.askVectors([toVector(this.plane, place)], more);
  }

  /** @param {Id} id @param {boolean} more as another example */
  askWith(id, more) {
    const { asked } = this;
    const ids = more ? [...asked.ids.filter((one) => one !== id), id] : [id];
    this.ask(
      {
        ...asked,
        ids,
        vectors: more ? asked.vectors : [],
        negative: more ? asked.negative.filter((one) => one !== id) : [],
      },
      { history: "push", flow: true },
    );
  }

  /** @param {number[][]} vectors @param {boolean} [more] */
  askVectors(vectors, more = false) {
    const { asked } = this;
    const query = more
      ? { ids: asked.ids, vectors: [...asked.vectors, ...vectors] }
      : { ids: [], vectors, negative: [] };
    this.ask({ ...asked, ...query }, { history: "push", flow: true });
  }

  undo() {
    const before = this.past.pop();
    if (before) this.ask(before, { history: "replace", flow: true });
  }

  /**
   * Ask, and show the answer.
   * @param {Asked} asked
   * @param {{history: "push"|"replace"|"none", flow: boolean, live?: boolean}} how live: sliding, where the latest wins
   */
  ask(asked, how) {
    const { info } = this;
    if (!info?.points || asked.index !== info.name) return; // another one is being opened
    const before = this.view.context?.asked;
    if (how.history === "push" && before && this.past.at(-1) !== before)
      this.past = [...this.past.slice(1 - MOST_PAST), before];
    this.asked = asked;
    setControls(asked, info);
    clearTimeout(this.linking);
    // Browsers refuse addresses that change too often.
    if (how.live) this.linking = window.setTimeout(() => this.keepLink("replace"), 300);
    else if (how.history !== "none") this.keepLink(how.history);
    return this.turns.take(async (signal, cut) => {
      try {
        const answers = await api.query(info.name, batch(asked, info), cut);
        if (signal.aborted) return;
        await this.view.show(info, asked, answers, how.flow, signal);
        if (signal.aborted) return;
        this.again = null;
        clearFieldErrors();
        hideNotice();
        setState("ready");
        document.documentElement.dataset.answers = String(
          Number(document.documentElement.dataset.answers) + 1,
        );
      } catch (error) {
        if (signal.aborted) return;
        this.fail(error, () => this.ask(asked, { ...how, history: "none" }));
        if (error instanceof api.ApiError && error.status === 422) await this.findGone(info, asked);
      }
    }, !how.live);
  }

  /** Points of the map that the server refuses may be gone. @param {api.Info} info @param {Asked} asked */
  async findGone(info, asked) {
    if (this.view.lacks([...asked.ids, ...asked.negative])) return; // a wrong id, nothing new
    await this.opening.renew(info).catch((error) => {
      if (!(error instanceof api.ApiError)) throw error;
    });
  }

  /** @param {"push"|"replace"} how */
  keepLink(how) {
    const link = writeLink(this.asked);
    const kept = { vectors: this.asked.vectors };
    if (how === "push" && link !== location.hash) history.pushState(kept, "", link);
    else history.replaceState(kept, "", link);
  }

  showExamples() {
    showExamples(
      this.asked,
      (id) => this.view.picture(id),
      (id) => this.view.text(id),
      (part) => this.ask(without(this.asked, part), { history: "push", flow: true }),
      this.past.length ? () => this.undo() : null,
    );
  }

  /**
   * Where unseen vectors are drawn.
   * @param {Asked} asked
   * @param {Id[]} near points nearest to the query
   * @returns {[number, number][]}
   */
  vectorPlaces(asked, near) {
    const { plane } = this;
    if (!asked.vectors.length || !this.maps.places) return [];
    if (plane) return asked.vectors.map((vector) => toPlace(plane, vector));
    const place = middle(this.maps.places, near.slice(0, 3));
    return place ? [place] : [];
  }

  /** Say what went wrong, and offer to try again. @param {unknown} error @param {() => void} again */
  fail(error, again) {
    setState("error");
    this.again = again;
    showFailure(error, again);
  }
}

new Page().start();
