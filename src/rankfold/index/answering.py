"""From a query to its answer, and to the reason of a place in it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rankfold.check import InputError
from rankfold.diversity import diverse, n_candidates
from rankfold.explaining import explain
from rankfold.index.asked import Asked
from rankfold.index.keeper import Keeper
from rankfold.index.matching import matching_only, no_ranking, ranked
from rankfold.index.methods import Methods
from rankfold.index.results import Reason
from rankfold.neighbors import LivingEngine
from rankfold.rankers import Ranker
from rankfold.types import Ranking


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
        store = self._keeper.store
        with self._keeper.current() as engine:
            shown = _without_first(self._ranking(asked, engine), asked.offset)
            return store.ids_of(shown.ids), store.payload_of(shown.ids), shown

    def reason(self, asked: Asked, point: Any) -> Reason:
        """Explain the place of a point."""
        store = self._keeper.store
        with self._keeper.current() as engine:
            (slot,) = store.slots_of([point])
            query = asked.query(store, engine.n_features)
            if slot in query.ids:
                raise InputError(
                    f"{point!r} is an example of the query, which is not ranked; ask for another."
                )
            explanation = explain(self._fitted(asked, engine), query, int(slot))
            slots = [slot, *(example.point for example in explanation.examples)]
            for step in explanation.path.steps if explanation.path else ():
                slots += [step.start, step.end]
            known = sorted({int(one) for one in slots if one is not None})
            return Reason(explanation, dict(zip(known, store.ids_of(known), strict=True)))

    def _ranking(self, asked: Asked, engine: LivingEngine) -> Ranking:
        store = self._keeper.store
        matching = None if asked.where is None else store.matching(asked.where)
        query = asked.query(store, engine.n_features)
        if not engine.n_alive:
            return no_ranking()
        ranker = self._fitted(asked, engine)
        length = n_candidates(asked.wanted) if asked.diversity else asked.wanted
        if matching is None:
            ranking = ranked(ranker, query, length, asked.include_query)
        else:
            ranking = matching_only(ranker, query, length, asked.include_query, matching)
        if not asked.diversity or not len(ranking):
            return ranking
        return diverse(engine, ranking, asked.wanted, asked.diversity)

    def _fitted(self, asked: Asked, engine: LivingEngine) -> Ranker:
        n_neighbors = int(self._keeper.store.settings["n_neighbors"])
        return self._methods.fitted(
            asked.method, asked.parameters, engine, n_neighbors, self._keeper
        )


def _without_first(ranking: Ranking, offset: int) -> Ranking:
    """Leave the first results out; what is left is then not proven to be the next best."""
    if not offset:
        return ranking
    solution = replace(ranking.solution, scores=ranking.scores[offset:], certified=False)
    return replace(ranking, ids=ranking.ids[offset:], solution=solution)
