"""An index of many points keeps its graph, which answers as the one that is made of its lists."""

import numpy as np
import pytest
from index_cases import backend_of

from rankfold import Index
from rankfold.errors import InputError, StorageError
from rankfold.index import build
from rankfold.neighbors import check_state
from rankfold.storage import Store

X = np.random.default_rng(4).normal(size=(400, 3))
ASKED = {"solver": "region", "budget": None, "top": 20}


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.setattr(build, "FEW_LISTS", 100)
    Index.build(X[:300], path=tmp_path / "index", n_neighbors=5).close()
    return tmp_path / "index"


def change(index):
    index.add(X[300:330])
    index.remove(list(range(10, 25)))
    index.update([40, 41], vectors=X[330:332])


def check_same(index, made):
    """Require the answers of an index whose graph is made of its lists."""
    for query in (0, 5, 200, 310):
        if query in index:
            ours, theirs = index.query(query, **ASKED), made.query(query, **ASKED)
            bound = ours.ranking.solution.bound + theirs.ranking.solution.bound
            assert set(ours.ids) == set(theirs.ids)
            assert np.abs(np.sort(ours.scores) - np.sort(theirs.scores)).max() <= bound


def graph_of(index):
    with backend_of(index).current() as engine:
        return engine.graph


@pytest.mark.parametrize("changed", ["never", "before", "while open", "merged"])
def test_answers_are_those_of_a_graph_made_of_the_lists(path, changed):
    with Index.build(X[:300], n_neighbors=5) as made:
        if changed == "before":
            with Index.open(path, write=True) as index:
                change(index)
        with Index.open(path, write=True) as index:
            if changed in ("while open", "merged"):
                index.query(0, **ASKED)
                change(index)
            if changed == "merged":
                index.save()
            if changed != "never":
                change(made)
            with backend_of(made).current() as engine:
                engine.graph = None
            assert graph_of(index) is not None
            check_same(index, made)


def test_it_belongs_to_one_number_of_neighbours(path):
    with Index.open(path) as index, Index.build(X[:300], n_neighbors=7) as made:
        found = index.query(0, n_neighbors=7, **ASKED)
        assert set(found.ids) == set(made.query(0, **ASKED).ids)


def test_a_copy_keeps_it_and_few_points_need_none(path, tmp_path, monkeypatch):
    with Index.open(path) as index:
        index.copy(tmp_path / "copy")
    with Index.open(tmp_path / "copy") as copy:
        assert graph_of(copy) is not None
    monkeypatch.undo()
    with Index.build(X) as few:
        assert graph_of(few) is None


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("graph_indices", 300, "'graph_indices' holds numbers beyond"),
        ("graph_weights", -1.0, "'graph_weights' holds NaN or negative"),
        ("graph_weights", np.inf, "'graph_weights' holds NaN or infinity"),
        ("graph_starts", 7, "'graph_starts' does not delimit the rows of 'graph_indices'"),
        ("graph_indices", 0, "'graph_indices' joins a point to itself"),
        ("graph_indices", 299, "'graph_weights' is not symmetric: a weight differs"),
        ("graph_weights", 0.123, "'graph_weights' is not symmetric: a weight differs"),
    ],
)
def test_a_graph_that_is_none_is_refused(path, name, value, message):
    with Store.open(path) as store:
        arrays, settings = dict(store.arrays), store.settings["engine"]
    arrays[name] = np.array(arrays[name])
    arrays[name][0] = value
    with pytest.raises(ValueError, match=message):
        check_state(arrays, settings)


@pytest.mark.parametrize("kind", ["one way", "twice one way", "too heavy"])
def test_a_graph_on_which_a_query_could_go_on_for_ever_is_refused(path, kind):
    with Store.open(path) as store:
        arrays, settings = dict(store.arrays), store.settings["engine"]
    check_state(arrays, settings)
    part = {name: np.array(arrays[name]) for name in arrays if name.startswith("graph_")}
    message = "is not symmetric"
    if kind == "too heavy":
        part["graph_weights"] *= 1e30
        message = "holds weights above 1"
    else:
        times = 1 if kind == "one way" else 2
        for name, more in (("graph_indices", [0] * times), ("graph_weights", [0.5] * times)):
            part[name] = np.append(part[name], np.array(more, dtype=part[name].dtype))
        part["graph_starts"][-1] += times
    with pytest.raises(InputError, match=message):
        check_state({**arrays, **part}, settings)


def test_missing_rows_are_refused(path):
    (path / "segments" / "graph_weights-1.npy").unlink()
    with pytest.raises(StorageError, match="missing"):
        Index.open(path)
