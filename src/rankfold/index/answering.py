"""From a query to its answer, and to the reason of a place in it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from rankfold.check import InputError, about
from rankfold.diversity import diverse, n_candidates
from rankfold.explaining import explain
from rankfold.index.asked import Asked
from rankfold.index.keeper import Keeper
from rankfold.index.matching import Matching, no_ranking, ranked
from rankfold.index.methods import Methods
from rankfold.index.results import Reason
from rankfold.neighbors import Engine, VectorEngine
from rankfold.rankers import RANKERS, Euclidean, Ranker
from rankfold.types import Query, Ranking

OF_A_QUERY = ("budget", "fusion")
"""Parameters that change nothing about what is fitted."""


class Answering:
    """Answers queries in the state that was committed last.

    Parameters
    ----------
    keeper : Keeper
    """

    def __init__(self, keeper: Keeper) -> None:
        self._keeper, self._methods = keeper, Methods()

    def answer(self, asked: Asked) -> tuple[list[Any], dict[str, list[Any]], Ranking]:
        """Return ids and payload of the results, and the ranking of their slots."""
        with self._keeper.current() as engine:
            shown = _without_first(self._ranking(asked, engine), asked.offset)
            ids, payload = self._keeper.store.points_of(shown.ids)
            return ids, payload, shown

    def reason(self, asked: Asked, point: Any) -> Reason:
        """Explain the place of a point."""
        with self._keeper.current() as engine:
            store = self._keeper.store
            (slot,) = store.slots_of([point])
            query = asked.query(store, engine.n_features)
            if slot in query.ids:
                raise InputError(
                    f"{point!r} is an example of the query, which is not ranked; ask for another."
                )
            ranker, weight = self._fitted(asked, engine), Euclidean.negative_weight
            explanation = explain(ranker, query, int(slot), negative_weight=weight)
            slots = [slot, *(example.point for example in explanation.examples)]
            for step in explanation.path.steps if explanation.path else ():
                slots += [step.start, step.end]
            known = sorted({int(one) for one in slots if one is not None})
            return Reason(explanation, dict(zip(known, store.ids_of(known), strict=True)))

    def _ranking(self, asked: Asked, engine: VectorEngine) -> Ranking:
        store = self._keeper.store
        with about("where"):
            matching = None if asked.where is None else Matching.of(store, asked.where)
        query = asked.query(store, engine.n_features)
        if not engine.n_alive:
            return no_ranking()
        ranker = self._fitted(asked, engine)
        length = n_candidates(asked.wanted) if asked.diversity else asked.wanted
        if matching is None:
            ranking = ranked(ranker, query, length, asked.include_query)
        else:
            ranking = matching.best(ranker, query, length, asked.include_query)
        if not asked.diversity or not len(ranking):
            return ranking
        return with_diversity(engine, ranking, query, asked)

    def fitted(self, method: str, parameters: dict[str, Any], engine: VectorEngine) -> Ranker:
        """Return the ranker that answers queries by a method; inside of `Keeper.current`."""
        n_neighbors = int(self._keeper.store.settings["n_neighbors"])
        return self._methods.fitted(method, parameters, engine, n_neighbors, self._keeper)

    def _fitted(self, asked: Asked, engine: VectorEngine) -> Ranker:
        """Return a ranker; queries that differ in budget or fusion share what was fitted."""
        shared, known = dict(asked.parameters), RANKERS[asked.method]().get_params(deep=False)
        own = {name: shared.pop(name) for name in OF_A_QUERY if name in shared and name in known}
        ranker = self.fitted(asked.method, shared, engine)
        with about("parameters"):
            if "budget" in own:
                ranker = ranker.with_budget(own["budget"])
            if "fusion" in own:
                ranker = ranker.with_fusion(own["fusion"])
        return ranker


def with_diversity(engine: Engine, ranking: Ranking, query: Query, asked: Asked) -> Ranking:
    """Choose diverse results; the query's own points stay first or last, as they are by rule."""
    own = np.isin(ranking.ids, query.ids)
    leading = own & (np.cumsum(~own) == 0)
    if own.all():
        return _some(ranking, slice(0, asked.wanted))
    wanted = max(1, asked.wanted - int(leading.sum()))
    chosen = diverse(engine, _some(ranking, ~own), wanted, asked.diversity)
    first, last = (ranking.solution.take(places) for places in (leading, own & ~leading))
    whole = first.joined(chosen.solution).joined(last).take(slice(0, asked.wanted))
    return replace(chosen, solution=replace(whole, certified=False))


def _some(ranking: Ranking, places: Any) -> Ranking:
    """Return some results, which are then not proven to be the best."""
    return replace(ranking, solution=ranking.solution.take(places, certified=False))


def _without_first(ranking: Ranking, offset: int) -> Ranking:
    """Leave the first results out."""
    return _some(ranking, slice(offset, None)) if offset else ranking
