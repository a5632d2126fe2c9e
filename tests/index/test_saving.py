"""An index is built, saved and opened, and holds what it was given."""

import json

import numpy as np
import pandas
import pyarrow
import pyarrow.parquet
import pytest
from index_cases import Expected, built, check_holds, payload, stored_payload, vectors

from rankfold import Index, InputError
from rankfold.errors import RankfoldError, StorageError
from rankfold.index import backend

RNG = np.random.default_rng(0)
X = vectors(RNG, 30)
COLUMNS = payload(RNG, 30)


def test_opened_is_what_was_built(tmp_path):
    index, expected = built(path=tmp_path / "index")
    check_holds(index, expected)
    index.close()
    for write in (False, True):
        with Index.open(tmp_path / "index", write=write) as again:
            check_holds(again, expected)
            assert again.columns == {
                "price": "integer",
                "size": "number",
                "color": "text",
                "sold": "boolean",
            }


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
def test_any_array(metric, dtype):
    given = (10 * X).astype(dtype)
    with Index.build(given, metric=metric) as index:
        assert index.ids == list(range(30))
        expected = given / np.linalg.norm(given, axis=1)[:, None] if metric == "cosine" else given
        np.testing.assert_allclose(index.vectors(range(30)), expected, rtol=1e-6)
        assert index.info()["metric"] == metric


@pytest.mark.parametrize("kind", ["dict", "frame", "table", "parquet", "csv", "arrays"])
def test_payload_from_anything(tmp_path, kind):
    columns = dict(COLUMNS)
    frame = pandas.DataFrame({name: pandas.array(values) for name, values in columns.items()})
    if kind == "dict":
        given = columns
    elif kind == "arrays":
        columns = {"price": list(range(30))}
        given = {"price": np.arange(30)}
    elif kind == "frame":
        given = frame
    elif kind == "table":
        given = pyarrow.table(columns)
    elif kind == "parquet":
        given = tmp_path / "payload.parquet"
        pyarrow.parquet.write_table(pyarrow.table(columns), given)
    else:
        columns = {name: columns[name] for name in ("price", "color")}
        given = tmp_path / "payload.csv"
        frame[list(columns)].to_csv(given, index=False)
    with Index.build(X, payload=given) as index:
        assert stored_payload(index) == columns


def test_ids_of_both_kinds_are_kept_apart():
    with Index.build(X[:4], ids=[1, "1", -5, "ä b"]) as index:
        assert index.ids == [1, "1", -5, "ä b"]
        np.testing.assert_array_equal(index.vectors("1"), X[1:2])
        np.testing.assert_array_equal(index.vectors([-5, 1]), X[[2, 0]])
        assert set(index.query("1").ids) == {1, -5, "ä b"}


def test_a_temporary_index_is_gone_after_it_was_closed():
    index = Index.build(X)
    folder = index.info()["path"]
    with index:
        index.add(X[:1])
    with pytest.raises(StorageError, match="open it again"):
        len(index)
    with pytest.raises(StorageError, match="no index at"):
        Index.open(folder)
    index.close()


def test_a_temporary_index_is_gone_when_nobody_has_it():
    index = Index.build(X)
    folder = index.info()["path"]
    del index
    with pytest.raises(StorageError, match="no index at"):
        Index.open(folder)


def test_saved_elsewhere_it_goes_on_there(tmp_path):
    index, expected = built(path=tmp_path / "first")
    index.remove(["p3", 5])
    expected.remove(["p3", 5])
    index.save(tmp_path / "second")
    assert index.info()["path"] == str(tmp_path / "second")
    assert index.info()["removed_slots"] == index.info()["pending_changes"] == 0
    index.remove(7)
    with Index.open(tmp_path / "first", write=True) as first:
        check_holds(first, expected)
    expected.remove([7])
    check_holds(index, expected)
    index.close()
    with Index.open(tmp_path / "second") as second:
        check_holds(second, expected)


def test_a_temporary_index_can_be_saved(tmp_path):
    index, expected = built()
    folder = index.info()["path"]
    index.save(tmp_path / "kept")
    check_holds(index, expected)
    index.close()
    with pytest.raises(StorageError, match="no index at"):
        Index.open(folder)
    with Index.open(tmp_path / "kept") as kept:
        check_holds(kept, expected)


def test_what_is_open_for_reading_can_be_saved_and_then_changed(tmp_path):
    index, expected = built(path=tmp_path / "first")
    with Index.open(tmp_path / "first") as reader:
        reader.save(tmp_path / "copy")
        reader.remove(3)
        expected.remove([3])
        check_holds(reader, expected)
    index.close()


@pytest.mark.parametrize("named", [True, False])
def test_save_merges(tmp_path, named):
    index, expected = built(path=tmp_path / "index")
    with index:
        index.remove([0, "p1"])
        expected.remove([0, "p1"])
        before = index.info()
        assert (before["pending_changes"], before["removed_slots"]) == (1, 2)
        index.save(tmp_path / "index" if named else None)
        after = index.info()
        assert (after["pending_changes"], after["removed_slots"]) == (0, 0)
        assert after["generation"] == before["generation"] + 1
        check_holds(index, expected)


def test_replace(tmp_path):
    index, _ = built(path=tmp_path / "index")
    index.close()
    with Index.open(tmp_path / "index") as reader:
        index, expected = built(50, seed=1, path=tmp_path / "index", replace=True)
        check_holds(reader, expected)
        with pytest.raises(StorageError, match="open for writing elsewhere"):
            built(path=tmp_path / "index", replace=True)
        check_holds(index, expected)
        index.close()
    other, others = built(10, seed=2)
    with pytest.raises(InputError, match="exists already"):
        other.save(tmp_path / "index")
    check_holds(other, others)
    other.save(tmp_path / "index", replace=True)
    check_holds(other, others)
    other.close()


WRONG = {
    "no rows": ({"X": X[:0]}, "no rows"),
    "flat": ({"X": X[0]}, "shape"),
    "NaN": ({"X": np.where(np.arange(3) == 1, np.nan, X)}, "NaN"),
    "ids twice": ({"ids": [0, *range(29)]}, "more than once: 0"),
    "too few ids": ({"ids": range(29)}, "30 vectors and 29 ids"),
    "ids of another kind": ({"ids": [0.5, *range(29)]}, "0.5"),
    "truth as id": ({"ids": [True, *range(2, 31)]}, "True"),
    "empty id": ({"ids": ["", *range(29)]}, "characters"),
    "payload too short": ({"payload": {"a": [1]}}, "30"),
    "payload of two kinds": ({"payload": {"a": [1, "b"] * 15}}, "'a'"),
    "column named id": ({"payload": {"id": range(30)}}, "'id'"),
    "payload of no kind": ({"payload": 3}, "payload is int"),
    "no such file": ({"payload": "nowhere.parquet"}, "nowhere.parquet"),
    "path taken": ({"path": "."}, "exists already"),
    "path in nothing": ({"path": "no/such/folder"}, "does not exist"),
    "replace what is no index": ({"path": ".", "replace": True}, "no index"),
    "metric": ({"metric": "precomputed"}, "metric"),
    "recall": ({"recall": 0}, "recall"),
    "n_neighbors": ({"n_neighbors": 0}, "n_neighbors"),
}


@pytest.mark.parametrize("case", WRONG)
def test_errors_come_before_the_search(tmp_path, monkeypatch, case):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "something.txt").write_text("else")
    searched = []
    build = backend.DynamicEngine.build
    monkeypatch.setattr(
        backend.DynamicEngine, "build", lambda *a, **b: searched.append(a) or build(*a, **b)
    )
    given, message = WRONG[case]
    with pytest.raises(RankfoldError, match=message):
        Index.build(**{"X": X, **given})
    assert not searched
    assert [path.name for path in tmp_path.iterdir()] == ["something.txt"]


def test_what_is_no_index_cannot_be_opened(tmp_path):
    (tmp_path / "file").write_text("text")
    for name in ("nothing", "file", "."):
        with pytest.raises(StorageError, match="index"):
            Index.open(tmp_path / name)


def test_info_fits_into_json():
    index, expected = built()
    with index:
        facts = json.loads(json.dumps(index.info()))
    assert facts["points"] == len(expected.ids)
    assert facts["features"] == 3
    assert facts["list_width"] >= 2 * facts["n_neighbors"]
    assert facts["engine"] == "exact"


def test_every_id_is_found_in_a_larger_index(tmp_path):
    """More points than are looked up one by one, and FAISS."""
    rng = np.random.default_rng(5)
    many = rng.normal(size=(21_000, 4)).astype(np.float32)
    ids = rng.permutation(21_000)
    with Index.build(many, ids=ids, path=tmp_path / "index", n_neighbors=5) as index:
        assert index.info()["engine"] == "faiss"
        index.remove(ids[:50])
        index.add(many[:50] + 1, ids=[f"n{i}" for i in range(50)])
        answer = index.query(int(ids[60]), top=20)
    with Index.open(tmp_path / "index") as again:
        assert again.ids == [*ids[50:].tolist(), *(f"n{i}" for i in range(50))]
        assert again.query(int(ids[60]), top=20).ids == answer.ids
        np.testing.assert_allclose(again.vectors(again.ids)[:-50], many[50:])


def test_expected_can_tell(tmp_path):
    """What the tests rely on notices a difference."""
    index, expected = built()
    with index:
        first = Expected(list(expected.ids), dict(expected.vectors), dict(expected.payload))
        first.vectors[3] = first.vectors[3] + 0.01
        with pytest.raises(AssertionError):
            check_holds(index, first)
