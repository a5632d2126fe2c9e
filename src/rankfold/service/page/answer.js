/** The answer that is shown: colours, lists, captions, marks. */

import * as api from "./api.js";
import { clearCertificate, showCertificate, showLead, showLegend, showMatches } from "./captions.js";
import { announce, byId, formatId } from "./elements.js";
import { LIST_LENGTH, judgedColumn, markedAs, rankingDepth, refine } from "./query.js";
import { columnColours, rankColours } from "./renderer.js";
import { bindListKeys, showLists, showMarks, toRanking } from "./results.js";
import { currentTheme } from "./theme.js";

/** @typedef {import("./api.js").Id} Id */
/** @typedef {import("./api.js").Info} Info */
/** @typedef {import("./query.js").Query} Query */

/**
 * The column to read: of those whose texts mostly differ, so that they tell points apart, the one with the longest.
 * @param {Record<string, string>} columns names and kinds
 * @param {Record<string, unknown>[]} payloads of the points at hand
 * @returns {string|null}
 */
export function textColumn(columns, payloads) {
  let found = null,
    longest = 0;
  for (const name of Object.keys(columns).filter((one) => columns[one] === "text")) {
    const texts = payloads.map((payload) => payload[name]).filter((text) => typeof text === "string");
    const length = texts.reduce((sum, text) => sum + text.length, 0) / texts.length;
    if (length > longest && new Set(texts).size > texts.length / 2) [found, longest] = [name, length];
  }
  return found;
}

/** Points whose payload and picture are kept. */
const CACHE_SIZE = 10000;

export class AnswerView {
  /** @param {import("./main.js").Page} page */
  constructor(page) {
    this.page = page;
    /** @type {string|null} */
    this.column = null;
    /** @type {string|null} the column that says what a point is */
    this.textColumn = null;
    /** @type {unknown[]|null} of the column, for all points of the map */
    this.values = null;
    /** @type {Map<Id, import("./results.js").Point>} */
    this.cache = new Map();
    /** @type {Map<Id, "right"|"wrong">} */
    this.marks = new Map();
    /** @type {(import("./explanation.js").Context & {listed: Id[]})|null} */
    this.context = null;
    this.actions = {
      ask: (/** @type {Id} */ id, /** @type {boolean} */ add) => page.askWithPoint(id, add),
      mark: (/** @type {Id} */ id, /** @type {"right"|"wrong"} */ mark) => this.mark(id, mark),
      explain: (/** @type {Id|null} */ id) => page.explanation.request(id),
    };
    bindListKeys(byId("list-plain"), this.actions);
    bindListKeys(byId("list-shape"), this.actions);
  }

  /** Begin with another index. @param {Info} info @param {string|null} column @param {unknown[]|null} values */
  setIndex(info, column, values) {
    this.hasImages = info.image !== null || "image" in info.columns;
    this.cache.clear();
    this.marks.clear();
    this.column = column;
    this.values = values;
  }

  /** Nothing is shown yet. */
  clear() {
    this.context = null;
    for (const id of [
      "list-plain",
      "list-shape",
      "examples",
      "caption-plain",
      "caption-shape",
      "judged-plain",
      "judged-shape",
    ]) {
      byId(id).replaceChildren();
    }
    clearCertificate();
    this.recolour(false);
    this.updateMarks();
    this.page.explanation.setAnswer(null);
  }

  /**
   * Fetch the values of the column that is asked for.
   * @param {Info} info
   * @param {Query} query
   * @returns {Promise<boolean>} whether the index has changed, so that what is shown is of before
   */
  async loadColumn(info, query) {
    const column = judgedColumn(info, query);
    if (column === this.column) return false;
    const found = column ? await api.map(info.name, column) : null;
    const { maps } = this.page;
    if (!this.isCurrentColumn(info, column)) return false;
    if (found && found.version !== maps.layout?.version) return this.page.loader.refresh(info);
    this.values = found?.values ?? null;
    this.column = column;
    return false;
  }

  /** Whether a column is still the one to judge by. @param {Info} info @param {string|null} column */
  isCurrentColumn(info, column) {
    return this.page.info === info && judgedColumn(info, this.page.query) === column;
  }

  /** The index has changed. @param {string|null} column @param {unknown[]|null} values */
  refresh(column, values) {
    this.cache.clear();
    this.column = column;
    this.values = values;
    this.recolour(false);
    this.updateMarks();
    const { explanation } = this.page;
    if (explanation.id !== null && this.lacks([explanation.id])) explanation.close();
  }

  /** Whether the map should have all points, and lacks one of these. @param {Id[]} ids */
  lacks(ids) {
    const { layout } = this.page.maps;
    if (!layout || layout.ids.length < layout.points) return false;
    return ids.some((id) => !layout.rows.has(id));
  }

  /** @param {Id[]} ids @param {AbortSignal} signal */
  async fetchPoints(ids, signal) {
    const { info } = this.page;
    const missing = [...new Set(ids)]
      .filter((id) => !this.cache.has(id))
      .slice(0, info?.limits?.points ?? 1000);
    if (!missing.length || !info) return;
    for (const point of await api.points(info.name, missing, Boolean(this.hasImages), signal))
      this.cache.set(point.id, point);
    this.evict(ids);
  }

  /** Forget the points that were needed longest ago. @param {Id[]} needed now */
  evict(needed) {
    for (const id of needed) {
      const point = this.cache.get(id);
      if (!point) continue;
      this.cache.delete(id); // to be the last in line
      this.cache.set(id, point);
    }
    for (const id of this.cache.keys()) {
      if (this.cache.size <= CACHE_SIZE) break;
      this.cache.delete(id);
    }
  }

  /** @param {Id} id */
  image(id) {
    return this.cache.get(id)?.image ?? null;
  }

  /** What a point is, in words. @param {Id} id @returns {string|null} */
  text(id) {
    const text = this.textColumn ? this.cache.get(id)?.payload?.[this.textColumn] : null;
    return typeof text === "string" ? text : null;
  }

  /** @param {Info} info @param {Query} query @param {any[]} answers @param {boolean} flow @param {AbortSignal} signal */
  async show(info, query, answers, flow, signal) {
    const [plain, shape] = answers.map((answer) => toRanking(answer.results));
    const listed = (answers[2] ?? answers[1]).results.map((/** @type {{id: Id}} */ one) => one.id);
    const ids = [...query.ids, ...query.negative, ...plain.ids.slice(0, LIST_LENGTH), ...listed.slice(0, LIST_LENGTH)];
    if (this.lacks([...plain.ids, ...shape.ids])) await this.page.loader.refresh(info);
    const vectorPositions = this.page.vectorPositions(query, plain.ids);
    const sameQuery = this.context && sameExamples(this.context.query, query);
    if (signal.aborted) return;
    const context = { info, query, plain, shape, listed, depth: rankingDepth(info), vectorPositions };
    await this.fetchPoints(ids, signal);
    if (signal.aborted) return;
    this.context = context;
    const told = [...new Set(ids)].map((id) => this.payload(id)); // both lists may have the same points
    this.textColumn = this.hasImages ? null : (info.embedder?.column ?? textColumn(info.columns, told));
    if (!sameQuery) this.marks.clear();
    this.recolour(flow && !sameQuery);
    this.showLists();
    this.updateMarks();
    this.page.updateExamples();
    showCertificate(answers[1]);
    this.page.explanation.setAnswer(context);
    announce(
      `${listed.length ? `First by shape: ${listed.slice(0, 3).map(formatId).join(", ")}.` : "No results."} ${byId("judged-shape").textContent}`,
    );
  }

  /** Whether the payload of a point is at hand. @param {Id} id */
  knows(id) {
    return this.cache.has(id);
  }

  /** Nothing where the point is gone. @param {Id} id @returns {Record<string, unknown>} */
  payload(id) {
    return this.cache.get(id)?.payload ?? {};
  }

  /** Values of the column that the query has; none where each point has its own. @returns {unknown[]} */
  queryValues() {
    const { context, column } = this;
    if (!context || !column || column === this.textColumn) return [];
    const values = context.query.ids.map((id) => this.cache.get(id)?.payload?.[column]);
    return [...new Set(values.filter((value) => value != null))];
  }

  /** Colour both maps. @param {boolean} flow */
  recolour(flow) {
    const {
      page: { maps, info, query },
      context,
      values,
    } = this;
    if (!maps.layout || !info) return;
    const depth = rankingDepth(info),
      theme = currentTheme(),
      filtered = query.where.trim() !== "",
      byColumn = query.colouring === "column" && values !== null;
    showLead(info, maps.layout.ids.length, query.method, byColumn ? this.column : null);
    if (byColumn) {
      const target = columnColours(maps.layout, values, theme);
      maps.recolour("plain", target, false);
      maps.recolour("shape", target, false);
      showLegend(theme, depth, info.points, target.legend, this.column, filtered);
    } else {
      maps.recolour("plain", rankColours(maps.layout, context?.plain ?? null, depth, theme, false), flow);
      maps.recolour(
        "shape",
        rankColours(maps.layout, context?.shape ?? null, depth, theme, query.method !== "distance"),
        flow,
      );
      showLegend(theme, depth, info.points, null, null, filtered);
    }
  }

  showLists() {
    const { context, column } = this;
    if (!context) return;
    const queryValues = this.queryValues();
    showLists(
      {
        ...context,
        count: LIST_LENGTH,
        hasImages: Boolean(this.hasImages),
        hasNegatives: context.query.negative.length > 0,
        column,
        queryValues,
        textColumn: this.textColumn,
        text: (id) => this.text(id),
        points: this.cache,
        marks: this.marks,
      },
      this.actions,
    );
    const relevant = this.values?.filter((value) => queryValues.includes(value)).length ?? 0;
    const first = Math.min(context.depth, Math.max(0, relevant - context.query.ids.length));
    for (const [side, ids] of /** @type {const} */ ([
      ["plain", context.plain.ids],
      ["shape", context.shape.ids],
    ])) {
      const listed = side === "plain" ? ids : context.listed;
      showMatches(byId(`judged-${side}`), column, this.valuesOf(listed.slice(0, LIST_LENGTH)), queryValues, LIST_LENGTH, false);
      showMatches(byId(`caption-${side}`), column, this.valuesOf(ids.slice(0, first)), queryValues, first, true);
    }
  }

  /** @param {Id[]} ids */
  valuesOf(ids) {
    const rows = this.page.maps.layout?.rows,
      { column, values } = this;
    return ids.map((id) => {
      const row = rows?.get(id);
      return row !== undefined && values
        ? values[row]
        : column
          ? this.cache.get(id)?.payload?.[column]
          : undefined;
    });
  }

  /** Mark a result; the same mark again takes it away. @param {Id} id @param {"right"|"wrong"} mark */
  mark(id, mark) {
    if (this.marks.get(id) === mark) this.marks.delete(id);
    else this.marks.set(id, mark);
    const name = formatId(id);
    announce(this.marks.has(id) ? `${name} is marked as ${mark}.` : `${name} is not marked any more.`);
    this.updateMarks();
  }

  clearMarks() {
    this.marks.clear();
    this.updateMarks();
  }

  askAgain() {
    if (this.marks.size) this.page.ask(refine(this.page.query, this.marks), { history: "push", flow: true });
  }

  updateMarks() {
    const right = markedAs(this.marks, "right"),
      wrong = markedAs(this.marks, "wrong");
    byId("feedback").hidden = !this.marks.size;
    byId("marked").textContent = `${right.length} right, ${wrong.length} wrong`;
    showMarks(this.marks);
    const { maps } = this.page,
      { context } = this;
    const overlay = {
      examples: context ? [...maps.positions(context.query.ids), ...context.vectorPositions] : [],
      negatives: maps.positions(context?.query.negative ?? []),
      right: maps.positions(right),
      wrong: maps.positions(wrong),
    };
    maps.setOverlay("plain", { ...overlay, listed: maps.positions(context?.plain.ids.slice(0, LIST_LENGTH) ?? []) });
    maps.setOverlay("shape", { ...overlay, listed: maps.positions(context?.listed.slice(0, LIST_LENGTH) ?? []) });
  }
}

/** Whether two queries differ in parameters alone. @param {Query} one @param {Query} other */
export function sameExamples(one, other) {
  const examples = (/** @type {Query} */ { index, ids, vectors, text, negative }) => [index, ids, vectors, text, negative];
  return api.writeJson(examples(one)) === api.writeJson(examples(other));
}
