"""A graph of your own: a town by a river, where neighbours are those whom one can walk to."""

from pathlib import Path
from typing import Any

import numpy as np
from _frame import draw_answer, mark_query, new_panels, run, save
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from scipy.sparse import csr_array, triu
from scipy.sparse.csgraph import shortest_path
from sklearn.neighbors import radius_neighbors_graph

from rankfold import RAN, Distance
from rankfold.drawing import INK
from rankfold.types import FloatArray

NEAR, BRIDGE, RADIUS, STEP = 220, 1.2, 0.125, 0.062
WATER, PATH = "#d3e7f5", "#bcc5d0"


def river(x: Any) -> Any:
    """Return how far north the middle of the river is."""
    return 0.5 + 0.14 * np.sin(3.2 * x)


def make_town(seed: int = 0) -> tuple[FloatArray, csr_array]:
    """Return places on both banks, and the distances between those that a path joins."""
    rng = np.random.default_rng(seed)
    x, y = np.meshgrid(np.arange(STEP / 2, 2, STEP), np.arange(STEP / 2, 1, STEP))
    places = np.column_stack([x.ravel(), y.ravel()])
    places = places + STEP * rng.uniform(-0.3, 0.3, size=places.shape)
    north, bridge = places[:, 1] - river(places[:, 0]), np.abs(places[:, 0] - BRIDGE) < STEP
    kept = bridge | (np.abs(north) > 0.045)
    places, north, bridge = places[kept], north[kept] > 0, bridge[kept]
    paths = radius_neighbors_graph(places, RADIUS, mode="distance").tocoo()
    start, end = paths.coords
    dry = (north[start] == north[end]) | (bridge[start] & bridge[end])
    return places, csr_array((paths.data[dry], (start[dry], end[dry])), shape=paths.shape)


def main(out: Path) -> dict[str, float]:
    """Rank places by straight lines, and by RAN on the graph of paths."""
    places, paths = make_town()
    query = int(np.argmin(np.hypot(*(places - (0.42, 0.52)).T)))
    walk = np.argsort(shortest_path(paths, indices=query), kind="stable")[1:]
    answers = {
        "By a straight line": Distance().fit(places).rank(query).indices,
        "By RAN, on the graph of paths": RAN(metric="precomputed").fit(paths).rank(query).indices,
    }
    shared = {name: len(set(ids[:NEAR]) & set(walk[:NEAR])) for name, ids in answers.items()}
    figure, panels = new_panels(
        "What is near, when there is a river?",
        f"The first {NEAR} places, dark blue first. Orange: not among the {NEAR} nearest on foot.",
        [(name, f"{shared[name]} of {NEAR} are right") for name in answers], height=640,
    )  # fmt: skip
    for axes, ids in zip(panels, answers.values(), strict=True):
        draw_answer(axes, places, ids[:NEAR], np.isin(ids[:NEAR], walk[:NEAR]), size=32)
        draw_town(axes, places, paths)
        mark_query(axes, places[query])
    save(figure, out, "own_graph")
    lengths = np.diff(paths.indptr)
    print(f"{len(places)} places with {lengths.min()} to {lengths.max()} neighbours")
    for name, count in shared.items():
        print(f"{name}: {count} of the {NEAR} nearest on foot")
    plain, shape = shared.values()
    return {"plain": plain, "ran": shape, "shortest": lengths.min(), "longest": lengths.max()}


def draw_town(axes: Axes, places: FloatArray, paths: csr_array) -> None:
    """Draw the river, and a line for every path."""
    x = np.linspace(-0.02, 2.02, 200)
    axes.fill_between(x, river(x) - 0.04, river(x) + 0.04, color=WATER, linewidth=0)
    ends = np.stack(triu(paths).coords, axis=1)
    axes.add_collection(LineCollection(list(places[ends]), color=PATH, linewidth=0.4))
    axes.annotate(
        "bridge", (BRIDGE, river(BRIDGE)), (46, 4), textcoords="offset points", ha="center",
        color=INK, fontsize=12, zorder=5, arrowprops={"arrowstyle": "-", "color": INK},
    )  # fmt: skip
    axes.set(aspect="equal", xlim=(-0.02, 2.02), ylim=(-0.02, 1.02))


if __name__ == "__main__":
    run(main)
