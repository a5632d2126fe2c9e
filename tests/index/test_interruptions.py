"""What is stopped half-way, or comes at the same time, leaves nothing wrong and loses nothing."""

import threading

import numpy as np
import pytest

from rankfold import Index
from rankfold.datasets.synthetic import sheets
from rankfold.graph import symmetric

X = sheets(300, n_sheets=3).X


def test_no_change_is_lost_while_an_index_moves(tmp_path):
    index, added, failed, moved = Index.build(X), [], [], threading.Event()

    def add_until_moved():
        while not moved.is_set():
            name = f"new {len(added)}"
            try:
                index.add(X[:1] + 0.01, ids=[name])
            except Exception as error:
                failed.append(error)
            added.append(name)

    adding = threading.Thread(target=add_until_moved)
    adding.start()
    for place in range(5):
        index.save(tmp_path / f"place {place}")
    moved.set()
    adding.join()
    index.close()
    assert not failed
    assert added
    with Index.open(tmp_path / "place 4") as opened:
        assert opened.ids[len(X) :] == added


def test_a_follow_that_is_interrupted_is_made_up_for(monkeypatch):
    with Index.build(X) as index:
        index.query(0, solver="region")
        index.remove(list(range(40, 60)))

        def interrupted(*_):
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(symmetric, "relink", interrupted)
            with pytest.raises(KeyboardInterrupt):
                index.query(0, solver="region")
        found = index.query(0, solver="region", top=50)
        kept = np.delete(np.arange(300), np.arange(40, 60))
        with Index.build(X[kept], ids=kept.tolist()) as anew:
            expected = anew.query(0, solver="region", top=50)
        bound = found.ranking.solution.bound + expected.ranking.solution.bound
        assert set(found.ids) == set(expected.ids)
        assert np.abs(np.sort(found.scores) - np.sort(expected.scores)).max() <= bound


@pytest.mark.parametrize("n_neighbors", [9, 30])
def test_a_query_with_its_own_number_of_neighbours_follows_changes(n_neighbors):
    settings = {"solver": "region", "n_neighbors": n_neighbors, "top": 60}
    with Index.build(X) as index:
        index.query(0, **settings)
        index.remove(list(range(5, 45)))
        found = index.query(0, **settings)
        kept = np.delete(np.arange(300), np.arange(5, 45))
        with Index.build(X[kept], ids=kept.tolist()) as anew:
            expected = anew.query(0, **settings)
        bound = found.ranking.solution.bound + expected.ranking.solution.bound
        scores = dict(zip(expected.ids, expected.scores, strict=True))
        assert set(found.ids) == set(scores)
        assert max(abs(scores[name] - score) for name, score in zip(
            found.ids, found.scores, strict=True)) <= bound  # fmt: skip
