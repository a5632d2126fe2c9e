"""``rankfold warm-up``: compile ahead what the first queries would wait for."""

from __future__ import annotations

import logging
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from os.path import commonpath
from typing import Any

import click

from rankfold.cli.errors import Command, interruptible

EXAMPLES = """\b
Examples:
  rankfold warm-up
  NUMBA_CACHE_DIR=/var/cache/rankfold rankfold warm-up
"""


@click.command("warm-up", cls=Command, epilog=EXAMPLES)
def warm_up() -> None:
    """Compile all code ahead of the first query.

    For images of containers and for continuous integration. Compiled code is kept in the folder
    that NUMBA_CACHE_DIR names, or beside the package; what is there is not compiled again.
    """
    from rankfold.compilation import TOLD

    click.echo(TOLD, err=True)
    with interruptible(), ProcessPoolExecutor(len(PARTS), get_context("spawn")) as processes:
        folders = [folder for part in processes.map(_compiled, PARTS) for folder in part]
    click.echo(f"Everything is compiled; it is kept in {commonpath(folders)}.")


def _compiled(name: str) -> list[str]:
    """Compile one part, in a process of its own; return where it is kept."""
    logging.getLogger("rankfold").setLevel(logging.ERROR)  # it was told already
    return sorted({kernel.stats.cache_path for kernel in PARTS[name]()})


def small_graph(dtype: Any) -> Any:
    """Return a path of four points."""
    import numpy as np
    from scipy import sparse

    ones = np.ones(3, dtype=dtype)
    return sparse.diags_array([ones, ones], offsets=[-1, 1], dtype=dtype).tocsr()


def region_queries() -> list[Any]:
    """Answer a query by a region, for weights of either precision."""
    import numpy as np

    from rankfold.solvers import Boundary, Effort, RegionSolver, System, levels

    query = Boundary(clamped=np.array([0]), values=np.ones(1), left_out=np.array([0]))
    for dtype in (np.float32, np.float64):
        solver = RegionSolver(System.ran(small_graph(dtype), 1.0), patience=np.inf)
        list(solver.solve([query], [Effort(1e-6, top=1)]))
    return [levels.answer]


def all_else() -> list[Any]:
    """Go on by gradients; link graphs; learn one, and one for a query; measure."""
    import numpy as np

    from rankfold.graph import collective, symmetric
    from rankfold.graph import kernels as graph_kernels
    from rankfold.neighbors import kernels
    from rankfold.rankers import blend, region_steps
    from rankfold.rankers.blend import BlendArrays
    from rankfold.rankers.graph_step import GraphStep, IncomingEdges
    from rankfold.rankers.ordering import HORIZONS, HUBNESS, ROUNDING
    from rankfold.rankers.region_steps import RegionSteps
    from rankfold.solvers import Boundary, RegionSolver, System, gradients, memory
    from rankfold.solvers.arrays import NOT_BEGUN, Batch
    from rankfold.types import Neighbors, Query, Solution

    batch = Batch.of([Boundary()], [1], [(1, 1)])
    lists = np.array([[1, 2], [0, 2], [1, 3], [2, 1]], dtype=np.int32)
    for dtype in (np.float32, np.float64):
        graph, weights = small_graph(dtype), np.ones((4, 2), dtype=dtype)
        solver = RegionSolver(System.ran(graph, 1.0))
        work = solver._workspaces.take()
        memory.typed(solver.arrays, work)
        gradients.polish(solver.arrays, work, batch, 0, NOT_BEGUN, 1e-6)
        gradients.solve_whole(solver.arrays, work, batch, 0, NOT_BEGUN, 1e-6, 1.0)
        symmetric.link(lists, weights)
        stored, one = Neighbors(lists, np.ones((4, 2))), np.array([0])
        edges = IncomingEdges(graph, 0.0, 0.0)
        steps = RegionSteps(
            GraphStep(1, 1.0, 1.0, 1.0, "own", "stored"), stored, (edges, edges),
            np.full(4, -1, dtype=np.int32), Query(one, np.empty((0, 1)), np.ones(1)),
            stored.take(one[:0]), Solution(one, np.ones(1), 0.0), 1e-6,
        )  # fmt: skip
        steps.learn_scores(steps.first, Solution(one, np.ones(1), 0.0))
        steps.objective(steps.first, None)
    arrays = BlendArrays.of(one, np.ones(1), one + 1, np.ones(1), np.ones(4), 1)
    blend.best_blended(arrays, 1, 1, 1, 1, 0, 0.0, False, 1.0, HORIZONS, HUBNESS, ROUNDING)
    found = collective.profiles(small_graph(np.float64), 1.0, 1e-3, n_jobs=1)
    collective.lifts(found, lists, n_jobs=1)
    points, rows = np.ones((4, 2), dtype=np.float32), np.array([[1, 2]])
    kernels.refine(points, points[:1], rows, None, 1)
    kernels.sq_distances_to(points, points[0])
    kernels.sq_distances_among(points, rows[0], points[0])
    kernels.rough_sq_distances_to(points, points[0])
    modules = (blend, gradients, graph_kernels, kernels, region_steps)
    named = [value for module in modules for value in vars(module).values()]
    return [value for value in named if hasattr(value, "stats") and value.stats.cache_path]


PARTS = {"region queries": region_queries, "all else": all_else}
"""Parts that are compiled at the same time, each function in one of them.

Numba's cache would mix up types of one function that two processes keep there at once.
"""
