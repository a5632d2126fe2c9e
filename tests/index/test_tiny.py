"""Indexes of next to nothing."""

import numpy as np
import pytest
from index_cases import Expected, check_holds, payload, vectors

from rankfold import RANKERS, Index


@pytest.mark.one_in(3)
@pytest.mark.parametrize("method", RANKERS)
@pytest.mark.parametrize("n", [1, 2, 3, 5])
@pytest.mark.parametrize("alike", [True, False])
def test_few_points(method, n, alike):
    X = np.ones((n, 3)) if alike else np.random.default_rng(n).normal(size=(n, 3))
    with Index.build(X) as index:
        assert set(index.query(0, method=method).ids) == set(range(1, n))
        assert set(index.query(0, method=method, include_query=True).ids) == set(range(n))
        found = index.query(vectors=[1.0, 2.0, 3.0], method=method)
        assert set(found.ids) == set(range(n))
        assert np.isfinite(found.scores).all()
        diverse = index.query(vectors=[1.0, 2.0, 3.0], method=method, diversity=1.0)
        assert set(diverse.ids) == set(range(n))
        if n > 1:
            assert index.query(0, method=method).explain(1).to_dict()["point"] == 1


@pytest.mark.one_in(3)
@pytest.mark.parametrize("method", RANKERS)
@pytest.mark.parametrize("merged", [True, False])
def test_all_points_leave_and_others_come(method, merged):
    rng = np.random.default_rng(0)
    X, columns, expected = vectors(rng, 6), payload(rng, 6), Expected()
    with Index.build(X, list("abcdef"), columns) as index:
        index.remove(list("abcdef"))
        if merged:
            index.save()
        assert index.ids == []
        assert len(index) == 0
        found = index.query(vectors=[1.0, 2.0, 3.0], method=method, where="price > 0")
        assert (found.ids, list(found.scores), found.rows()) == ([], [], [])
        assert index.query(vectors=list(X), method=method, diversity=0.5).ids == []
        for place, name in enumerate("abcdef"):
            column = {key: values[place : place + 1] for key, values in columns.items()}
            index.add(X[place], name, column)
            expected.add([name], X[place : place + 1], column)
            others = set("abcdef"[:place])
            assert set(index.query(name, method=method).ids) == others
            check_holds(index, expected)


def test_copies_that_come_and_go():
    rng = np.random.default_rng(0)
    expected, columns = Expected(), payload(rng, 12)
    expected.add(list(range(12)), np.ones((12, 3)), columns)
    with Index.build(np.ones((12, 3)), payload=columns) as index:
        for gone in (0, 7, 11):
            index.remove(gone)
            expected.remove([gone])
            check_holds(index, expected)
        index.update([1, 2], vectors=np.ones((2, 3)))
        expected.move([1, 2], np.ones((2, 3)))
        check_holds(index, expected)
        assert index.query(3, method="distance").ids == [4, 5, 6, 8, 9, 10, 1, 2]
        assert set(index.query(3).ids) == {4, 5, 6, 8, 9, 10, 1, 2}
