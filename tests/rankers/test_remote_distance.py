"""Plain distance over an engine whose vectors lie elsewhere."""

import numpy as np
import pytest
from distant_engine import FarEngine
from ran_cases import QUERIES, sheet

from rankfold import Euclidean, Query
from rankfold.neighbors import LivingEngine

MORE = {
    "zero": Query(ids=[7, 3], weights=[1.0, 0.0]),
    "several": Query(ids=[1, 2, 50], weights=[0.2, 1.0, 0.7]),
}


@pytest.mark.parametrize("name", [*QUERIES, *MORE])
@pytest.mark.parametrize("include_query", [False, True])
@pytest.mark.parametrize("top", [1, 2, 9, 60, 99])
def test_answers_are_those_in_memory(name, include_query, top):
    X, query = sheet(60), {**QUERIES, **MORE}[name]
    living = LivingEngine.build(X, "euclidean", 12)
    here = Euclidean().fit(living)
    there = Euclidean().fit(FarEngine(living, tells_alive=True))
    options = {"top": top, "include_query": include_query}
    ours, theirs = (ranker.rank_many([query], **options)[0] for ranker in (there, here))
    np.testing.assert_array_equal(ours.ids, theirs.ids)
    np.testing.assert_allclose(ours.scores, theirs.scores, rtol=1e-12, atol=1e-12)
    assert ours.solution.certified == theirs.solution.certified
    assert ours.solution.bound == theirs.solution.bound


def test_a_search_is_one_exchange_and_asks_nothing_of_all_points():
    engine = FarEngine(LivingEngine.build(sheet(60), "euclidean", 12))
    ranker = Euclidean().fit(engine)
    assert ranker.rank(ids=7, top=5).solution.round_trips == 1
    assert ranker.rank(vectors=[0.3, 0.9, 1.1], top=5).solution.round_trips == 1
    assert engine.round_trips == 2


def test_ties_are_not_certain():
    X = np.array([[0.0], [1.0], [-1.0], [3.0]])
    ranker = Euclidean().fit(FarEngine(LivingEngine.build(X, "euclidean", 3)))
    assert not ranker.rank(ids=0, top=1).solution.certified
    assert ranker.rank(ids=0, top=2).solution.certified


def test_what_a_search_may_miss_is_not_certain():
    engine = FarEngine(LivingEngine.build(sheet(60), "euclidean", 12), exact=False)
    assert not Euclidean().fit(engine).rank(ids=7, top=5).solution.certified
