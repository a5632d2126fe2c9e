/** Opening an index: what is served, what the address names, where its points are. */

import * as api from "./api.js";
import { judgedColumn } from "./columns.js";
import { setColumns, setControls } from "./controls.js";
import { byId, make, setState } from "./elements.js";
import { nothing, readLink } from "./link.js";
import { title } from "./moves.js";
import { hideNotice, showNotice } from "./notice.js";
import { readPlaces } from "./places.js";
import { firstLook, readPlane } from "./plane.js";

/** @typedef {import("./link.js").Asked} Asked */

export class Opening {
  /** @param {import("./main.js").Page} page */
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
      await this.followLink();
    } catch (error) {
      this.page.fail(error, () => this.connect());
    }
  }

  async followLink() {
    clearTimeout(this.page.linking);
    const asked = readLink(location.hash);
    if (!asked.vectors.length && Array.isArray(history.state?.vectors)) asked.vectors = history.state.vectors;
    const missing = this.indexes.some((one) => one.name === asked.index) ? null : asked.index;
    if (missing) Object.assign(asked, nothing());
    asked.index ??= this.indexes[0]?.name ?? null;
    if (!asked.index) {
      setState("ready");
      byId("lead").textContent = "No index is served.";
      return;
    }
    await this.open(asked);
    if (missing) showNotice(`There is no index “${missing}” here. This is another one.`);
  }

  /** Show an index, and ask. @param {Asked} asked */
  async open(asked) {
    const info = this.indexes.find((one) => one.name === asked.index);
    if (!info) return;
    const other = this.page.info?.name !== info.name;
    this.page.asked = asked;
    this.showTabs(info.name);
    if (!other) {
      byId("layout").inert = !info.points;
      await this.page.judge(asked);
      // Controls may have asked for something else while the column was on its way.
      await this.page.ask(this.begun(this.page.asked), { history: "none", flow: true });
      return;
    }
    setState("loading");
    byId("layout").inert = true; // its controls are about what is left
    this.page.turns.stop();
    this.page.past = [];
    await this.page.turns.take(async (signal) => {
      try {
        const column = judgedColumn(info, asked);
        const { values, places, plane } = await readMap(info, column, signal);
        if (signal.aborted) return;
        Object.assign(this.page, { info, plane });
        this.page.view.begin(info, column, values);
        this.page.maps.setPlaces(places);
        this.page.view.clear();
      } catch (error) {
        if (!signal.aborted) this.page.fail(error, () => this.open(asked));
      }
    }, true);
    if (this.page.info !== info || this.page.asked.index !== info.name) return;
    setColumns(info, this.page.view.column);
    setControls(this.page.asked, info);
    byId("layout").inert = !info.points;
    if (!info.points) {
      setState("ready");
      byId("lead").textContent = `${info.name} has no points yet. They appear here once some are added.`;
      return;
    }
    await this.page.ask(this.begun(this.page.asked), { history: "replace", flow: true });
  }

  /**
   * Read the map again where the index has changed. What is shown stays.
   * @param {api.Info} info
   * @returns {Promise<boolean>} whether the map is another one
   */
  async renew(info) {
    const { page } = this,
      column = judgedColumn(info, page.asked);
    const fresh = await api.info(info.name);
    if (fresh.version === page.maps.places?.version) return false;
    const { values, places, plane } = await readMap(fresh, column);
    if (!page.view.isWanted(info, column)) return false;
    Object.assign(info, fresh);
    page.plane = plane;
    page.maps.setPlaces(places, true);
    page.view.renew(column, values);
    return true;
  }

  /** What is asked, or something to begin with. @param {Asked} asked @returns {Asked} */
  begun(asked) {
    const { places } = this.page.maps;
    if (asked.ids.length + asked.vectors.length || !places) return asked;
    const named = this.page.info?.query ?? null;
    return { ...asked, ids: [named ?? firstLook(asked.index ?? "", places, this.page.plane)] };
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
              if (this.page.asked.index !== one.name) this.change(one.name);
            },
          },
          title(one.name, one.example),
        ),
      ),
    );
    const tabs = byId("tabs"), current = tabs.querySelector("[aria-current]");
    // Not by scrollIntoView: the first Tab would then go on from there.
    if (current) tabs.scrollLeft = current.offsetLeft - tabs.offsetLeft - 8;
    const shown = this.indexes.find((one) => one.name === name);
    document.title = `${title(name, shown?.example ?? false)} – rankfold`;
  }

  /** @param {string} name */
  change(name) {
    history.pushState({}, "", `#${encodeURIComponent(name)}`);
    this.open({ ...nothing(), index: name });
  }
}

/** Where the points of an index are, and their values of a column. @param {api.Info} info @param {string|null} column @param {AbortSignal} [signal] */
async function readMap(info, column, signal) {
  const found = await api.map(info.name, column, signal);
  const places = readPlaces(found);
  const plane = info.layout === "plane" ? await readPlane(info.name, places, signal) : null;
  return { values: /** @type {unknown[]|null} */ (found.values), places, plane };
}
