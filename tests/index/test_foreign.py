"""An index that somebody else wrote does no more than fail when it is opened."""

import shutil
import sqlite3
from functools import cache

import faiss
import numpy as np
import pytest
from click.testing import CliRunner
from index_cases import backend_of

from rankfold import Index
from rankfold.cli import main
from rankfold.errors import StorageError
from rankfold.layout import Projection
from rankfold.neighbors import DynamicEngine, FaissEngine
from rankfold.storage import Store

RNG = np.random.default_rng(0)
WHICH = RNG.integers(0, 10, 1000)
X = RNG.normal(size=(10, 8))[WHICH] * 4 + RNG.normal(size=(1000, 2)) @ RNG.normal(size=(2, 8))
X = X.astype(np.float32)  # near planes, so that an inverted file pays
N_POINTS, N_FEATURES = X.shape
N_NEIGHBORS = 5


@cache
def state(index):
    """Return arrays and settings of an index whose points are searched in one way."""
    engine = None if index is None else FaissEngine(X, index=index)
    living = DynamicEngine.build(X, "euclidean", 6, engine=engine)
    arrays, engine_settings = living.state()
    assert index is None or engine_settings["index"] == index
    projection = Projection(np.zeros(N_FEATURES), np.eye(N_FEATURES)[:, :2])
    arrays |= {
        "places": X[:, :2],
        "places_origin": projection.origin,
        "places_axes": projection.axes,
    }
    settings = {"engine": engine_settings, "n_neighbors": N_NEIGHBORS, "numbered": True}
    return arrays, {**settings, "layout": "pca", "source": {}}


def written(path, arrays, settings):
    Store.create(path, arrays, settings, range(N_POINTS))
    return path


@pytest.mark.parametrize("index", [None, "flat", "ivf", "hnsw"])
def test_all_kinds_are_read_and_changed(tmp_path, index):
    path = written(tmp_path / "index", *state(index))
    expected = DynamicEngine.restore(*_engine_state(index)).search(X[:9] + 0.1, 4)
    with Index.open(path, write=True) as opened:
        with backend_of(opened).current() as engine:
            found = engine.search(X[:9] + 0.1, 4)
        assert found.indices.tolist() == expected.indices.tolist()
        opened.add(X[:3] + 5)
        opened.remove([0, 1])
        opened.save()
        assert opened.query(N_POINTS + 1, top=2).ids


def _engine_state(index):
    arrays, settings = state(index)
    return arrays, settings["engine"]


def test_faiss_is_not_led_to_another_file(tmp_path):
    """Its own form may name a file that holds the inverted lists, to which it then writes."""
    victim = tmp_path / "thesis"
    quantizer = faiss.IndexFlatL2(N_FEATURES)
    inverted = faiss.IndexIVFFlat(quantizer, N_FEATURES, 8)
    inverted.train(X)
    lists = faiss.OnDiskInvertedLists(8, inverted.code_size, str(victim))
    inverted.replace_invlists(lists, False)
    inverted.add(X)
    crafted = faiss.serialize_index(inverted)
    victim.write_bytes(b"years of work"[:1] * victim.stat().st_size)
    before = victim.read_bytes()
    arrays, settings = state("ivf")
    rest = {name: array for name, array in arrays.items() if name != "centres"}
    path = written(tmp_path / "index", {**rest, "faiss": crafted}, settings)
    try:
        with Index.open(path, write=True) as opened:
            opened.add(X[:50] + 0.01)
    except StorageError as error:
        assert "damaged or foreign" in str(error)  # noqa: PT017
    assert victim.read_bytes() == before


def beyond(array, value):
    changed = array.copy()
    changed.ravel()[-1] = value
    return changed


ARRAYS = {
    "lists beyond the points": ("list_indices", lambda a: beyond(a, 10**6)),
    "lists of negative slots": ("list_indices", lambda a: beyond(a, -7)),
    "lists of fractions": ("list_indices", lambda a: a.astype(float)),
    "too few lists": ("list_indices", lambda a: a[:-1]),
    "flat lists": ("list_indices", lambda a: a.ravel()),
    "distances that are none": ("list_sq_distances", lambda a: beyond(a, np.nan)),
    "distances of other shape": ("list_sq_distances", lambda a: a[:, :-1]),
    "counts that lie": ("list_counts", lambda a: beyond(a, 1)),
    "starts that lie": ("reverse_starts", lambda a: beyond(a, 10**9)),
    "starts that fall": ("reverse_starts", lambda a: a[::-1]),
    "sources beyond the points": ("reverse_sources", lambda a: beyond(a, 10**6)),
    "a point that is none": ("points", lambda a: beyond(a, np.nan)),
    "points of few digits": ("points", lambda a: a.astype(np.float16)),
    "lists of short numbers": ("list_indices", lambda a: a.astype(np.int16)),
    "whole numbers for points": ("points", lambda a: a.astype(int)),
    "one point fewer": ("points", lambda a: a[:-1]),
    "flat points": ("points", lambda a: a.ravel()),
    "one alive fewer": ("alive", lambda a: a[:-1]),
    "one dead": ("alive", lambda a: beyond(a, False)),
    "numbers for the living": ("alive", lambda a: a.astype(int)),
    "cells beyond the centres": ("cells", lambda a: beyond(a, 10**6)),
    "negative cells": ("cells", lambda a: beyond(a, -1)),
    "centres of more features": ("centres", lambda a: np.hstack([a, a])),
    "centres that are none": ("centres", lambda a: beyond(a, np.inf)),
    "links beyond the points": ("links", lambda a: beyond(a, 10**6)),
    "links that are too few": ("links", lambda a: a[:-1]),
    "links to lower points": ("links", lambda a: np.zeros_like(a)),
    "levels without end": ("levels", lambda a: beyond(a, 10**6)),
    "levels below the ground": ("levels", lambda a: beyond(a, 0)),
    "an entry elsewhere": ("entry", lambda a: beyond(a, 10**6)),
    "places of others": ("places", lambda a: a[:-1]),
    "places nowhere": ("places", lambda a: beyond(a, np.inf)),
    "axes of more features": ("places_axes", lambda a: np.vstack([a, a])),
    "an origin of more features": ("places_origin", lambda a: np.hstack([a, a])),
}


@pytest.mark.parametrize("case", ARRAYS)
def test_arrays_that_do_not_fit_are_told(tmp_path, case):
    name, change = ARRAYS[case]
    arrays, settings = state("hnsw" if name in ("links", "levels", "entry") else "ivf")
    path = written(tmp_path / "index", {**arrays, name: change(arrays[name])}, settings)
    with pytest.raises(StorageError, match="damaged or foreign") as caught:
        Index.open(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", ["ivf", "hnsw", None])
def test_an_array_that_is_missing_is_told(tmp_path, kind):
    arrays, settings = state(kind)
    for name in arrays:
        rest = {other: array for other, array in arrays.items() if other != name}
        path = written(tmp_path / name, rest, settings)
        if name == "places_axes":  # the map of a graph has none
            Index.open(path).close()
            continue
        with pytest.raises(StorageError, match="damaged or foreign"):
            Index.open(path)


PLAN = {"width": 50, "kind": "ivf", "recall": 0.5, "n_points": N_POINTS, "n_alive": N_POINTS}


@pytest.mark.parametrize(
    "wrong",
    [
        {"engine": None},
        {"engine": {}},
        {"n_neighbors": -1},
        {"n_neighbors": "many"},
        {"numbered": None},
        {"layout": "nonsense"},
        *({"engine": {name: value}} for name, value in {
            "engine": "nonsense", "index": "nonsense", "metric": "precomputed", "width": 10**6,
            "recall": "all", "plans": [{}], "plans ": None, "seed": -1, "seed ": 2**31,
            "learned": {},
        }.items()),
        *({"engine": {"plans": [{**PLAN, "effort": effort}]}} for effort in (0, 2**31)),
    ],
    ids=str,
)  # fmt: skip
def test_settings_that_do_not_fit_are_told(tmp_path, wrong):
    arrays, settings = state("ivf")
    inner = wrong.get("engine")
    if inner:
        wrong = {"engine": {**settings["engine"], **{n.strip(): v for n, v in inner.items()}}}
    path = written(tmp_path / "index", arrays, {**settings, **wrong})
    with pytest.raises(StorageError, match="damaged or foreign"):
        Index.open(path)


def test_learned_lists_that_do_not_fit_are_told(tmp_path):
    with Index.build(X, path=tmp_path / "index", n_neighbors=N_NEIGHBORS) as index:
        index.learn()
        arrays, settings, *_ = backend_of(index).state()
    written(tmp_path / "same", arrays, settings)
    Index.open(tmp_path / "same").close()
    wide = np.zeros((N_POINTS, 6), dtype=np.int32)
    for number, (indices, distances) in enumerate(
        [
            (beyond(wide, 10**6), np.ones(wide.shape)),
            (wide, beyond(np.ones(wide.shape), np.nan)),
            (wide, np.ones((N_POINTS, 5))),
            (np.vstack([wide, wide]), np.ones((2 * N_POINTS, 6))),
        ]
    ):
        crafted = {**arrays, "learned_indices": indices, "learned_distances": distances}
        path = written(tmp_path / f"crafted{number}", crafted, settings)
        with pytest.raises(StorageError, match="damaged or foreign"):
            Index.open(path)


@pytest.mark.parametrize(
    "case",
    ["rows", "indices", "removed", "added", "large", "places", "few places", "far", "missing"],
)
def test_changes_that_do_not_fit_are_told(tmp_path, case):
    path = written(tmp_path / "index", *state(None))
    engine = DynamicEngine.restore(*_engine_state(None))
    change = {**engine.plan([], X[:1] + 9).arrays(), "places": X[:1, :2]}
    if case == "missing":
        del change["rows"]
    elif case == "few places":
        change["places"] = X[:0, :2]
    elif case == "large":
        change["added"] = np.full_like(change["added"], 1e300, dtype=np.float64)
    elif case == "far":
        change["sq_distances"] = beyond(change["sq_distances"], np.nan)
    else:
        value = {"rows": -5, "indices": -5, "removed": 0, "added": np.inf, "places": np.nan}[case]
        change[case] = np.array([0, 0]) if case == "removed" else beyond(change[case], value)
    with Store.open(path, write=True) as store:
        store.append(change, added_slots=[N_POINTS], ids=["new"])
    with pytest.raises(StorageError, match="damaged or foreign"):
        Index.open(path)


@pytest.fixture
def built(tmp_path):
    path = tmp_path / "built"
    Index.build(X, payload={"price": range(N_POINTS)}, path=path, n_neighbors=N_NEIGHBORS).close()
    return path


def run(*arguments):
    return CliRunner().invoke(main, [*map(str, arguments)])


def test_a_database_without_its_segments_is_told_in_one_line(built):
    connection = sqlite3.connect(built / "index.sqlite")
    connection.execute("DELETE FROM segments")
    connection.commit()
    connection.close()
    for arguments in (["info", built], ["query", built, "--id", "0"]):
        done = run(*arguments)
        assert done.exit_code == 1
        assert done.output.count("\n") == 1
        assert "its list of segments" in done.output


def test_a_query_does_not_answer_from_a_damaged_point(built):
    nearest = Index.open(built).query(0, top=3).ids
    connection = sqlite3.connect(built / "index.sqlite")
    connection.execute("UPDATE points SET c0 = 7 WHERE id = ?", (nearest[1],))
    connection.commit()
    connection.close()
    with Index.open(built, write=True) as index:
        with pytest.raises(StorageError, match="has another checksum"):
            index.query(0, top=3)
        with pytest.raises(StorageError, match="has another checksum"):
            index.update([nearest[1]], payload={"price": [3]})
        with pytest.raises(StorageError, match="has another checksum"):
            index.remove([nearest[1]])
        assert index.query(0, top=1).ids == nearest[:1]
    assert "has another checksum" in run("index", "check", built).output


def test_merging_leaves_what_others_put_there(tmp_path, built):
    (built / "segments" / ".ipynb_checkpoints").mkdir()
    (built / ".learning.npz.1-0123abcd.partial").mkdir()
    assert "merged" in run("index", "merge", built).output
    assert (built / "segments" / ".ipynb_checkpoints").is_dir()
    elsewhere = tmp_path / "elsewhere"
    shutil.move(built / "segments", elsewhere)
    (elsewhere / "thesis.txt").write_text("years of work")
    (built / "segments").symlink_to(elsewhere)
    before = sorted(path.name for path in elsewhere.iterdir())
    done = run("index", "merge", built)
    assert done.exit_code == 1
    assert "is a symbolic link" in done.output
    assert sorted(path.name for path in elsewhere.iterdir()) == before
