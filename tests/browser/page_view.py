"""What a user sees on the page, and where."""

import io
import json
from contextlib import contextmanager

import numpy as np
from PIL import Image

MARGIN = 26
"""Pixels around the points of a map that shows everything."""

SETTLED = """before => {
    const root = document.documentElement;
    return root.dataset.state === 'ready' && Number(root.dataset.answers) > before
        && !root.classList.contains('busy');
}"""
PARTS = """rows => rows.map(row => ({
    id: JSON.parse(row.dataset.id),
    move: row.querySelector('.move').textContent,
    score: row.querySelector('.score').textContent,
    value: row.querySelector('.value').textContent,
    other: row.classList.contains('other'),
    says: row.querySelector('.pick').getAttribute('aria-label'),
}))"""


class PageView:
    """The page with its maps and lists."""

    def __init__(self, page):
        self.page = page

    def __getitem__(self, name):
        """Return the part of the page that tests call so."""
        return self.page.get_by_test_id(name)

    def open(self, link="#two-moons"):
        """Open the page and wait for its first answer."""
        self.page.goto(f"/{link}")
        self.wait(0)
        return self

    def wait(self, before):
        """Wait until there are more answers than before, and none is on its way."""
        self.page.wait_for_function(SETTLED, arg=before)

    @contextmanager
    def answered(self):
        """Wait until what is done inside is answered."""
        before = self.answers
        yield
        self.wait(before)

    @property
    def answers(self):
        return self.page.evaluate("() => Number(document.documentElement.dataset.answers)")

    @property
    def link(self):
        return self.page.evaluate("() => location.hash")

    def rows(self, side):
        """Return what a list says, row by row."""
        return self.page.locator(f"#list-{side} > .result").evaluate_all(PARTS)

    def ids(self, side):
        return [row["id"] for row in self.rows(side)]

    def row(self, side, point):
        """Return the row of a point."""
        return self.page.locator(f"#list-{side} > .result[data-id='{json.dumps(point)}']")

    def reach(self, side, point):
        """Return the row of a point, scrolled to where neither maps nor the card cover it."""
        row = self.row(side, point)
        row.evaluate("row => row.scrollIntoView({ block: 'center' })")
        return row

    def query(self):
        """Return the names of the examples."""
        return self.page.locator("#examples > li > span").all_inner_texts()

    def pixels(self, side, places, index):
        """Return where places are on a map that shows everything, from its corner."""
        _, all_places = index.places()
        low, high = np.min(all_places, axis=0), np.max(all_places, axis=0)
        box = self[f"map-{side}"].bounding_box()
        size = np.array([box["width"], box["height"]])
        extent = np.where(high > low, high - low, 1)
        scale = np.min((size - 2 * MARGIN) / extent)
        return size / 2 + (np.asarray(places) - (low + high) / 2) * scale * [1, -1]

    def pixel_of(self, side, point, index):
        """Return where a point is on a map that shows everything."""
        ids, places = index.places()
        return self.pixels(side, places[ids.index(point)], index).tolist()

    def click(self, side, at, **how):
        """Click a map and wait for the answer."""
        with self.answered():
            self[f"map-{side}"].click(position=dict(zip("xy", at, strict=True)), **how)

    def picture(self, side, pointed=False):
        """Return the pixels of a map: rows, columns, and bytes of red, green and blue.

        The mouse is moved away before, unless it should point at something.
        """
        if not pointed:
            self.page.mouse.move(1, 1)
        taken = self[f"map-{side}"].screenshot()
        return np.asarray(Image.open(io.BytesIO(taken)).convert("RGB")).astype(int)

    def colours(self, side, points, index):
        """Return the colours at points."""
        picture = self.picture(side)
        ids, places = index.places()
        chosen = places[[ids.index(point) for point in points]]
        columns, rows = np.rint(self.pixels(side, chosen, index)).astype(int).T
        return picture[rows, columns]


def chroma(colours):
    """Return how far colours are from grey."""
    return np.ptp(np.asarray(colours), axis=-1)


def lone(index, count):
    """Return the points that are farthest from any other on the map, so that a click finds them."""
    ids, places = index.places()
    away = np.linalg.norm(places[:, None] - places[None], axis=-1)
    np.fill_diagonal(away, np.inf)
    return [ids[row] for row in np.argsort(-away.min(axis=1))[:count]]
