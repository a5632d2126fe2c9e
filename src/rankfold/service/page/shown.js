/** The answer that is shown: colours, lists, captions, marks. */

import * as api from "./api.js";
import { SHOWN, depthOf } from "./asking.js";
import { judgedColumn, readColumn } from "./columns.js";
import { announce, byId } from "./elements.js";
import { refined } from "./examples.js";
import { writeJson } from "./json.js";
import { listKeys, showLists, showMarks } from "./lists.js";
import { nameOf, ranked } from "./moves.js";
import { byColumn, byRank } from "./painting.js";
import { theme } from "./theme.js";
import { clearCertificate, showCertificate, showLead, showLegend, showSharing } from "./words.js";

/** @typedef {import("./moves.js").Id} Id */
/** @typedef {import("./api.js").Info} Info */
/** @typedef {import("./link.js").Asked} Asked */

/** Points whose payload and picture are kept. */
const MOST_KNOWN = 10000;

export class AnswerView {
  /** @param {import("./main.js").Page} page */
  constructor(page) {
    this.page = page;
    /** @type {string|null} */
    this.column = null;
    /** @type {string|null} the column that says what a point is */
    this.read = null;
    /** @type {unknown[]|null} of the column, for all points of the map */
    this.values = null;
    /** @type {Map<Id, import("./lists.js").Point>} */
    this.known = new Map();
    /** @type {Map<Id, "right"|"wrong">} */
    this.marks = new Map();
    /** @type {(import("./looking.js").Context & {listed: Id[]})|null} */
    this.context = null;
    this.actions = {
      ask: (/** @type {Id} */ id, /** @type {boolean} */ more) => page.askWith(id, more),
      mark: (/** @type {Id} */ id, /** @type {"right"|"wrong"} */ mark) => this.mark(id, mark),
      look: (/** @type {Id|null} */ id) => page.looking.look(id),
    };
    listKeys(byId("list-plain"), this.actions);
    listKeys(byId("list-shape"), this.actions);
  }

  /** Begin with another index. @param {Info} info @param {string|null} column @param {unknown[]|null} values */
  begin(info, column, values) {
    this.pictures = info.image !== null || "image" in info.columns;
    this.known.clear();
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
    this.paint(false);
    this.showMarked();
    this.page.looking.follow(null);
  }

  /**
   * Fetch the values of the column that is asked for.
   * @param {Info} info
   * @param {Asked} asked
   * @returns {Promise<boolean>} whether the index has changed, so that what is shown is of before
   */
  async judge(info, asked) {
    const column = judgedColumn(info, asked);
    if (column === this.column) return false;
    const found = column ? await api.map(info.name, column) : null;
    const { maps } = this.page;
    if (!this.isWanted(info, column)) return false;
    if (found && found.version !== maps.places?.version) return this.page.opening.renew(info);
    this.values = found?.values ?? null;
    this.column = column;
    return false;
  }

  /** Whether a column is still the one to judge by. @param {Info} info @param {string|null} column */
  isWanted(info, column) {
    return this.page.info === info && judgedColumn(info, this.page.asked) === column;
  }

  /** The index has changed. @param {string|null} column @param {unknown[]|null} values */
  renew(column, values) {
    this.known.clear();
    this.column = column;
    this.values = values;
    this.paint(false);
    this.showMarked();
    const { looking } = this.page;
    if (looking.id !== null && this.lacks([looking.id])) looking.leave();
  }

  /** Whether the map should have all points, and lacks one of these. @param {Id[]} ids */
  lacks(ids) {
    const { places } = this.page.maps;
    if (!places || places.ids.length < places.points) return false;
    return ids.some((id) => !places.rows.has(id));
  }

  /** @param {Id[]} ids @param {AbortSignal} signal */
  async fetchPoints(ids, signal) {
    const { info } = this.page;
    const missing = [...new Set(ids)]
      .filter((id) => !this.known.has(id))
      .slice(0, info?.limits?.points ?? 1000);
    if (!missing.length || !info) return;
    for (const point of await api.points(info.name, missing, Boolean(this.pictures), signal))
      this.known.set(point.id, point);
    this.forget(ids);
  }

  /** Forget the points that were needed longest ago. @param {Id[]} needed now */
  forget(needed) {
    for (const id of needed) {
      const point = this.known.get(id);
      if (!point) continue;
      this.known.delete(id); // to be the last in line
      this.known.set(id, point);
    }
    for (const id of this.known.keys()) {
      if (this.known.size <= MOST_KNOWN) break;
      this.known.delete(id);
    }
  }

  /** @param {Id} id */
  picture(id) {
    return this.known.get(id)?.image ?? null;
  }

  /** What a point is, in words. @param {Id} id @returns {string|null} */
  text(id) {
    const text = this.read ? this.known.get(id)?.payload?.[this.read] : null;
    return typeof text === "string" ? text : null;
  }

  /** @param {Info} info @param {Asked} asked @param {any[]} answers @param {boolean} flow @param {AbortSignal} signal */
  async show(info, asked, answers, flow, signal) {
    const [plain, shape] = answers.map((answer) => ranked(answer.results));
    const listed = (answers[2] ?? answers[1]).results.map((/** @type {{id: Id}} */ one) => one.id);
    const ids = [...asked.ids, ...asked.negative, ...plain.ids.slice(0, SHOWN), ...listed.slice(0, SHOWN)];
    if (this.lacks([...plain.ids, ...shape.ids])) await this.page.opening.renew(info);
    const vectorPlaces = this.page.vectorPlaces(asked, plain.ids);
    const sameQuery =
      this.context && writeJson(query(this.context.asked)) === writeJson(query(asked));
    if (signal.aborted) return;
    const context = { info, asked, plain, shape, listed, depth: depthOf(info), vectorPlaces };
    await this.fetchPoints(ids, signal);
    if (signal.aborted) return;
    this.context = context;
    this.read = this.pictures ? null : readColumn(info.columns, this.payloads(ids));
    if (!sameQuery) this.marks.clear();
    this.paint(flow && !sameQuery);
    this.showLists();
    this.showMarked();
    this.page.showExamples();
    showCertificate(answers[1]);
    this.page.looking.follow(context);
    announce(
      `${listed.length ? `First by shape: ${listed.slice(0, 3).map(nameOf).join(", ")}.` : "No results."} ${byId("judged-shape").textContent}`,
    );
  }

  /** @param {Id[]} ids of points, of which some may be gone */
  payloads(ids) {
    return ids.map((id) => this.known.get(id)?.payload ?? {});
  }

  /** Values of the column that the query has; none where each point has its own. @returns {unknown[]} */
  wanted() {
    const { context, column } = this;
    if (!context || !column || column === this.read) return [];
    const values = context.asked.ids.map((id) => this.known.get(id)?.payload?.[column]);
    return [...new Set(values.filter((value) => value != null))];
  }

  /** Colour both maps. @param {boolean} flow */
  paint(flow) {
    const {
      page: { maps, info, asked },
      context,
      values,
    } = this;
    if (!maps.places || !info) return;
    const depth = depthOf(info),
      now = theme(),
      filtered = asked.where.trim() !== "",
      byKind = asked.colouring === "column" && values !== null;
    showLead(info, maps.places.ids.length, asked.method, byKind ? this.column : null);
    if (byKind) {
      const target = byColumn(maps.places, values, now);
      maps.recolour("plain", target, false);
      maps.recolour("shape", target, false);
      showLegend(now, depth, info.points, target.legend, this.column, filtered);
    } else {
      maps.recolour("plain", byRank(maps.places, context?.plain ?? null, depth, now, false), flow);
      maps.recolour(
        "shape",
        byRank(maps.places, context?.shape ?? null, depth, now, asked.method !== "euclidean"),
        flow,
      );
      showLegend(now, depth, info.points, null, null, filtered);
    }
  }

  showLists() {
    const { context, column } = this;
    if (!context) return;
    const wanted = this.wanted();
    showLists(
      {
        ...context,
        count: SHOWN,
        pictures: Boolean(this.pictures),
        pushed: context.asked.negative.length > 0,
        column,
        wanted,
        read: this.read,
        text: (id) => this.text(id),
        known: this.known,
        marks: this.marks,
      },
      this.actions,
    );
    const kin = this.values?.filter((value) => wanted.includes(value)).length ?? 0;
    const first = Math.min(context.depth, Math.max(0, kin - context.asked.ids.length));
    for (const [side, ids] of /** @type {const} */ ([
      ["plain", context.plain.ids],
      ["shape", context.shape.ids],
    ])) {
      const shown = side === "plain" ? ids : context.listed;
      showSharing(byId(`judged-${side}`), column, this.valuesOf(shown.slice(0, SHOWN)), wanted, SHOWN, false);
      showSharing(byId(`caption-${side}`), column, this.valuesOf(ids.slice(0, first)), wanted, first, true);
    }
  }

  /** @param {Id[]} ids */
  valuesOf(ids) {
    const rows = this.page.maps.places?.rows,
      { column, values } = this;
    return ids.map((id) => {
      const row = rows?.get(id);
      return row !== undefined && values
        ? values[row]
        : column
          ? this.known.get(id)?.payload?.[column]
          : undefined;
    });
  }

  /** Mark a result; the same mark again takes it away. @param {Id} id @param {"right"|"wrong"} mark */
  mark(id, mark) {
    if (this.marks.get(id) === mark) this.marks.delete(id);
    else this.marks.set(id, mark);
    const name = nameOf(id);
    announce(this.marks.has(id) ? `${name} is marked as ${mark}.` : `${name} is not marked any more.`);
    this.showMarked();
  }

  clearMarks() {
    this.marks.clear();
    this.showMarked();
  }

  askAgain() {
    if (this.marks.size) this.page.ask(refined(this.page.asked, this.marks), { history: "push", flow: true });
  }

  showMarked() {
    const right = [...this.marks].filter(([, mark]) => mark === "right").map(([id]) => id);
    const wrong = [...this.marks].filter(([, mark]) => mark === "wrong").map(([id]) => id);
    byId("feedback").hidden = !this.marks.size;
    byId("marked").textContent = `${right.length} right, ${wrong.length} wrong`;
    showMarks(this.marks);
    const { looking, maps } = this.page,
      { context } = this;
    const at = (/** @type {Id[]} */ ids) =>
      ids.map((id) => looking.place(id)).filter((place) => place !== null);
    const examples = context ? [...at(context.asked.ids), ...context.vectorPlaces] : [];
    const scene = {
      examples,
      against: at(context?.asked.negative ?? []),
      right: at(right),
      wrong: at(wrong),
    };
    maps.setScene("plain", { ...scene, shown: at(context?.plain.ids.slice(0, SHOWN) ?? []) });
    maps.setScene("shape", { ...scene, shown: at(context?.listed.slice(0, SHOWN) ?? []) });
  }
}

/** What is asked, apart from parameters. @param {Asked} asked */
function query({ index, ids, vectors, negative }) {
  return { index, ids, vectors, negative };
}
