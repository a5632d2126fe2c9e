"""An index keeps a map, and points keep their places."""

import subprocess
import sys

import numpy as np
import pytest
from index_cases import backend_of, built

from rankfold import Index, InputError, datasets
from rankfold.storage import Store

X = datasets.load("digits").X[:400]
NEW = datasets.load("digits").X[400:420]


def by_id(index):
    ids, places = index.places()
    assert ids == index.ids
    assert places.shape == (len(ids), 2)
    assert np.isfinite(places).all()
    return dict(zip(ids, map(tuple, places.tolist()), strict=True))


def test_a_plain_build_has_a_map_and_loads_nothing_for_it():
    code = (
        "import sys, numpy, rankfold\n"
        "index = rankfold.Index.build(numpy.random.default_rng(0).normal(size=(300, 5)))\n"
        "print(index.layout, index.places()[1].shape, 'umap' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "pca (300, 2) False\n"


@pytest.mark.parametrize("layout", ["pca", "graph"])
def test_old_points_keep_their_places_bit_for_bit(tmp_path, layout):
    with Index.build(X, layout=layout) as index:
        before = by_id(index)
        index.add(NEW)
        index.remove([3, 100, 405])
        index.update([7], vectors=NEW[:1])
        for name in (3, 100):
            del before[name]
        del before[7]
        after = by_id(index)
        assert {name: after[name] for name in before} == before
        assert len(after) == 417
        index.save()
        assert by_id(index) == after
        index.add(NEW, ids=range(1000, 1020))
        grown = by_id(index)
        assert {name: grown[name] for name in after} == after
        index.save(tmp_path / "elsewhere")
        assert by_id(index) == grown
        assert index.layout == layout
        with Index.open(tmp_path / "elsewhere") as opened:
            assert by_id(opened) == grown
        index.add(NEW[:2], ids=["a", "b"])  # waits in the log for whoever opens it
        with Index.open(tmp_path / "elsewhere") as opened:
            assert by_id(opened) == by_id(index)
            assert opened.info()["layout"] == layout


def test_readers_follow(tmp_path):
    with Index.build(X, path=tmp_path / "index") as index, Index.open(tmp_path / "index") as reader:
        assert by_id(reader) == by_id(index)
        index.add(NEW)
        assert by_id(reader) == by_id(index)
        index.lay_out("graph")
        assert (reader.layout, by_id(reader)) == ("graph", by_id(index))
        index.lay_out("none")
        assert reader.layout is None


def test_a_map_drawn_anew_is_that_of_an_index_built_anew():
    with Index.build(X) as index, Index.build(np.concatenate([X[10:], NEW])) as fresh:
        index.add(NEW)
        index.remove(list(range(10)))
        index.lay_out("pca")
        assert index.info()["pending_changes"] == index.info()["removed_slots"] == 0
        np.testing.assert_array_equal(index.places()[1], fresh.places()[1])
        assert index.query(50).ids == [i + 10 for i in fresh.query(40).ids]


def without_map(path):
    """Write an index as it was before there were maps."""
    with Index.build(X, path=path) as index:
        index.lay_out("none")
    with Store.open(path, write=True) as store:
        settings = {name: value for name, value in store.settings.items() if name != "layout"}
        store.merge(store.arrays, settings, range(len(X)))


def test_an_index_without_a_map_is_projected_when_asked(tmp_path):
    without_map(tmp_path / "old")
    with Index.build(X) as fresh:
        expected = by_id(fresh)
    with Index.open(tmp_path / "old", write=True) as index:
        assert (index.layout, index.info()["layout"]) == (None, None)
        assert by_id(index) == expected
        drawn = backend_of(index)._drawn
        assert by_id(index) == expected
        assert backend_of(index)._drawn is drawn  # and not made again
        index.add(NEW)
        index.remove([0])
        with Index.build(np.concatenate([X[1:], NEW])) as fresh:
            np.testing.assert_allclose(index.places()[1], fresh.places()[1], atol=1e-6)
        index.save(tmp_path / "other")
        assert len(by_id(index)) == 419
        assert index.layout is None
        index.lay_out("pca")
        assert index.layout == "pca"
        assert len(by_id(index)) == 419


def test_a_change_by_somebody_who_knew_of_no_map(tmp_path):
    path = tmp_path / "index"
    with Index.build(X, path=path, layout="graph") as index:
        places = index.places()[1].tolist()
        backend_of(index)._map = None
        index.add(NEW)
        with backend_of(index).store.reading():
            assert "places" not in dict(backend_of(index).store.changes())[1]
    with Index.open(path) as one, Index.open(path) as other:
        assert one.places()[1][:400].tolist() == places
        assert len(by_id(one)) == 420
        assert by_id(one) == by_id(other)


def test_everybody_leaves_and_others_come():
    index, expected = built(12, layout="graph")
    with index:
        index.remove(expected.ids)
        assert by_id(index) == {}
        index.add(np.eye(3), ids=["a", "b", "c"])
        assert set(by_id(index)) == {"a", "b", "c"}
        index.remove(["a", "b", "c"])
        index.save()
        index.add(np.eye(3), ids=["a", "b", "c"])
        assert set(by_id(index)) == {"a", "b", "c"}
        index.lay_out("graph")
        assert len(set(by_id(index).values())) == 3
        index.remove(["a", "b", "c"])
        index.lay_out("pca")
        assert by_id(index) == {}


@pytest.mark.parametrize("n_features", [1, 2])
def test_new_points_in_the_plane_lie_where_they_lie(n_features):
    low, high = np.zeros((1, n_features)), np.full((1, n_features), 2.0)
    with Index.build(np.concatenate([low, high]), layout="graph") as index:
        index.add(np.ones((1, n_features)))
        index.add(3 * high)
        np.testing.assert_allclose(index.places()[1][2:, 0], [0, 5])
        assert index.layout == "plane"


def test_drawing_a_map_is_a_change(tmp_path):
    Index.build(X, path=tmp_path / "index").close()
    with Index.open(tmp_path / "index") as reader, pytest.raises(InputError, match="write=True"):
        reader.lay_out("pca")


@pytest.mark.parametrize("moment", ["drawing", "writing", "committing"])
def test_a_drawing_that_is_interrupted_leaves_the_map_as_it_was(tmp_path, monkeypatch, moment):
    from rankfold.index import build
    from rankfold.storage import database, store

    def interrupted(*_):
        raise KeyboardInterrupt

    places = {"drawing": (build, "lay_out"), "writing": (store, "write_segments")}
    where = places.get(moment, (database.Manifest, "write"))
    with Index.build(X, path=tmp_path / "index") as index:
        index.add(NEW)
        before, facts = by_id(index), index.info()
        with monkeypatch.context() as patch:
            patch.setattr(*where, interrupted)
            with pytest.raises(KeyboardInterrupt):
                index.lay_out("none")
        assert (by_id(index), index.info()) == (before, facts)
        backend_of(index).store.verify()
        index.lay_out("none")
        assert index.layout is None
    segments = {path.name for path in (tmp_path / "index" / "segments").iterdir()}
    assert segments
    assert not any("places" in name for name in segments)
