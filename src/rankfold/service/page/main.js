/** The page: opens an index, asks, and shows the answer. */

import * as api from "./api.js";
import { Turns, batch } from "./asking.js";
import { makeControls } from "./wiring.js";
import { setColumns, setControls } from "./controls.js";
import { openKey } from "./dialogs.js";
import { announce, byId, make } from "./elements.js";
import { showExamples, without } from "./examples.js";
import { nothing, readLink, writeLink } from "./link.js";
import { Looking } from "./looking.js";
import { Maps } from "./maps.js";
import { title } from "./moves.js";
import { clearFieldErrors, hideNotice, showBusy, showFieldErrors, showNotice } from "./notice.js";
import { middle, nearest, readPlaces } from "./places.js";
import { AnswerView } from "./shown.js";

/** @typedef {import("./link.js").Asked} Asked */
/** @typedef {import("./moves.js").Id} Id */

/** Where a first look says most: the inner tip of a moon, the middle ring. @type {Record<string, [number, number]>} */
const FIRST_LOOK = { "two-moons": [0.98, 0.1], "three-rings": [0, 2] };

export class Page {
  constructor() {
    /** @type {Asked} */
    this.asked = nothing();
    /** @type {api.Info[]} */
    this.indexes = [];
    /** @type {api.Info|null} */
    this.info = null;
    /** @type {Asked[]} queries to go back to */
    this.past = [];
    this.turns = new Turns();
    this.linking = 0;
    this.maps = new Maps({ plain: byId("map-plain"), shape: byId("map-shape") },
      (row, place, more) => this.pick(row, place, more),
      (row) => this.looking.look(row === null ? null : /** @type {any} */ (this.maps.places).ids[row]),
      (zoomed) => { byId("fit").hidden = !zoomed; });
    this.view = new AnswerView(this);
    this.looking = new Looking(this.maps, (ids, signal) => this.view.fetchPoints(ids, signal),
      (id) => this.view.picture(id), (error) => this.wrong(error));
  }

  async start() {
    makeControls(this);
    window.addEventListener("popstate", () => this.followLink());
    await this.connect();
  }

  /** Read what is served, then open what the address names. */
  async connect() {
    state("loading");
    try {
      this.indexes = (await api.indexes()).sort((a, b) => Number(b.example) - Number(a.example));
      hideNotice();
      this.info = null;
      await this.followLink();
    } catch (error) {
      this.fail(error, () => this.connect());
    }
  }

  async followLink() {
    clearTimeout(this.linking);
    const asked = readLink(location.hash);
    if (!asked.vectors.length && Array.isArray(history.state?.vectors)) asked.vectors = history.state.vectors;
    const known = this.indexes.some((one) => one.name === asked.index);
    if (asked.index && !known && this.indexes.length) {
      showNotice(`There is no index “${asked.index}” here. This is another one.`);
      Object.assign(asked, nothing());
    }
    asked.index ??= this.indexes[0]?.name ?? null;
    if (!asked.index) {
      state("ready");
      byId("lead").textContent = "No index is served.";
      return;
    }
    await this.open(asked);
  }

  /** Show an index, and ask. @param {Asked} asked */
  async open(asked) {
    const info = this.indexes.find((one) => one.name === asked.index);
    if (!info) return;
    const other = this.info?.name !== info.name;
    this.asked = asked;
    if (!other) {
      const whole = asked.ids.length + asked.vectors.length ? asked : this.firstLook(asked);
      await this.judge(whole);
      this.ask(whole, { history: "none", flow: true });
      return;
    }
    state("loading");
    this.turns.stop();
    this.showTabs(info.name);
    this.past = [];
    await this.turns.take(async (signal) => {
      try {
        const column = this.view.columnOf(info, asked);
        const found = await api.map(info.name, column, signal);
        if (signal.aborted) return;
        this.info = info;
        this.view.begin(info, column, found.values);
        this.maps.setPlaces(readPlaces(found));
        this.view.clear();
      } catch (error) {
        if (!signal.aborted) this.fail(error, () => this.open(asked));
      }
    }, true);
    if (this.info !== info || this.asked !== asked) return;
    setColumns(info, this.view.column);
    setControls(asked, info);
    byId("layout").inert = !info.points;
    if (!info.points) {
      state("ready");
      byId("lead").textContent = `${info.name} has no points yet. They appear here once some are added.`;
      return;
    }
    this.ask(asked.ids.length + asked.vectors.length ? asked : this.firstLook(asked), { history: "replace", flow: true });
  }

  /** Judge by the column that is asked for. @param {Asked} asked */
  async judge(asked) {
    const { info } = this;
    if (!info) return;
    try {
      await this.view.judge(info, asked);
      setColumns(info, this.view.column);
    } catch (error) {
      this.fail(error, () => this.judge(asked));
    }
  }

  /** @param {Asked} asked @returns {Asked} */
  firstLook(asked) {
    const places = this.maps.places, at = FIRST_LOOK[asked.index ?? ""];
    if (!places) return asked;
    const row = (at && nearest(places, at[0], at[1], 1)) ?? 0;
    return { ...asked, ids: [places.ids[row]] };
  }

  /** @param {number|null} row @param {[number, number]} place @param {boolean} more */
  pick(row, place, more) {
    if (!this.info?.points) return;
    if (row !== null && this.maps.places) this.askWith(this.maps.places.ids[row], more);
    else if (this.info.layout === "plane") this.askVectors([[...place]], more);
  }

  /** @param {Id} id @param {boolean} more as another example */
  askWith(id, more) {
    const { asked } = this;
    const ids = more ? [...asked.ids.filter((one) => one !== id), id] : [id];
    this.ask({ ...asked, ids, vectors: more ? asked.vectors : [], negative: more ? asked.negative.filter((one) => one !== id) : [] },
      { history: "push", flow: true });
  }

  /** @param {number[][]} vectors @param {boolean} [more] */
  askVectors(vectors, more = false) {
    const { asked } = this;
    const query = more ? { ids: asked.ids, vectors: [...asked.vectors, ...vectors] } : { ids: [], vectors, negative: [] };
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
    if (!info || !info.points) return;
    if (how.history === "push" && this.view.context) this.past.push(this.view.context.asked);
    this.asked = asked;
    setControls(asked, info);
    clearTimeout(this.linking);
    // Browsers refuse addresses that change too often.
    if (how.live) this.linking = window.setTimeout(() => this.keepLink("replace"), 300);
    else if (how.history !== "none") this.keepLink(how.history);
    return this.turns.take(async (signal) => {
      try {
        const answers = await api.query(info.name, batch(asked, info), signal);
        await this.view.show(info, asked, answers, how.flow, signal);
        if (signal.aborted) return;
        clearFieldErrors();
        hideNotice();
        state("ready");
        document.documentElement.dataset.answers = String(Number(document.documentElement.dataset.answers) + 1);
      } catch (error) {
        if (!signal.aborted) this.fail(error, () => this.ask(asked, { ...how, history: "none" }));
      }
    }, !how.live);
  }

  /** @param {"push"|"replace"} how */
  keepLink(how) {
    const link = writeLink(this.asked);
    const kept = { vectors: this.asked.vectors };
    if (how === "push" && link !== location.hash) history.pushState(kept, "", link);
    else history.replaceState(kept, "", link);
  }

  /** @param {string} name */
  showTabs(name) {
    byId("tabs").replaceChildren(...this.indexes.map((one) => make("button", {
      type: "button", "data-testid": "tab", "data-name": one.name, "aria-current": one.name === name ? "true" : null,
      onclick: () => { if (this.asked.index !== one.name) this.change(one.name); },
    }, title(one.name, one.example))));
    byId("tabs").querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
    const shown = this.indexes.find((one) => one.name === name);
    document.title = `${title(name, shown?.example ?? false)} – rankfold`;
  }

  /** @param {string} name */
  change(name) {
    history.pushState({}, "", `#${encodeURIComponent(name)}`);
    this.open({ ...nothing(), index: name });
  }

  showExamples() {
    showExamples(this.asked, (id) => this.view.picture(id),
      (part) => this.ask(without(this.asked, part), { history: "push", flow: true }), this.past.length ? () => this.undo() : null);
  }

  /** Where an unseen vector is drawn. @param {Asked} asked @param {Id[]} near its nearest points @returns {[number, number]|null} */
  vectorPlace(asked, near) {
    if (!asked.vectors.length || !this.maps.places) return null;
    const [last] = asked.vectors.slice(-1);
    if (this.info?.layout === "plane" && last.length === 2) return [last[0], last[1]];
    return middle(this.maps.places, near.slice(0, 3));
  }

  /** Say what went wrong, in one sentence. @param {unknown} error */
  wrong(error) {
    if (error instanceof api.ApiError) {
      if (error.status === 401) openKey();
      return error.errors[0]?.message ?? error.message;
    }
    throw error;
  }

  /** Say what went wrong, and offer to try again. @param {unknown} error @param {() => void} again */
  fail(error, again) {
    state("error");
    if (!(error instanceof api.ApiError)) {
      showNotice("Something went wrong on this page.", { label: "Load it again", act: () => location.reload() });
      throw error;
    }
    clearFieldErrors();
    this.again = again;
    if (error.status === 401) {
      openKey();
      showNotice("This server asks for an API key.", { label: "Enter key", act: openKey });
    } else if (error.status === 503) showBusy(error.retryAfter ?? 2, again);
    else if (error.status === 0) showNotice(`${error.message} What you see stays.`, { label: "Try again", act: again });
    else if (showFieldErrors(error)) announce(error.errors[0].message);
    else if (error.status === 404 || error.status === 422) byId("query-error").textContent = error.message;
    else showNotice(error.message, { label: "Try again", act: again });
  }
}

/** @param {"loading"|"ready"|"error"} now */
function state(now) {
  document.documentElement.dataset.state = now;
}

new Page().start();
