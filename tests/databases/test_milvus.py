"""What Milvus alone has to do: see test_contract.py for what all databases have to."""

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Event

import numpy as np
import pytest
from databases.milvus_files import collections, milvus_address, same_points
from databases.tables import (
    COLUMNS,
    change,
    fill,
    points,
    rows,
    same_rows,
    settings,
    some,
)
from databases.writing_milvus import NAME, the_change

from rankfold.check import InputError, MovedError
from rankfold.databases.milvus import Milvus, session, vectors, writing
from rankfold.neighbors import Rows
from rankfold.storage import Store
from rankfold.types import Neighbors


@pytest.fixture
def database(tmp_path):
    return Milvus(milvus_address(tmp_path))


@pytest.fixture
def filled(database):
    """Return an open table, its points and its rows."""
    given, true = fill(database, NAME)
    table = database.open(NAME)
    yield table, given, true
    table.close()


def test_nothing_is_left_of_what_was_replaced_or_dropped(tmp_path, database):
    fill(database, NAME)
    before = collections(tmp_path)
    fill(database, NAME, replace=True)
    assert len(set(before) & set(collections(tmp_path))) == 1
    database.drop(NAME)
    assert collections(tmp_path) == ["rankfold_heads"]


def test_a_session_keeps_its_state_through_a_change(filled):
    table, given, _ = filled
    made, after = the_change(given)
    with table.reading() as before:
        with table.writing() as changing:
            changing.commit(made)
        same_points(before, given)
        assert before.largest_number() == 19
    with table.reading() as now:
        same_points(now, after)


def test_a_session_whose_rows_were_written_twice_says_so(filled):
    table, given, true = filled
    with table.reading() as before:
        for number in range(2):
            new = points([20 + number], seed=number)._replace(ids=[f"new {number}"])
            made, given = change(given, [], new)
            with table.writing() as changing:
                changing.commit(made)
        with pytest.raises(MovedError, match="ask again"):
            before.rows(true.slots)
        assert len(before.slots()) == 20
    with table.reading() as now:
        same_points(now, given)


def test_readers_beside_a_writer_see_whole_states(filled):
    table, given, _ = filled
    states = {1: given}
    seen, stop = [], Event()

    def read():
        while not stop.is_set():
            with table.reading() as reading, suppress(MovedError):
                same_points(reading, states[reading.head.version])
                seen.append(reading.head.version)

    with ThreadPoolExecutor(2) as pool:
        readers = [pool.submit(read) for _ in range(2)]
        for number in range(8):
            new = points([20 + number], seed=number)._replace(ids=[f"new {number}"])
            made, given = change(given, [number], new)
            states[number + 2] = given
            with table.writing() as changing:
                changing.commit(made)
        stop.set()
        for reader in readers:
            reader.result()
    assert len(set(seen)) > 1


def test_a_session_whose_index_was_replaced_says_so(filled, database):
    table, _, _ = filled
    with table.reading() as before:
        _, others = fill(database, NAME, n=12, replace=True)
        with pytest.raises(MovedError, match="replaced"):
            before.rows(np.arange(3))
    with table.reading() as now:
        same_rows(now.rows(np.arange(20)), others)


def test_what_nobody_can_read_any_more_is_deleted(filled, monkeypatch):
    table, given, _ = filled
    monkeypatch.setattr(writing, "GRACE", 0.05)
    with table.reading() as old:
        old._grace = 0.05
        for number in range(3):
            new = points([20 + number], seed=number)._replace(ids=[f"new {number}"])
            made, given = change(given, [number], new)
            with table.writing() as changing:
                changing.commit(made)
            time.sleep(0.11)
        with pytest.raises(MovedError):
            old.slots()
    with table.reading() as now:
        same_points(now, given)
        assert now.changed_since(1) is None
        assert 22 in now.changed_since(3)
        assert len(now._held.rows._newest(np.arange(3))) == 1  # the last one was removed just now


def test_sessions_end_before_what_they_read_is_deleted():
    assert session.GRACE == writing.GRACE


def test_conditions_are_those_of_an_index_in_a_folder(tmp_path, filled):
    table, given, _ = filled
    Store.create(tmp_path / "store", {}, {}, given.ids, given.payload)
    conditions = ["color LIKE 'R%'", "not sold", "sold = false", "price != 3", "id > 3", "id > '3'"]
    conditions += ["size in (1, 2) or size is not null", "not (price < 50 and color = 'red')"]
    with Store.open(tmp_path / "store") as store, table.reading() as reading:
        for where in conditions:
            assert reading.matching(where).tolist() == store.matching(where).tolist(), where


@pytest.mark.parametrize("search", ["exact", "hnsw"])
def test_searches_among_many(database, search):
    given = points(np.arange(3000), n_features=8)
    given = given._replace(ids=list(range(3000)))
    empty = Neighbors(np.full((3000, 6), -1, np.int32), np.full((3000, 6), np.inf))
    with database.create(NAME, settings(8, search=search), COLUMNS, replace=False) as filling:
        filling.add(given, Rows.of(given.slots, empty))
        filling.finish()
    queries = points(np.arange(5), seed=9, n_features=8).vectors
    table = database.open(NAME)
    with table.reading() as reading:
        found = reading.search(queries, 50)
        some_found = reading.search(queries, 50, "price > 40")
        few = reading.search(queries, 50, "id < 10")
        everybody = reading.search(queries[:1], 3000)
        assert reading.round_trips < 20
        assert (reading.listers(queries) is None) == (search == "hnsw")
    table.close()
    price = np.array([-1 if value is None else value for value in given.payload["price"]])
    for query, (slots, _), (chosen, _), (ten, _) in zip(
        queries, found, some_found, few, strict=True
    ):
        order = np.argsort(((given.vectors - query) ** 2).sum(axis=1))
        assert len(set(slots.tolist()) & set(order[:50].tolist())) >= 49
        met = order[price[order] > 40]
        assert len(set(chosen.tolist()) & set(met[:50].tolist())) >= 49
        assert (price[chosen] > 40).all()
        assert sorted(ten.tolist()) == list(range(10))
    assert len(everybody[0][0]) >= (3000 if search == "exact" else 2900)


def test_many_vectors_are_searched_for_in_parts(filled, monkeypatch):
    table, given, _ = filled
    with table.reading() as reading:
        whole = reading.search(given.vectors, 3)
        assert reading.round_trips == 2
    monkeypatch.setattr(vectors, "MOST_VECTORS", 7)
    with table.reading() as reading:
        parts = reading.search(given.vectors, 3)
        assert reading.round_trips == 4
    monkeypatch.setattr(vectors, "MOST_PAIRS", 5 * 20)
    with table.reading() as reading:
        reading.search(given.vectors, 3)
        assert reading.round_trips == 5
    for (one, _), (other, _) in zip(whole, parts, strict=True):
        assert one.tolist() == other.tolist()


def test_payload_that_would_lose_digits_stays_as_it_is(filled):
    table, _, _ = filled
    wider = (COLUMNS[0].__class__("price", "number", 0), *COLUMNS[1:])
    with table.writing() as changing:
        changing.change_payload(np.array([3]), {"price": [2**53 + 1]}, COLUMNS)
    with table.writing() as changing, pytest.raises(InputError, match="lose digits"):
        changing.change_payload(np.array([5]), {"price": [2.5]}, wider)
    with table.reading() as reading:
        assert reading.head.columns == COLUMNS
        assert reading.points(np.array([3]), COLUMNS[:1])[1] == {"price": [2**53 + 1]}


def test_ids_and_payload_come_back_to_the_last_digit(database):
    given = some(points(np.arange(4)), np.arange(4))
    ids = [-(2**63), 2**63 - 1, 'it\'s "quoted" \\ [1] %', "ü" * 1000]
    payload = {
        "price": [-(2**63), 2**63 - 1, None, 0],
        "size": [0.1, float("inf"), -1e-308, 1 / 3],
        "color": ["", "\n\t'\"\\", "😀", None],
        "sold": [True, False, None, True],
    }
    given = given._replace(ids=ids, payload=payload)
    with database.create(NAME, settings(), COLUMNS, replace=False) as filling:
        filling.add(given, rows(given.slots, given.vectors))
        filling.finish()
    table = database.open(NAME)
    with table.reading() as reading:
        assert reading.points(given.slots, COLUMNS) == (ids, payload)
        assert reading.find(ids).tolist() == [0, 1, 2, 3]
        assert reading.largest_number() == 2**63 - 1
    table.close()


def test_settings_longer_than_a_text_of_milvus(database):
    axes = np.random.default_rng(0).normal(size=(2, 4000)).tolist()
    fill(database, NAME, projection={"origin": [], "axes": axes})
    table = database.open(NAME)
    with table.reading() as reading:
        assert reading.head.settings["projection"]["axes"] == axes
    table.close()
