"""One graph for every query, learned before the first is asked."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from rankfold.graph.adaptive import ClosedForm, candidate_lists, stored_width
from rankfold.neighbors import DynamicEngine, Engine, Learned, Round, live_points
from rankfold.neighbors.exact import DIFFUSE_NEIGHBORS
from rankfold.parallel import in_order
from rankfold.solvers import DIRECT_LIMIT, SOLVERS, Boundary, Effort, System
from rankfold.types import NOBODY, FloatArray, IntArray, Neighbors

WEIGHT = 10.0
"""What a squared difference of one between two profiles adds to the distance, in natural units."""

PROFILE_SMOOTHNESS = 1.0
"""Smoothness of the scores that profiles are made of: how far the surroundings of a point go."""

PROFILE_TOL = 3e-4
"""Largest residual that is left where profiles are solved."""

CANDIDATES = 2 * (DIFFUSE_NEIGHBORS + 1)
"""Length of the lists that learned neighbours are chosen from."""

BLOCK_ROWS = 1024
"""Points that are solved at once."""

SINGLE = float(np.finfo(np.float32).eps)
"""Relative error with which values are kept."""

SAMPLE, LOCAL_SAMPLE = 300, 100
"""Points that are asked as queries, and how many where each is solved on its own."""

TOL = 1e-3
"""Largest error of a score there."""

FEW_NEIGHBORS, SPARSE_NEIGHBORS = 10, 5
"""Where the plain graph has few neighbours, learning begins from a sparser one.

It adds the edges that are missing, but cannot tell false edges from true ones where there are many.
"""


class Attempt(NamedTuple):
    """A way to learn the graph, which is given up where queries reach too little, or too much.

    Parameters
    ----------
    factor : int
        How many times the neighbours of the graph that learning begins from.
    most_rounds : int
    least_reach : float
        Relative to that graph.
    most_share : float
        How far queries may reach, relative to a plain graph of as many neighbours as the
        learned one: what learning must have cut of all that more neighbours join.
    """

    factor: int
    most_rounds: int
    least_reach: float
    most_share: float = float("inf")


ATTEMPTS = (Attempt(1, 3, 0.8), Attempt(2, 1, 1.1, 0.55))
"""What is tried, in this order, until a round is kept."""


class Stage(NamedTuple):
    """How far learning has come: enough to go on from.

    Parameters
    ----------
    attempt : int
        The number of the attempt under way.
    lifted : array, shape (n_points, width)
        The sum of the lifts of its rounds.
    rounds : tuple of Round
        All rounds made, those of earlier attempts among them.
    """

    attempt: int
    lifted: FloatArray
    rounds: tuple[Round, ...]


@dataclass(frozen=True, eq=False)
class Learning:
    """What all rounds share.

    Parameters
    ----------
    candidates : Neighbors
        Plain lists of all points; learned neighbours are taken from them.
    live : array of int
        Points that were not removed.
    n_neighbors : int
        Neighbours in the plain graph.
    smoothness : float
        That of the queries that will be asked.
    attempts : sequence of Attempt
    weight, profile_smoothness, profile_tol : float
    n_jobs : int
    progress : bool
        Whether to show a bar on stderr.
    keep : callable, optional
        Is handed the `Stage` after every round or attempt that may be followed by another.
    """

    candidates: Neighbors
    live: IntArray
    n_neighbors: int
    smoothness: float
    attempts: tuple[Attempt, ...] = ATTEMPTS
    weight: float = WEIGHT
    profile_smoothness: float = PROFILE_SMOOTHNESS
    profile_tol: float = PROFILE_TOL
    n_jobs: int = os.cpu_count() or 1
    progress: bool = False
    keep: Callable[[Stage], None] | None = None

    @property
    def n_start(self) -> int:
        """Neighbours in the graph that learning begins from."""
        few = self.n_neighbors <= FEW_NEIGHBORS
        return min(self.n_neighbors, SPARSE_NEIGHBORS) if few else self.n_neighbors

    def run(self, stage: Stage | None = None) -> Learned:
        """Make rounds until no more is to be gained; begin at a stage, or from nothing."""
        start = self.n_start
        plain = ClosedForm.of(self.candidates, start, len(self.live))
        basis = _Basis(plain.symmetric(), plain.end or 1.0)
        expected = self._reach(basis.graph)
        width = stored_width(self.n_neighbors, len(self.live))
        if stage is None:
            stage = Stage(0, np.zeros(self.candidates.indices.shape), ())
        while stage.attempt < len(self.attempts):
            attempt = self.attempts[stage.attempt]
            n_neighbors = attempt.factor * start
            kept = None
            if self.candidates.width >= 2 * (n_neighbors + 1):  # else there is nothing to choose
                kept, stage = self._rounds(attempt, n_neighbors, basis, expected, stage)
            if kept is not None:
                lists = kept.head(width)
                return Learned(lists, n_neighbors, self.n_neighbors, basis.unit, stage.rounds)
            stage = Stage(stage.attempt + 1, np.zeros_like(stage.lifted), stage.rounds)
            if self.keep is not None and stage.attempt < len(self.attempts):
                self.keep(stage)
        nobody = self.candidates.take(np.empty(0, dtype=np.intp)).head(width)
        return Learned(nobody, self.n_neighbors, self.n_neighbors, 1.0, stage.rounds)

    def _rounds(
        self, attempt: Attempt, n_neighbors: int, basis: _Basis, expected: float, stage: Stage
    ) -> tuple[Neighbors | None, Stage]:
        """Make the rounds of one attempt; return the lists to keep, if any are good enough."""
        number = sum(made.kept for made in stage.rounds)  # earlier attempts have kept none
        kept, graph = None, basis.graph
        if number:
            kept = self._relisted(basis.unit, stage.lifted / number)
            graph = self._graph(kept, n_neighbors)
        as_many = expected
        if n_neighbors > self.n_start:
            as_many = self._reach(self._graph(self.candidates, n_neighbors))
        while number < attempt.most_rounds:
            number += 1
            label = f"round {number} of {attempt.most_rounds}, {n_neighbors} neighbours"
            lifted = stage.lifted + self._lifts(graph, label if self.progress else "")
            lists = self._relisted(basis.unit, lifted / number)
            graph = self._graph(lists, n_neighbors)
            reached = self._reach(graph)
            reach, share = reached / expected, reached / as_many
            good = reach >= attempt.least_reach and share <= attempt.most_share
            made = Round(n_neighbors, number, reach, share, good)
            stage = Stage(stage.attempt, lifted, (*stage.rounds, made))
            if not good:
                break
            kept = lists
            if self.keep is not None and number < attempt.most_rounds:
                self.keep(stage)
        return kept, stage

    def _lifts(self, graph: sparse.csr_array, label: str) -> FloatArray:
        """Return ``||F_i - F_j||^2`` of all candidates: the f-step of every point as a query."""
        found = profiles(graph, self.profile_smoothness, self.profile_tol, self.n_jobs, label)
        return lifts(found, self.candidates.indices, self.n_jobs, label)

    def _relisted(self, unit: float, lifted: FloatArray) -> Neighbors:
        """Sort the candidates by learned distance: what the S-step reads."""
        plain = self.candidates.sq_distances
        absent = self.candidates.indices == NOBODY  # infinitely far already
        lifted = np.where(absent, 0.0, lifted)
        distances = (plain / unit + self.weight * lifted).astype(plain.dtype)
        order = np.lexsort((self.candidates.indices, distances), axis=-1)
        return Neighbors(
            np.take_along_axis(self.candidates.indices, order, 1),
            np.take_along_axis(distances, order, 1),
        )

    def _graph(self, lists: Neighbors, n_neighbors: int) -> sparse.csr_array:
        return ClosedForm.of(lists, n_neighbors, len(self.live)).symmetric()

    def _reach(self, graph: sparse.csr_array) -> float:
        return median_reach(graph, self.smoothness, sample_of(self.live), self.n_jobs)


class _Basis(NamedTuple):
    """The plain graph, and the squared distance that counts as one."""

    graph: sparse.csr_array
    unit: float


def learning_of(
    engine: Engine,
    n_neighbors: int,
    smoothness: float,
    *,
    candidates: Neighbors | None = None,
    progress: bool = False,
    keep: Callable[[Stage], None] | None = None,
) -> Learning:
    """Return the learning of a graph for all points of an engine.

    Parameters
    ----------
    engine : Engine
    n_neighbors : int
        Neighbours in the plain graph.
    smoothness : float
        That of the queries that will be asked.
    candidates : Neighbors, optional
        Lists of all points, ``CANDIDATES`` long; searched by default.
    progress : bool
    keep : callable, optional
        See `Learning`.
    """
    if candidates is None:
        candidates, _ = candidate_lists(engine, n_neighbors, 2, CANDIDATES)
    named = Neighbors(candidates.indices.astype(np.int32, copy=False), candidates.sq_distances)
    live = live_points(engine)
    return Learning(named, live, n_neighbors, smoothness, progress=progress, keep=keep)


class Profiles(NamedTuple):
    """Rows of F, each scaled to length one: how a point is scored by the queries around it.

    Parameters
    ----------
    indptr : array of int, shape (n_points + 1,)
    queries : array of int
        Row i has the entries from ``indptr[i]`` to ``indptr[i + 1]``.
    values : array of float
    bounds : array of float, shape (n_points,)
        No row is further than this from the exact one, in the Euclidean norm.
    """

    indptr: IntArray
    queries: IntArray
    values: FloatArray
    bounds: FloatArray


def profiles(
    weights: sparse.csr_array, smoothness: float, tol: float, n_jobs: int, progress: str = ""
) -> Profiles:
    """Solve the f-step of every point as a query, where it reaches.

    With ``A = I + 2 lambda L`` and ``G = A^-1``, query q gives point i the score
    ``F_iq = G_iq / G_qq``. G is symmetric, so one local solve at i finds row i of G, and its
    diagonal on the way: no array of all pairs is made.

    *The bound.* Push starts from zero and leaves a residual ``0 <= r <= tol``, so ``g`` is
    short of the exact row by ``e = G r >= 0``. A is at least the identity, hence
    ``|e|_2 <= |r|_2``. The rows of G sum to one, hence ``|e|_inf <= tol``: the diagonal is short
    by at most that, and its inverse ``c_q`` too large by at most ``tol c_q^2``. Row i of F is
    therefore off by at most

        max_q c_q |r|_2 + tol |(g_iq c_q^2)_q|_2,

    and scaling a row and its exact one to length one at most doubles the distance, in units of
    its length. Values are kept in single precision, which adds less than eight of its roundings.

    Parameters
    ----------
    weights : sparse array, shape (n_points, n_points)
        W, symmetric.
    smoothness : float
    tol : float
        The largest residual that is left.
    n_jobs : int
    progress : str
        What the bar on stderr says; none if empty.
    """
    from rankfold.graph.kernels import scale, solve  # compiled, loaded when used

    n_points = weights.shape[0]
    spread = 2.0 * smoothness * weights.data.astype(np.float64)
    inverse = 1.0 / (1.0 + np.bincount(
        np.repeat(np.arange(n_points), np.diff(weights.indptr)), spread, n_points
    ))  # fmt: skip

    ends, columns = weights.indptr.astype(np.int64), weights.indices.astype(np.int32, copy=False)

    def solved(block: tuple[int, int]) -> tuple[Any, ...]:
        counts, queries, values, *others = solve(ends, columns, spread, inverse, *block, tol)
        n = int(counts.sum())
        return counts, queries[:n].copy(), values[:n].copy(), *others

    parts = list(in_order(solved, _blocks(n_points), n_jobs, bool(progress), progress))
    counts, queries, values, diagonal, missing = (
        np.concatenate([part[place] for part in parts]) for place in range(5)
    )
    del parts
    indptr = np.zeros(n_points + 1, dtype=np.int64)
    np.cumsum(counts, out=indptr[1:])
    bounds = scale(indptr, queries, values, diagonal, missing, tol)
    return Profiles(indptr, queries, values, bounds + 8 * SINGLE)


def lifts(found: Profiles, indices: IntArray, n_jobs: int, progress: str = "") -> FloatArray:
    """Return ``||F_i - F_j||^2`` for every candidate j of every point i; inf where there is none.

    Each is off by at most ``(b_i + b_j) (2 ||F_i - F_j|| + b_i + b_j)`` with the bounds b.
    """
    from rankfold.graph.kernels import lift

    def lifted(block: tuple[int, int]) -> FloatArray:
        rows: FloatArray = lift(found.indptr, found.queries, found.values, indices, *block)
        return rows

    rows = in_order(lifted, _blocks(len(indices)), n_jobs, bool(progress), progress)
    return np.concatenate(list(rows))


def _blocks(n_points: int) -> list[tuple[int, int]]:
    starts = range(0, n_points, BLOCK_ROWS)
    return [(first, min(first + BLOCK_ROWS, n_points)) for first in starts]


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
    name = "direct" if weights.shape[0] <= DIRECT_LIMIT else "region"
    solver = SOLVERS[name](System.ran(weights.astype(np.float64), smoothness))

    def reach(point: int) -> float:
        query = Boundary(clamped=np.array([point]), values=np.ones(1))
        (solution,) = solver.solve([query], [Effort(TOL)])
        return float(np.sum(solution.scores) ** 2 / np.sum(solution.scores**2))

    found = list(in_order(reach, sample.tolist(), n_jobs, False))
    return float(np.median(found)) if found else 0.0


def kept_by(engine: Engine) -> Learned | None:
    """Return the graph that an engine keeps for all queries, if there is one."""
    return engine.learned if isinstance(engine, DynamicEngine) else None


def graph_for_all(
    engine: Engine, n_neighbors: int, smoothness: float, candidates: Neighbors | None
) -> Learned:
    """Take over the graph that an engine keeps for so many neighbours, or learn one.

    ``candidates`` are as in `learning_of`.
    """
    kept = kept_by(engine)
    if kept is not None and kept.fits(n_neighbors, engine.n_alive):
        return kept
    return learning_of(engine, n_neighbors, smoothness, candidates=candidates).run()


def can_stay(learned: Learned, engine: Engine, n_neighbors: int) -> bool:
    """Tell whether a graph stands for an engine that has changed, and no kept one comes first."""
    kept = kept_by(engine)
    if kept is not None and kept.fits(n_neighbors, engine.n_alive):
        return kept is learned
    return learned.fits(n_neighbors, engine.n_alive)
