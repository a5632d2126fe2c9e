"""Rounds of learning one graph for all queries, and when to stop."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import sparse

from rankfold.neighbors import Engine, Learned, Round, live_points
from rankfold.neighbors.dimension import DIFFUSE_NEIGHBORS
from rankfold.rankers.candidates import candidate_lists, stored_width
from rankfold.rankers.closed_form import ClosedForm
from rankfold.rankers.collective.profiles import lifts, profiles
from rankfold.rankers.collective.reaching import median_reach, sample_of
from rankfold.types import NOBODY, FloatArray, IntArray, Neighbors

WEIGHT = 10.0
"""What a squared difference of one between two profiles adds to the distance, in natural units."""

PROFILE_SMOOTHNESS = 1.0
"""Smoothness of the scores that profiles are made of: how far the surroundings of a point go."""

PROFILE_TOL = 3e-4
"""Largest residual that is left where profiles are solved."""

CANDIDATES = 2 * (DIFFUSE_NEIGHBORS + 1)
"""Length of the lists that learned neighbours are chosen from."""


class Attempt(NamedTuple):
    """A way to learn the graph, which is given up where queries reach too little, or too much.

    Parameters
    ----------
    factor : int
        How many times the neighbours of the plain graph.
    most_rounds : int
    least_reach : float
        Relative to the plain graph.
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

    def run(self, stage: Stage | None = None) -> Learned:
        """Make rounds until no more is to be gained; begin at a stage, or from nothing."""
        plain = ClosedForm.of(self.candidates, self.n_neighbors, len(self.live))
        basis = _Basis(plain.symmetric(), plain.end or 1.0)
        expected = self._reach(basis.graph)
        width = stored_width(self.n_neighbors, len(self.live))
        if stage is None:
            stage = Stage(0, np.zeros(self.candidates.indices.shape), ())
        while stage.attempt < len(self.attempts):
            attempt = self.attempts[stage.attempt]
            n_neighbors = attempt.factor * self.n_neighbors
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
        if n_neighbors > self.n_neighbors:
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
