"""Changes are made completely or not at all."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from index_cases import Expected, backend_of, built, check_holds, payload, vectors

from rankfold import Index, InputError
from rankfold.index import backend
from rankfold.neighbors import DynamicEngine

NEW = vectors(np.random.default_rng(9), 4)


def test_numbers_go_on_from_the_largest():
    with Index.build(NEW) as index:
        index.update(1, vectors=NEW[0] + 1)
        index.add(NEW[:2])
        assert index.ids == [0, 2, 3, 1, 4, 5]
        index.add(NEW[:1], ids=["name"])
        index.add(NEW[:1], ids=[90])
        index.remove(2)
        index.add(NEW[0])
        assert index.ids == [0, 3, 1, 4, 5, "name", 90, 91]


def test_ids_of_their_own_do_not_go_on():
    index, expected = built()
    with index:
        with pytest.raises(InputError, match="give ids"):
            index.add(NEW)
        check_holds(index, expected)


def test_payload_that_is_left_out_is_missing():
    index, expected = built()
    with index:
        index.add(NEW[0], ids="new", payload={"color": ["red"]})
        row = {"price": None, "size": None, "color": "red", "sold": None}
        expected.add(["new"], NEW, {name: [value] for name, value in row.items()})
        check_holds(index, expected)


def test_whole_numbers_become_others(tmp_path):
    index, expected = built(path=tmp_path / "index")
    index.update([3, "p2"], payload={"price": [0.5, None]})
    expected.payload[3]["price"], expected.payload["p2"]["price"] = 0.5, None
    check_holds(index, expected)
    assert index.columns["price"] == "number"
    index.close()
    with Index.open(tmp_path / "index") as again:
        check_holds(again, expected)
        assert again.query(0, where="price = 0.5").ids == [3]


def test_payload_alone_changes_where_it_is(tmp_path):
    index, expected = built(path=tmp_path / "index")
    with Index.open(tmp_path / "index") as reader:
        check_holds(reader, expected)
        before, answer = index.info(), index.query(0)
        index.update(["p4", 1], payload={"color": ["grey", None], "sold": [True, True]})
        expected.payload["p4"] |= {"color": "grey", "sold": True}
        expected.payload[1] |= {"color": None, "sold": True}
        for one in (index, reader):
            check_holds(one, expected)
            assert one.query(0, where='color = "grey"').ids == ["p4"]
        assert index.info() == before
        assert index.query(0).ids == answer.ids
    index.close()
    with Index.open(tmp_path / "index", write=True) as again:
        again.save()
        check_holds(again, expected)


def test_vectors_and_payload_change_together():
    index, expected = built()
    with index:
        index.update(["p4", 1], vectors=NEW[:2], payload={"color": ["grey", "pink"]})
        expected.payload["p4"]["color"], expected.payload[1]["color"] = "grey", "pink"
        expected.move(["p4", 1], NEW)
        check_holds(index, expected)


def test_nothing_to_change_is_no_change():
    index, expected = built()
    with index:
        before = index.info()
        index.add(np.empty((0, 3)), ids=[])
        index.remove([])
        index.update([], vectors=np.empty((0, 3)))
        index.update([], payload={"price": []})
        index.update([1, 2])
        assert index.info() == before
        check_holds(index, expected)


def test_merges_come_by_themselves(monkeypatch):
    monkeypatch.setattr(backend, "FEW_PENDING", 5)
    index, expected = built()
    rng = np.random.default_rng(2)
    with index:
        for number in range(20):
            new, columns = vectors(rng, 1), payload(rng, 1)
            index.add(new, ids=[f"n{number}"], payload=columns)
            expected.add([f"n{number}"], new, columns)
            assert index.info()["pending_changes"] <= 6
            gone = expected.ids[rng.integers(len(expected.ids))]
            index.remove(gone)
            expected.remove([gone])
        assert index.info()["generation"] > 5
        check_holds(index, expected)


FAILING = {
    "id in use": (lambda index: index.add(NEW[:2], ids=["new", "p3"]), "in use already: 'p3'"),
    "id twice": (lambda index: index.add(NEW[:2], ids=["new", "new"]), "more than once"),
    "id of another kind": (lambda index: index.add(NEW[:1], ids=[None]), "None"),
    "too few ids": (lambda index: index.add(NEW[:2], ids=["new"]), "2 vectors and 1 ids"),
    "dimension": (lambda index: index.add(NEW[:2, :2], ids=["a", "b"]), r"shape \(2, 2\)"),
    "NaN": (lambda index: index.add(NEW * np.nan, ids=list("abcd")), "NaN"),
    "ragged": (lambda index: index.add([[1.0, 2.0], [3.0]], ids=["a", "b"]), "equal length"),
    "text": (lambda index: index.add([["x", "y", "z"]], ids=["a"]), "numbers"),
    "new column": (lambda index: index.add(NEW[0], ids="a", payload={"new": [1]}), "'new'"),
    "kind": (lambda index: index.add(NEW[0], ids="a", payload={"price": ["x"]}), "integer"),
    "payload too long": (
        lambda index: index.add(NEW[0], ids="a", payload={"price": [1, 2]}),
        "price",
    ),
    "remove nobody": (lambda index: index.remove(["p3", "nobody"]), "'nobody'"),
    "remove twice": (lambda index: index.remove(["p3", "p3"]), "more than once"),
    "update nobody": (lambda index: index.update("nobody", vectors=NEW[0]), "'nobody'"),
    "update twice": (lambda index: index.update([3, 3], vectors=NEW[:2]), "more than once"),
    "update too few": (lambda index: index.update([3, 4], vectors=NEW[:1]), "1 vectors"),
    "update dimension": (lambda index: index.update(3, vectors=NEW[0, :2]), "shape"),
    "update column": (lambda index: index.update(3, payload={"new": [1]}), "'new'"),
    "update both": (
        lambda index: index.update(3, vectors=NEW[0], payload={"price": ["x"]}),
        "integer",
    ),
    "update kind": (lambda index: index.update([3, 4], payload={"sold": [True, 1]}), "sold"),
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("case", FAILING)
def test_what_fails_leaves_everything_as_it_was(tmp_path, case):
    index, expected = built(path=tmp_path / "index")
    index.remove("p0")
    expected.remove(["p0"])
    before, answer = index.info(), index.query(["p3", 1], top=100)
    change, message = FAILING[case]
    with pytest.raises(InputError, match=message):
        change(index)
    assert index.info() == before
    again = index.query(["p3", 1], top=100)
    assert again.ids == answer.ids
    np.testing.assert_array_equal(again.scores, answer.scores)
    check_holds(index, expected)
    with Index.open(tmp_path / "index") as reader:
        check_holds(reader, expected)
    index.add(NEW[:1], ids=["new"], payload={"price": [1]})
    row = {"price": 1, "size": None, "color": None, "sold": None}
    expected.add(["new"], NEW, {name: [value] for name, value in row.items()})
    check_holds(index, expected)
    index.close()


@pytest.mark.parametrize(
    "change",
    [
        lambda index: index.add(NEW[:1], ids=["new"]),
        lambda index: index.remove("p3"),
        lambda index: index.update("p3", vectors=NEW[0]),
        lambda index: index.update("p3", payload={"price": [1]}),
        lambda index: index.save(),
    ],
)
def test_what_is_open_for_reading_cannot_be_changed(tmp_path, change):
    index, expected = built(path=tmp_path / "index")
    index.close()
    with Index.open(tmp_path / "index") as reader:
        with pytest.raises(InputError, match="write=True"):
            change(reader)
        check_holds(reader, expected)


def test_threads_ask_while_one_changes():
    """Every answer is that of a state that was there."""
    rng = np.random.default_rng(4)
    X, new = vectors(rng, 60), vectors(rng, 24)
    expected, states = Expected(), []
    empty = {name: [None] * 60 for name in ("price", "size", "color", "sold")}
    expected.add(list(range(60)), X, empty)

    def answers(index, method):
        found = index.query([1, 59], top=100, method=method)
        return tuple(found.ids), tuple(np.round(found.scores, 9))

    with Index.build(X, payload=empty) as index:
        methods = ("ran", "manifold", "distance")

        def change(number):
            with backend_of(index).current():
                states.append({method: answers(index, method) for method in methods})
            index.add(new[number]) if number % 3 else index.remove(2 + number)

        def ask(method):
            return [answers(index, method) for _ in range(12)]

        with ThreadPoolExecutor(4) as threads:
            asked = {method: threads.submit(ask, method) for method in methods}
            changing = threads.submit(lambda: [change(number) for number in range(24)])
            changing.result()
            found = {method: asked[method].result() for method in methods}
        states.append({method: answers(index, method) for method in methods})
        for method in methods:
            known = {state[method] for state in states}
            assert set(found[method]) <= known
        assert len(index) == 60 + 16 - 8


def test_threads_that_change_take_turns():
    rng = np.random.default_rng(6)
    X, new = vectors(rng, 30), vectors(rng, 40)
    with Index.build(X) as index:
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(lambda one: index.add(one), new))
        assert index.ids == list(range(70))
        arrived = index.vectors(range(30, 70))
        assert sorted(map(tuple, arrived)) == sorted(map(tuple, new))


def same_answers(index, expected, **query):
    with expected.anew(index) as fresh:
        found, true = index.query(**query, top=100), fresh.query(**query, top=100)
        scores = dict(zip(true.ids, true.scores, strict=True))
        assert len(found) == len(true)
        np.testing.assert_allclose(found.scores, [scores[name] for name in found.ids], atol=1e-8)


@pytest.mark.parametrize("n_neighbors", [None, 9])
def test_the_graph_has_as_many_neighbours_as_there_are_points_for(n_neighbors):
    """Also where a ranker follows the changes instead of being fitted again."""
    rng = np.random.default_rng(3)
    query = {"ids": "p5", "solver": "region", "tol": 1e-10}
    if n_neighbors is not None:
        query["n_neighbors"] = n_neighbors
    index, expected = built(14, n_neighbors=8)
    with index:
        same_answers(index, expected, **query)
        index.remove([0, 1, 2])
        expected.remove([0, 1, 2])
        same_answers(index, expected, **query)
        for first in (0, 20):
            ids, X, columns = (
                [f"n{first + i}" for i in range(20)],
                vectors(rng, 20),
                payload(rng, 20),
            )
            index.add(X, ids, columns)
            expected.add(ids, X, columns)
            same_answers(index, expected, **query)


def test_a_change_that_is_interrupted_after_it_was_written_is_there(monkeypatch):
    index, expected = built()
    query = {"ids": [3], "solver": "region", "tol": 1e-10}
    apply = DynamicEngine.apply

    def interrupted(engine, change):
        engine._points.append(change.added)
        monkeypatch.setattr(DynamicEngine, "apply", apply)
        raise KeyboardInterrupt

    with index:
        same_answers(index, expected, **query)
        monkeypatch.setattr(DynamicEngine, "apply", interrupted)
        rng = np.random.default_rng(3)
        X, columns = vectors(rng, 2), payload(rng, 2)
        with pytest.raises(KeyboardInterrupt):
            index.add(X, ["a", "b"], columns)
        expected.add(["a", "b"], X, columns)
        check_holds(index, expected)
        same_answers(index, expected, **query)
