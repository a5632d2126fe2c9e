/** The page: opens an index, asks, and shows the answer. */

import * as api from "./api.js";
import { AnswerView, sameExamples } from "./answer.js";
import { bindControls, showExamples, updateColumnChoices, updateControls } from "./controls.js";
import { clearFieldErrors, describeError, hideNotice, showError, showNotice } from "./dialogs.js";
import { byId, displayName, make, setState } from "./elements.js";
import { Explanation } from "./explanation.js";
import { centroid, fetchPlane, firstExample, parseLayout, positionToVector, vectorToPosition } from "./layout.js";
import { Maps } from "./maps.js";
import { countExamples, emptyQuery, formatLink, judgedColumn, parseLink, requestBatch, withoutExample } from "./query.js";
import { SearchBox } from "./search.js";

/** @typedef {import("./api.js").Id} Id */
/** @typedef {import("./query.js").Query} Query */

class IndexLoader {
  /** @param {Page} page */
  constructor(page) {
    this.page = page;
    /** @type {api.Info[]} */
    this.indexes = [];
  }

  /** Read what is served, then open what the address names. */
  async connect() {
    setState("loading");
    try {
      this.indexes = (await api.indexes()).sort((a, b) => Number(a.example) - Number(b.example));
      hideNotice();
      this.page.info = null;
      await this.openLink();
    } catch (error) {
      this.page.fail(error, () => this.connect());
    }
  }

  async openLink() {
    clearTimeout(this.page.linkTimer);
    const query = parseLink(location.hash);
    if (!query.vectors.length && Array.isArray(history.state?.vectors)) query.vectors = history.state.vectors;
    const missing = this.indexes.some((one) => one.name === query.index) ? null : query.index;
    if (missing) Object.assign(query, emptyQuery());
    query.index ??= this.indexes[0]?.name ?? null;
    if (!query.index) {
      setState("ready");
      byId("lead").textContent = "No index is served.";
      return;
    }
    await this.open(query);
    if (missing) showNotice(`There is no index “${missing}” here. This is another one.`);
  }

  /** Show an index, and ask. @param {Query} query */
  async open(query) {
    const info = this.indexes.find((one) => one.name === query.index);
    if (!info) return;
    const other = this.page.info?.name !== info.name;
    this.page.query = query;
    this.showTabs(info.name);
    if (!other) {
      byId("layout").inert = !info.points;
      await this.page.judgeBy(query);
      // Controls may have asked for something else while the column was on its way.
      await this.page.ask(this.withFirstExample(this.page.query), { history: "none", flow: true });
      return;
    }
    setState("loading");
    byId("layout").inert = true; // its controls are about what is left
    this.page.queue.cancel();
    this.page.undoStack = [];
    await this.page.queue.submit(async (signal) => {
      try {
        const column = judgedColumn(info, query);
        const { values, layout, plane } = await fetchMap(info, column, signal);
        if (signal.aborted) return;
        Object.assign(this.page, { info, plane });
        this.page.answer.setIndex(info, column, values);
        this.page.search.setIndex(info);
        this.page.maps.setLayout(layout);
        this.page.answer.clear();
      } catch (error) {
        if (!signal.aborted) this.page.fail(error, () => this.open(query));
      }
    }, true);
    if (this.page.info !== info || this.page.query.index !== info.name) return;
    updateColumnChoices(info, this.page.answer.column);
    updateControls(this.page.query, info);
    byId("layout").inert = !info.points;
    if (!info.points) {
      setState("ready");
      byId("lead").textContent = `${info.name} has no points yet. They appear here once some are added.`;
      return;
    }
    await this.page.ask(this.withFirstExample(this.page.query), { history: "replace", flow: true });
  }

  /**
   * Read the map again where the index has changed. What is shown stays.
   * @param {api.Info} info
   * @returns {Promise<boolean>} whether the map is another one
   */
  async refresh(info) {
    const { page } = this,
      column = judgedColumn(info, page.query);
    const fresh = await api.info(info.name);
    if (fresh.version === page.maps.layout?.version) return false;
    const { values, layout, plane } = await fetchMap(fresh, column);
    if (!page.answer.isCurrentColumn(info, column)) return false;
    Object.assign(info, fresh);
    page.plane = plane;
    page.maps.setLayout(layout, true);
    page.answer.refresh(column, values);
    return true;
  }

  /** What is asked, or something to begin with. @param {Query} query @returns {Query} */
  withFirstExample(query) {
    const { layout } = this.page.maps;
    if (countExamples(query) || !layout) return query;
    const named = this.page.info?.query ?? null;
    return { ...query, ids: [named ?? firstExample(query.index ?? "", layout, this.page.plane)] };
  }

  /** @param {string} name */
  showTabs(name) {
    byId("tabs").replaceChildren(
      ...this.indexes.map((one) =>
        make(
          "button",
          {
            type: "button",
            "data-testid": "tab",
            "data-name": one.name,
            "aria-current": one.name === name ? "true" : null,
            onclick: () => {
              if (this.page.query.index !== one.name) this.switchTo(one.name);
            },
          },
          displayName(one.name, one.example),
        ),
      ),
    );
    const tabs = byId("tabs"),
      tab = tabs.querySelector("[aria-current]");
    // Not by scrollIntoView: the first Tab would then go on from there.
    if (tab) tabs.scrollLeft = tab.offsetLeft - tabs.offsetLeft - 8;
    const current = this.indexes.find((one) => one.name === name);
    document.title = `${displayName(name, current?.example ?? false)} – rankfold`;
  }

  /** @param {string} name */
  switchTo(name) {
    history.pushState({}, "", `#${encodeURIComponent(name)}`);
    this.open({ ...emptyQuery(), index: name });
  }
}

/** Where the points of an index are, and their values of a column. @param {api.Info} info @param {string|null} column @param {AbortSignal} [signal] */
async function fetchMap(info, column, signal) {
  const found = await api.map(info.name, column, signal);
  const layout = parseLayout(found);
  const plane = info.layout === "plane" ? await fetchPlane(info.name, layout, signal) : null;
  return { values: /** @type {unknown[]|null} */ (found.values), layout, plane };
}

/** Queries that can be gone back to. */
const MAX_UNDO = 100;

export class Page {
  constructor() {
    /** @type {Query} */
    this.query = emptyQuery();
    /** @type {api.Info|null} */
    this.info = null;
    /** @type {import("./layout.js").Plane|null} */
    this.plane = null;
    /** @type {Query[]} queries to go back to */
    this.undoStack = [];
    this.queue = new api.RequestQueue(2000, (busy) => {
      document.documentElement.classList.toggle("busy", busy);
      if (!busy) this.explanation.resume();
    });
    this.linkTimer = 0;
    /** @type {(() => void)|null} what to do once there is a key */
    this.retry = null;
    this.maps = new Maps(
      { plain: byId("map-plain"), shape: byId("map-shape") },
      (row, position, add) => this.select(row, position, add),
      (row) => this.explanation.request(row === null ? null : /** @type {any} */ (this.maps.layout).ids[row]),
      (zoomed) => {
        byId("fit").hidden = !zoomed;
      },
    );
    this.loader = new IndexLoader(this);
    this.answer = new AnswerView(this);
    this.search = new SearchBox(this);
    this.explanation = new Explanation(
      this.maps,
      this.answer,
      () => this.queue.running !== null,
      describeError,
    );
  }

  async start() {
    bindControls(this);
    window.addEventListener("popstate", () => this.loader.openLink());
    await this.loader.connect();
  }

  /** Judge by the column that is asked for. @param {Query} query */
  async judgeBy(query) {
    const { info } = this;
    if (!info) return;
    try {
      const changed = await this.answer.loadColumn(info, query);
      if (this.info !== info) return;
      updateColumnChoices(info, this.answer.column);
      if (changed) await this.ask(this.query, { history: "none", flow: false });
    } catch (error) {
      if (this.answer.isCurrentColumn(info, judgedColumn(info, query))) this.fail(error, () => this.judgeBy(query));
    }
  }

  /** @param {number|null} row @param {[number, number]} position @param {boolean} add */
  select(row, position, add) {
    if (!this.info?.points) return;
    if (row !== null && this.maps.layout) this.askWithPoint(this.maps.layout.ids[row], add);
    else if (this.plane) this.askWithVectors([positionToVector(this.plane, position)], add);
  }

  /** @param {Id} id @param {boolean} add as another example */
  askWithPoint(id, add) {
    const { query } = this;
    const ids = add ? [...query.ids.filter((one) => one !== id), id] : [id];
    this.ask(
      {
        ...query,
        ids,
        vectors: add ? query.vectors : [],
        text: add ? query.text : "",
        negative: add ? query.negative.filter((one) => one !== id) : [],
      },
      { history: "push", flow: true },
    );
  }

  /** @param {number[][]} vectors @param {boolean} [add] */
  askWithVectors(vectors, add = false) {
    const { query } = this;
    const examples = add
      ? { ids: query.ids, vectors: [...query.vectors, ...vectors] }
      : { ids: [], vectors, text: "", negative: [] };
    this.ask({ ...query, ...examples }, { history: "push", flow: true });
  }

  /** @param {string} text */
  askWithText(text) {
    this.ask({ ...this.query, ids: [], vectors: [], text, negative: [] }, { history: "push", flow: true });
  }

  undo() {
    const before = this.undoStack.pop();
    if (before) this.ask(before, { history: "replace", flow: true });
  }

  /**
   * Ask, and show the answer.
   * @param {Query} query
   * @param {{history: "push"|"replace"|"none", flow: boolean, live?: boolean}} options live: sliding, where the latest wins
   */
  ask(query, options) {
    const { info } = this;
    if (!info?.points || query.index !== info.name) return; // another one is being opened
    const before = this.answer.context?.query;
    if (options.history === "push" && before && this.undoStack.at(-1) !== before)
      this.undoStack = [...this.undoStack.slice(1 - MAX_UNDO), before];
    this.query = query;
    // What the card says is of the examples before.
    if (before && !sameExamples(before, query)) this.explanation.close();
    updateControls(query, info);
    clearTimeout(this.linkTimer);
    // Browsers refuse addresses that change too often.
    if (options.live) this.linkTimer = window.setTimeout(() => this.saveLink("replace"), 300);
    else if (options.history !== "none") this.saveLink(options.history);
    return this.queue.submit(async (stale, timeout) => {
      try {
        const answers = await api.query(info.name, requestBatch(query, info), timeout);
        if (stale.aborted) return;
        await this.answer.show(info, query, answers, options.flow, stale);
        if (stale.aborted) return;
        this.retry = null;
        clearFieldErrors();
        hideNotice();
        setState("ready");
        document.documentElement.dataset.answers = String(
          Number(document.documentElement.dataset.answers) + 1,
        );
      } catch (error) {
        if (stale.aborted) return;
        this.fail(error, () => this.ask(query, { ...options, history: "none" }));
        if (error instanceof api.ApiError && error.status === 422) await this.checkDeleted(info, query);
      }
    }, !options.live);
  }

  /** Points of the map that the server refuses may be gone. @param {api.Info} info @param {Query} query */
  async checkDeleted(info, query) {
    if (this.answer.lacks([...query.ids, ...query.negative])) return; // a wrong id, nothing new
    await this.loader.refresh(info).catch((error) => {
      if (!(error instanceof api.ApiError)) throw error;
    });
  }

  /** @param {"push"|"replace"} how */
  saveLink(how) {
    const link = formatLink(this.query);
    const state = { vectors: this.query.vectors };
    if (how === "push" && link !== location.hash) history.pushState(state, "", link);
    else history.replaceState(state, "", link);
  }

  updateExamples() {
    showExamples(
      this.query,
      (id) => this.answer.image(id),
      (id) => this.answer.text(id),
      (example) => this.ask(withoutExample(this.query, example), { history: "push", flow: true }),
      this.undoStack.length ? () => this.undo() : null,
    );
  }

  /**
   * Where unseen vectors and texts are drawn.
   * @param {Query} query
   * @param {Id[]} near points nearest to the query
   * @returns {[number, number][]}
   */
  vectorPositions(query, near) {
    const { plane } = this;
    if ((!query.vectors.length && !query.text) || !this.maps.layout) return [];
    if (plane && !query.text) return query.vectors.map((vector) => vectorToPosition(plane, vector));
    const position = centroid(this.maps.layout, near.slice(0, 3));
    return position ? [position] : [];
  }

  /** Say what went wrong, and offer to try again. @param {unknown} error @param {() => void} retry */
  fail(error, retry) {
    setState("error");
    this.retry = retry;
    showError(error, retry);
  }
}

new Page().start();
