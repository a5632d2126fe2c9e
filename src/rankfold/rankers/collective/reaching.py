"""How many points queries reach on a graph: what falls when the graph falls apart."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import sparse

from rankfold.graph import system_matrix
from rankfold.rankers.parallel import in_order
from rankfold.solvers import DIRECT_LIMIT, DirectSolver, LocalSystem, Start
from rankfold.types import FloatArray, IntArray

SAMPLE, LOCAL_SAMPLE = 300, 100
"""Points that are asked as queries, and how many where each is solved on its own."""

TOL = 1e-3
"""Largest error of a score there."""


def sample_of(live: IntArray, seed: int = 0) -> IntArray:
    """Return some points to ask, always the same."""
    most = SAMPLE if len(live) <= DIRECT_LIMIT else LOCAL_SAMPLE
    return np.sort(np.random.default_rng(seed).permutation(live)[:most])


def median_reach(
    weights: sparse.csr_array, smoothness: float, sample: IntArray, n_jobs: int
) -> float:
    """Return the effective number of points that queries reach, ``sum(f)^2 / sum(f^2)``.

    Examples
    --------
    >>> import numpy as np
    >>> pairs = sparse.csr_array(np.kron(np.eye(2), [[0.0, 1.0], [1.0, 0.0]]))
    >>> round(median_reach(pairs, 100.0, np.arange(4), 1), 2)
    2.0
    """
    n_points = weights.shape[0]
    solve = _direct if n_points <= DIRECT_LIMIT else _local
    found = [np.sum(f) ** 2 / np.sum(f**2) for f in solve(weights, smoothness, sample, n_jobs)]
    return float(np.median(found)) if found else 0.0


def _direct(
    weights: sparse.csr_array, smoothness: float, sample: IntArray, n_jobs: int
) -> Iterator[FloatArray]:
    solver = DirectSolver()
    state = solver.prepare(system_matrix(weights.astype(np.float64), smoothness))
    given = np.zeros((weights.shape[0], len(sample)))
    given[sample, np.arange(len(sample))] = 1.0
    yield from solver.solve(state, given).scores.T


def _local(
    weights: sparse.csr_array, smoothness: float, sample: IntArray, n_jobs: int
) -> Iterator[FloatArray]:
    ones = np.ones(weights.shape[0])
    system = LocalSystem(weights, 2 * smoothness, margin=ones, scale=ones)

    def solve(point: int) -> FloatArray:
        query = Start(clamped=np.array([point]), seeds=np.ones(1))
        return np.append(system.solve(query, TOL).values, 1.0)

    yield from in_order(solve, sample.tolist(), n_jobs, False)
