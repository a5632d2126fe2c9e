"""An index in a database answers as one in a folder."""

from threading import Thread

import numpy as np
import pytest
from databases.pairs import built, check_answers, check_results, check_same
from index_cases import payload, vectors

from rankfold import Index, InputError
from rankfold.check import DatabaseError
from rankfold.datasets.synthetic import sheets

N = 150
NEW = vectors(np.random.default_rng(9), 4).astype(np.float32)
IDS = [*range(N // 2), *(f"p{i}" for i in range(N // 2))]


@pytest.fixture
def pair(database, name):
    """Return an index in a folder and one in a database, after some changes of both."""
    rng = np.random.default_rng(3)
    folder, table = built(database, name, vectors(rng, N), IDS, payload(rng, N), n_neighbors=6)
    for index in (folder, table):
        index.remove([0, 5, "p3"])
        index.update("p7", vectors=NEW[0])
        index.add(NEW[1:2], ids=["late"], payload={"color": ["red"]})
    with folder, table:
        yield folder, table


QUERIES = {
    "a point": {"ids": 3},
    "a set": {"ids": ["p1", 7, "p7"], "top": 30},
    "a vector": {"vectors": [1.0, 2.0, 0.5]},
    "both": {"ids": ["p2"], "vectors": NEW[1:3], "weights": [1.0, 0.5, 0.25]},
    "against": {"ids": ["p1"], "negative": [7, "p7"]},
    "against vectors": {"ids": ["p1", "late"], "negative_vectors": NEW[1], "top": 40},
    "with the query": {"ids": ["p1", 7], "include_query": True},
    "a page": {"ids": 4, "offset": 12, "top": 7},
    "diverse": {"ids": 4, "diversity": 0.6},
    "filtered": {"ids": 4, "where": "price > 30 and not sold", "top": 5},
    "filtered to few": {"ids": "p4", "where": "price between 20 and 24", "top": 20},
    "filtered to nobody": {"ids": "p4", "where": "price > 1000"},
    "filtered against": {"ids": 4, "negative": 9, "where": "color = 'red'", "top": 6},
    "filtered and diverse": {"ids": 4, "where": "price > 10", "diversity": 0.5, "offset": 2},
    "smooth": {"vectors": NEW[2], "smoothness": 10.0},
}


@pytest.mark.parametrize("method", ["ran", "euclidean", "pagerank"])
def test_queries(pair, method):
    for query in QUERIES.values():
        settings = {k: v for k, v in query.items() if k != "smoothness" or method == "ran"}
        check_answers(*pair, method=method, **settings)


def test_evaluations(pair):
    asked = {"vectors": NEW, "qrels": {row: {row + 7: 1, f"p{row + 1}": 2} for row in range(4)}}
    for task in ({"label": "color"}, asked):
        found = [index.evaluate(**task) for index in pair]
        in_folder, in_database = ([row.mean for row in one.table()] for one in found)
        assert in_folder == pytest.approx(in_database, abs=2e-3)  # near ties may fall otherwise
        assert found[0].queries == found[1].queries


def test_round_trips_are_counted(pair):
    folder, table = pair
    trips = [table.query("p1").ranking.solution.round_trips for _ in range(2)]
    assert 0 < trips[1] < trips[0]  # what was read is known
    assert folder.query("p1").ranking.solution.round_trips == 0


def test_both_hold_the_same(pair):
    folder, table = pair
    check_same(folder, table)
    same = ("points", "features", "metric", "n_neighbors", "list_width", "columns", "layout")
    assert {k: table.info()[k] for k in same} == {k: folder.info()[k] for k in same}
    assert table.info()["removed_slots"] == 4
    assert "late" in table
    assert "nobody" not in table
    assert f"{len(folder)} points x 3" in repr(table)


def test_a_map_may_be_of_some_points(pair):
    folder, table = pair
    ids, places = table.places()
    some, where = table.places(9)
    assert len(some) == 9
    assert some == folder.places(9)[0]
    assert (some[0], some[-1]) == (ids[0], ids[-1])
    np.testing.assert_array_equal(where, places[[ids.index(one) for one in some]])


def test_ids_are_looked_for_at_once(pair):
    ids = ["p1", "nobody", 7, "7", 0, "late", "", 2**70, True, None, 1.5, "p1"]
    expected = [True, False, True, False, False, True, False, False, False, False, False, True]
    for index in pair:
        assert index.holds(ids) == expected
        assert [one in index for one in ids] == expected
        assert index.holds([]) == []


def test_answers_can_be_refined_and_explained(pair):
    found = [index.query("p1", top=8) for index in pair]
    check_results(*found)
    again = [one.refine(right="p9", wrong=21) for one in found]
    check_results(*again)
    assert again[1].asked.negative == [21]
    reasons = [one.explain(4).to_dict() for one in again]
    paths = [[step["end"] for step in reason["path"]["steps"]] for reason in reasons]
    assert paths[0] == paths[1]
    for what in ("point", "distance_rank", "score_rank"):
        assert reasons[0][what] == reasons[1][what]


def test_payload_is_changed_and_widened(pair):
    folder, table = pair
    for index in pair:
        index.update(["p1", 7], payload={"color": ["blue", None], "price": [2.5, 3]})
    check_same(folder, table)
    assert table.columns["price"] == "number"
    assert table.payload("p1") == folder.payload("p1")


def test_whole_numbers_that_would_lose_digits(database, name):
    payload = {"n": [2**60, 1, 2]}
    with Index.build(np.eye(3), payload=payload, path=name, engine=database) as index:
        with pytest.raises(InputError, match="lose digits"):
            index.update(1, payload={"n": [0.5]})
        with pytest.raises(InputError, match="lose digits"):
            index.add(np.ones((1, 3)), payload={"n": [0.5]})
        assert index.payload(index.ids) == payload


def test_numbers_go_on(database, name):
    with Index.build(np.eye(4), path=name, engine=database) as index:
        assert index.add(np.ones((2, 4))) == [4, 5]
        index.remove(5)
        assert index.add(np.ones((1, 4))) == [5]
        assert index.ids == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_everybody_leaves_and_others_come(database, name, metric):
    rng = np.random.default_rng(1)
    folder, table = built(database, name, vectors(rng, 12), metric=metric, layout="none")
    for index in (folder, table):
        index.remove(list(range(12)))
        assert len(index.query(vectors=NEW[0])) == 0
        index.add(NEW, ids=[20, 21, 22, 23])
    check_same(folder, table)
    check_answers(folder, table, ids=21)
    folder.close()
    table.close()


WRONG = {
    "nobody": (lambda index: index.query("nobody"), "'nobody'"),
    "removed": (lambda index: index.query([0, 3]), "ids 0"),
    "dimension": (lambda index: index.query(vectors=[1.0, 2.0]), "shape"),
    "dimension of new": (lambda index: index.add([[1.0, 2.0]], ids=["x"]), "shape"),
    "where": (lambda index: index.query(3, where="prize < 3"), "no column 'prize'"),
    "taken": (lambda index: index.add(NEW[:1], ids=["p1"]), "in use already: 'p1'"),
    "twice": (lambda index: index.add(NEW[:2], ids=["x", "x"]), "more than once"),
    "no ids": (lambda index: index.add(NEW[:1]), "ids of their own"),
    "new column": (lambda index: index.add(NEW[:1], ["x"], {"prize": [1]}), "new columns: 'prize'"),
    "column": (lambda index: index.payload("p1", ["prize"]), "no column 'prize'"),
    "kind": (lambda index: index.update("p1", payload={"color": [3]}), "text values"),
    "too large": (lambda index: index.add(NEW[:1] * 1e30, ids=["x"]), "single precision"),
    "save": (lambda index: index.save(), "in a folder"),
    "lay_out": (lambda index: index.lay_out("pca"), "in a folder"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_done(pair, case):
    folder, table = pair
    do, message = WRONG[case]
    with pytest.raises(InputError, match=message):
        do(table)
    check_same(folder, table)


def test_who_reads_changes_nothing(pair, database, name):
    _, table = pair
    with Index.open(name, engine=database) as reader:
        with pytest.raises(InputError, match="write=True"):
            reader.remove("p1")
        with pytest.raises(InputError, match="leave its block"), table.reading():
            table.remove("p1")
        assert "p1" in reader


def test_two_on_one_table_see_each_other(pair, database, name):
    _, table = pair
    with Index.open(name, write=True, engine=database) as other:
        assert other.query("p1").ids == table.query("p1").ids
        best = table.query("p1").ids[0]
        other.remove(best)
        assert best not in table
        assert best not in table.query("p1", top=200).ids
        copy = table.vectors("p1")
        table.add(copy, ids=["copy"])
        assert other.query("p1", method="euclidean").ids[0] == "copy"
        assert other.query("p1", top=200).ids == table.query("p1", top=200).ids


def test_a_table_takes_the_place_of_another(pair, database, name):
    _, table = pair
    with pytest.raises(InputError, match="replace"):
        Index.build(np.eye(5), path=name, engine=database)
    Index.build(np.eye(5), path=name, engine=database, replace=True).close()
    assert table.ids == [0, 1, 2, 3, 4]
    assert len(table.query(vectors=np.ones(5))) == 5


def test_copies_hold_the_same(pair, database, name, tmp_path):
    folder, table = pair
    table.copy(tmp_path / "copy")
    with Index.open(tmp_path / "copy", write=True) as copy:
        check_same(copy, table)
        check_answers(copy, table, ids="p1")
        copy.add(NEW[2:3], ids=["more"])
        table.add(NEW[2:3], ids=["more"])
        check_same(copy, table)
    other = f"{name} 2"
    try:
        folder.copy(other, engine=database)
        with pytest.raises(InputError, match="replace"):
            folder.copy(other, engine=database)
        with Index.open(other, engine=database) as copy:
            check_same(folder, copy)
            check_answers(folder, copy, ids="p1", where="price > 20")
    finally:
        database.drop(other)


def test_names_and_addresses(database):
    with pytest.raises(DatabaseError, match="no such name"):
        Index.open("no such name", engine=database)
    with pytest.raises(InputError, match="give it as path"):
        Index.build(np.eye(3), engine=database)
    with pytest.raises(InputError, match="names no database") as raised:
        Index.open("x", engine="mysql://ann:secret@host/db")
    assert "secret" not in str(raised.value)


def test_threads_ask_while_points_come_and_go(pair):
    _, table = pair
    wrong = []

    def ask():
        try:
            for step in range(6):
                found = table.query(["p1", 7], top=20, method=("ran", "pagerank")[step % 2])
                assert len(found) == 20
                assert np.isfinite(found.scores).all()
                with table.reading():
                    assert len(table) == len(table.ids) == len(table.payload(table.ids)["price"])
        except Exception as error:
            wrong.append(error)

    threads = [Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for step in range(8):
        table.add(NEW + step, ids=[f"{step} {i}" for i in range(4)])
        table.remove([f"{step} 0", f"{step} 3"])
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_lists_that_the_database_searches(database, name, metric):
    rng = np.random.default_rng(4)
    X, columns = vectors(rng, 60).astype(np.float32), payload(rng, 60)
    made = {"metric": metric, "n_neighbors": 5, "path": name, "engine": database}
    with (
        Index.build(X, payload=columns, metric=metric, n_neighbors=5) as folder,
        Index.build(X, payload=columns, lists="database", **made) as table,
    ):
        check_same(folder, table)
        for index in (folder, table):
            index.add(NEW, payload={"price": [1, 2, 3, 4]})
        check_same(folder, table)
    with pytest.raises(InputError, match="n_neighbors is 'auto'"):
        Index.build(X, lists="database", path=name, engine=database, replace=True)
    with pytest.raises(InputError, match="layout is 'graph'"):
        Index.build(X, lists="database", layout="graph", replace=True, **made)
    with pytest.raises(InputError, match="lists is 'here'"):
        Index.build(X, lists="here", replace=True, **made)


def test_a_budget_keeps_exchanges_few_and_without_one_a_query_goes_on_until_it_is_proven(
    database, name, monkeypatch
):
    monkeypatch.setattr("rankfold.rankers.ran.DIRECT_LIMIT", 0)  # as if there were many points
    folder, table = built(database, name, sheets(600, n_sheets=2).X, n_neighbors=5, layout="none")
    with folder, table:
        early = table.query(3, budget=60, fusion="none").ranking.solution
        found = table.query(3, budget=None, fusion="none")
        proven = found.ranking.solution
        assert (early.solver, early.stopped, early.certified) == ("region", "budget", False)
        assert (proven.solver, proven.stopped, proven.certified) == ("region", "proven", True)
        assert early.n_touched < proven.n_touched
        assert proven.bound < early.bound
        assert 0 < early.round_trips < 10
        exact = folder.query(3, fusion="none")
        assert set(found.ids) == set(exact.ids)
        assert np.abs(np.sort(found.scores) - np.sort(exact.scores)).max() <= proven.bound
