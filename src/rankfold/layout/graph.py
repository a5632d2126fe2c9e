"""Places from the neighbour graph: who is linked comes to lie together."""

from __future__ import annotations

import sys
import warnings
from importlib.util import find_spec
from typing import Any

import numpy as np
from scipy import sparse

from rankfold.check import MissingExtraError
from rankfold.graph.adaptive import adaptive_weights
from rankfold.graph.symmetric import link
from rankfold.layout.projection import framed
from rankfold.neighbors import LivingEngine
from rankfold.types import FloatArray

FEWEST = 4
"""Points that it takes to have a graph worth drawing."""

JITTER = 1e-3
"""Points that start from one place would never part, and a side of no length cannot be scaled."""


def is_installed() -> bool:
    """Tell whether umap-learn is there, without loading it: that takes seconds."""
    return find_spec("umap") is not None


def check_installed() -> None:
    """Require umap-learn."""
    if not is_installed():
        raise MissingExtraError("umap-learn", "map")


def graph_places(
    engine: LivingEngine, n_neighbors: int, start: FloatArray, progress: bool
) -> FloatArray:
    """Let the points of RAN's graph pull their neighbours near, and push others away.

    This is UMAP's descent on the adaptive weights of RAN. It runs in one thread, since several
    would end elsewhere each time.

    Parameters
    ----------
    engine : LivingEngine
        Without removed points, and with at least `FEWEST`.
    n_neighbors : int
    start : array, shape (n_points, 2)
        Places to begin from.
    progress : bool
        Whether to show a bar on stderr.
    """
    umap = _loaded()
    random = np.random.RandomState(0)
    bar = {"disable": not progress, "file": sys.stderr, "desc": "map", "leave": False}
    a, b = umap.find_ab_params(1.0, 0.1)
    places, _ = umap.simplicial_set_embedding(
        data=None,
        graph=_scaled_graph(engine, n_neighbors),
        n_components=2,
        initial_alpha=1.0,
        a=a,
        b=b,
        gamma=1.0,
        negative_sample_rate=5,
        n_epochs=None,
        init=start + random.normal(scale=JITTER, size=start.shape).astype(np.float32),
        random_state=random,
        metric="euclidean",
        metric_kwds={},
        densmap=False,
        densmap_kwds={},
        output_dens=False,
        parallel=False,
        verbose=False,  # it would print
        tqdm_kwds=bar,
    )
    return framed(places)


def _scaled_graph(engine: LivingEngine, n_neighbors: int) -> sparse.coo_array:
    """Return RAN's graph; its largest weight is one."""
    k = min(n_neighbors, engine.n_points - 2)
    lists = engine.rows(np.arange(engine.n_points), k + 1)
    weights, _, _ = adaptive_weights(lists.sq_distances, k)
    graph = link(lists.indices[:, :k], weights).tocoo()
    graph.data /= graph.data.max()
    return graph


def _loaded() -> Any:
    check_installed()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what else it could use if that were installed
        from umap import umap_
    return umap_
