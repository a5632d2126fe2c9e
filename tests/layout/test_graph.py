"""Places from the neighbour graph: by descent, which needs umap-learn, and from shape vectors."""

import sys

import numpy as np
import pytest
from scipy.spatial import cKDTree

from rankfold import Index, datasets
from rankfold.errors import InputError, MissingExtraError
from rankfold.layout import Map, lay_out
from rankfold.neighbors import DynamicEngine

DIGITS = datasets.load("digits")
RNG = np.random.default_rng(0)


def engine(X):
    return DynamicEngine.build(np.asarray(X, dtype=float), "euclidean", width=12)


@pytest.fixture(scope="module")
def digits():
    return engine(DIGITS.X)


@pytest.fixture(scope="module")
def places(digits):
    made = lay_out(digits, "graph", 5)
    assert made.kind == "graph"
    return made.places


def purity(places):
    """Return the share of points whose nearest five on the map are of their class."""
    _, near = cKDTree(places).query(places, k=6)
    return (DIGITS.labels[near[:, 1:]] == DIGITS.labels[:, None]).mean()


def test_the_frame_is_filled(places):
    assert places.dtype == np.float32
    assert np.isfinite(places).all()
    assert np.ptp(places, axis=0).max() == pytest.approx(2)
    assert np.abs(places).max() == pytest.approx(1)


def test_the_same_points_give_the_same_places(digits, places):
    np.testing.assert_array_equal(lay_out(digits, "graph", 5).places, places)


def test_neighbours_lie_together(digits, places):
    near = digits.rows(np.arange(len(places)), 1).indices[:, 0]
    random = RNG.permutation(len(places))
    to_neighbour = np.linalg.norm(places - places[near], axis=1)
    to_anybody = np.linalg.norm(places - places[random], axis=1)
    assert np.median(to_anybody) > 10 * np.median(to_neighbour)


def test_classes_part_better_than_by_pca(digits, places):
    straight = lay_out(digits, "pca", 5).places
    assert purity(places) > 0.9
    assert purity(places) > purity(straight) + 0.3


def test_new_points_land_among_their_kind():
    old, new = np.arange(0, 1500), np.arange(1500, 1797)
    held = engine(DIGITS.X[old])
    made = lay_out(held, "graph", 5)
    change = held.plan((), DIGITS.X[new])
    _, near = cKDTree(made.places).query(made.places_of_new(held, change), k=5)
    same = DIGITS.labels[old][near] == DIGITS.labels[new][:, None]
    assert same.mean() > 0.85


def test_a_copy_lies_upon_its_point(digits, places):
    made = Map("graph", places)
    change = digits.plan((), DIGITS.X[[3, 700]])
    np.testing.assert_allclose(made.places_of_new(digits, change), places[[3, 700]], atol=1e-6)


def test_a_crowd_of_new_points_finds_old_ones(digits, places):
    crowd = 100 + RNG.normal(size=(60, 64))  # nearer to each other than to anybody else
    found = Map("graph", places).places_of_new(digits, digits.plan((), crowd))
    nearest = digits.search(crowd[:1], 3).indices[0]
    assert np.isfinite(found).all()
    assert (found[0] >= places[nearest].min(axis=0) - 1e-6).all()
    assert (found[0] <= places[nearest].max(axis=0) + 1e-6).all()


@pytest.mark.parametrize("kind", ["alike", "copies", "line", "any", "parts"])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 30])
def test_any_points_have_finite_places(n, kind):
    X = np.random.default_rng(n).normal(size=(n, 3))
    if kind == "alike":
        X = np.ones((n, 3))
    elif kind == "copies":
        X = X[np.arange(n) // 2]
    elif kind == "line":
        X = np.outer(np.arange(n), np.ones(3))
    elif kind == "parts":
        X[::2] += 1e6
    for layout in ("graph", "shape"):
        made = lay_out(engine(X), layout, 5)
        assert made.kind == ("pca" if n < 4 else layout)
        assert made.places.shape == (n, 2)
        assert np.isfinite(made.places).all()
        assert np.abs(made.places).max() <= 1 + 1e-6


def test_shape_parts_classes_better_than_pca(digits):
    drawn, straight = (lay_out(digits, layout, 5).places for layout in ("shape", "pca"))
    assert purity(drawn) > purity(straight) + 0.3
    np.testing.assert_array_equal(lay_out(digits, "shape", 5).places, drawn)
    assert np.ptp(drawn, axis=0).max() == pytest.approx(2)


def test_an_index_keeps_the_map_of_its_shape(tmp_path):
    with Index.build(DIGITS.X[:300], path=tmp_path / "index", layout="shape") as index:
        drawn = index.places()[1].copy()
        index.add(DIGITS.X[:1] + 0.0)
    with Index.open(tmp_path / "index") as index:
        _, places = index.places()
        assert index.layout == "shape"
        np.testing.assert_array_equal(places[:300], drawn)
        np.testing.assert_allclose(places[300], drawn[0], atol=1e-5)


def test_auto_takes_the_graph_where_it_pays(monkeypatch, digits):
    assert lay_out(engine(DIGITS.X[:200]), "auto", 5).kind == "graph"
    assert lay_out(engine(DIGITS.X[:50]), "auto", 5).kind == "pca"
    monkeypatch.setattr("rankfold.layout.AUTO_MOST", 1000)
    assert lay_out(digits, "auto", 5).kind == "pca"


def test_without_the_package(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "umap", None)
    with pytest.raises(MissingExtraError, match="the extra 'map' brings it"):
        Index.build(DIGITS.X, path=tmp_path / "index", layout="graph")
    assert not list(tmp_path.iterdir())
    with Index.build(DIGITS.X[:200], layout="auto") as index:
        assert index.layout == "pca"
        with pytest.raises(MissingExtraError, match="umap-learn"):
            index.lay_out("graph")
        index.lay_out()
        assert index.layout == "pca"
    with Index.build(DIGITS.X[:20, 20:22], layout="graph") as index:
        assert index.layout == "plane"


def test_unknown_layout():
    with pytest.raises(InputError, match="layout"):
        Index.build(DIGITS.X, layout="circle")


def test_progress_is_shown_on_stderr_where_it_is_asked_for(digits, capfd):
    lay_out(digits, "graph", 5)
    assert capfd.readouterr() == ("", "")
    lay_out(digits, "graph", 5, progress=True)
    printed, shown = capfd.readouterr()
    assert printed == ""
    assert "map" in shown
