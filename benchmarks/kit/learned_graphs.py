"""Graphs for all queries, learned in one way or another, with no guard unless asked for."""

from dataclasses import replace
from math import inf

import numpy as np
from scipy import sparse

from rankfold.graph import ClosedForm
from rankfold.graph.adaptive import symmetrize
from rankfold.graph.collective import Attempt, learning_of, lifts, profiles
from rankfold.types import NOBODY, Neighbors

SMOOTHNESS = 30.0


class Workshop:
    """The candidates of a data set, and the graphs that are made of them."""

    def __init__(self, engine, n_neighbors, smoothness=SMOOTHNESS):
        self.learning = learning_of(engine, n_neighbors, smoothness)
        self.n_neighbors, self.n_points = n_neighbors, engine.n_points
        self.plain_form = ClosedForm.of(self.learning.candidates, n_neighbors)
        self.plain = self.plain_form.symmetric()

    def allows(self, factor):
        """Return whether there are candidates enough for so many times the neighbours."""
        return self.learning.candidates.width >= 2 * (factor * self.n_neighbors + 1)

    def guarded(self, **settings):
        """Return the closed form of what the library learns, and of how many rounds it is."""
        found = replace(self.learning, **settings).run()
        return self._form(found), found.n_rounds

    def unguarded(self, factor=1, rounds=3, **settings):
        """Return the closed form after so many rounds, however little queries reach on it."""
        attempts = (Attempt(factor, rounds, -inf),)
        return self._form(replace(self.learning, attempts=attempts, **settings).run())

    def _form(self, found):
        if not found.n_rounds:
            return self.plain_form
        return ClosedForm.of(found.lists, found.n_neighbors)

    def with_last_lift(self, rounds):
        """Return the graph where every round forgets the lifts of those before."""
        graph = self.plain
        for _ in range(rounds):
            graph = symmetrize(self._affinity(self._lifts(graph)))
        return graph

    def with_half_steps(self, rounds):
        """Return the graph where every round goes half the way from its S to the new one."""
        affinity = self.plain_form.affinity(self.n_points)
        for _ in range(rounds):
            new = self._affinity(self._lifts(symmetrize(affinity)))
            affinity = sparse.csr_array((affinity + new) / 2)
        return symmetrize(affinity)

    def with_mean_affinity(self, rounds):
        """Return the graph of the mean S of all rounds, the plain one among them."""
        mean = self.plain_form.affinity(self.n_points)
        for number in range(1, rounds + 1):
            new = self._affinity(self._lifts(symmetrize(mean)))
            mean = sparse.csr_array((number * mean + new) / (number + 1))
        return symmetrize(mean)

    def _lifts(self, graph):
        settings = self.learning
        found = profiles(graph, settings.profile_smoothness, settings.profile_tol, settings.n_jobs)
        return lifts(found, settings.candidates.indices, settings.n_jobs)

    def _affinity(self, lifted):
        near = self.learning.candidates
        distances = near.sq_distances / self.plain_form.end + self.learning.weight * lifted
        distances = np.where(near.indices == NOBODY, inf, distances)
        order = np.lexsort((near.indices, distances), axis=-1)
        lists = Neighbors(
            np.take_along_axis(near.indices, order, 1), np.take_along_axis(distances, order, 1)
        )
        return ClosedForm.of(lists, self.n_neighbors).affinity(self.n_points)
