"""Warnings name the line that asked, through however many calls it went."""

import warnings

import numpy as np
import pytest
from ran_cases import RAN
from sklearn.exceptions import ConvergenceWarning

from rankfold import ManifoldRanking, Query

X = np.random.default_rng(0).normal(size=(300, 3))
ASKED = {
    "rank": lambda ranker: ranker.rank(3, top=5),
    "rank_many": lambda ranker: ranker.rank_many([3, Query(indices=[4, 5])], top=5),
    "search": lambda ranker: ranker.search(k=5),
}


@pytest.mark.parametrize("asked", list(ASKED))
@pytest.mark.parametrize("solver", ["region", "direct"])
def test_a_warning_of_a_query_points_at_the_caller(asked, solver):
    ranker = RAN(5, 3.0, max_iter=2, guard=False, tol=1e-9, solver=solver).fit(X)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ASKED[asked](ranker)
    caught = [one for one in caught if one.category is ConvergenceWarning]
    assert caught
    assert {one.filename for one in caught} == {__file__}


def test_a_warning_of_another_method_points_at_the_caller():
    ranker = ManifoldRanking(0.999999, solver="iteration", max_iter=2).fit(X)
    with pytest.warns(ConvergenceWarning) as caught:
        ranker.rank(3)
    assert caught[0].filename == __file__
