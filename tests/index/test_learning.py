"""An index learns one graph for all queries, and keeps it."""

import numpy as np
import pytest
from index_cases import backend_of
from learning_cases import DIGITS, MOONS, RINGS, STRANDS

from rankfold import RAN, Index, InputError


def same(one, other):
    assert one.ids == other.ids
    np.testing.assert_array_equal(one.scores, other.scores)


@pytest.mark.parametrize(("X", "rounds", "n_neighbors"), [(RINGS, 2, 5), (STRANDS, 1, 10)])
def test_queries_start_from_the_learned_graph(X, rounds, n_neighbors):
    with Index.build(X, n_neighbors=5) as index:
        plain = index.query(3, top=300)
        learned = index.learn()
        assert (learned.n_rounds, learned.n_neighbors) == (rounds, n_neighbors)
        assert index.info()["learned"] == {
            "n_neighbors": n_neighbors,
            "rounds": rounds,
            "reach": learned.reach,
            "not_learned": 0,
        }
        found = index.query(3, top=300)
        expected = RAN(5, adapt="collective").fit(X).rank(3, top=300)
        assert found.ids == expected.indices.tolist()
        np.testing.assert_allclose(found.scores, expected.scores, rtol=1e-12)
        assert np.abs(found.scores - plain.scores).max() > 0.01
        same(index.query(3, top=300, adapt="collective"), found)
        same(index.query(3, top=300, n_neighbors=5), found)
        same(index.query(3, top=300, adapt="query"), plain)
        unseen = RAN(5, adapt="collective").fit(X).rank(vectors=X[:1] + 0.01, top=9)
        assert index.query(vectors=X[0] + 0.01, top=9).ids == unseen.indices.tolist()
        assert index.query(3).explain(found.ids[5]).to_dict()["score"] == pytest.approx(
            found.scores[5], abs=1e-5
        )
        other = RAN(7).fit(X).rank(3, top=9)
        assert index.query(3, top=9, n_neighbors=7).ids == other.indices.tolist()
        index.unlearn()
        assert index.info()["learned"] is None
        same(index.query(3, top=300), plain)


@pytest.mark.parametrize("X", [DIGITS, MOONS])
def test_what_is_not_worth_keeping_is_not_kept(X):
    with Index.build(X, n_neighbors=5) as index:
        plain = index.query(3, top=300)
        learned = index.learn()
        assert (learned.n_rounds, learned.reach) == (0, 1.0)
        assert [made.kept for made in learned.rounds] == [False, False]
        facts = index.info()["learned"]
        assert (facts["rounds"], facts["not_learned"]) == (0, 0)
        same(index.query(3, top=300), plain)
        found = index.query(3, top=300, adapt="collective")
        np.testing.assert_allclose(found.scores, plain.scores, rtol=1e-9)
        index.add(X[:1] + 0.5)
        assert index.info()["learned"]["not_learned"] == 0
        assert len(index.query(3, top=500, adapt="collective")) == 400


def test_it_is_kept_wherever_the_index_goes(tmp_path):
    path = tmp_path / "rings"
    with Index.build(RINGS, path=path) as index, Index.open(path) as reader:
        reader.query(3)
        index.learn()
        found, facts = index.query(3, top=50), index.info()["learned"]
        assert reader.info()["learned"] == facts
        same(reader.query(3, top=50), found)
        index.copy(tmp_path / "copied")
        index.lay_out("none")
        same(index.query(3, top=50), found)
        index.save(tmp_path / "saved")
        same(index.query(3, top=50), found)
    for name in ("rings", "copied", "saved"):
        with Index.open(tmp_path / name, write=True) as opened:
            assert opened.info()["learned"] == facts
            same(opened.query(3, top=50), found)
            backend_of(opened).store.verify()
            opened.unlearn()
        segments = [segment.name for segment in (tmp_path / name / "segments").iterdir()]
        assert segments
        assert not any("learned" in segment for segment in segments)


def test_another_folder_counts_its_own_points(tmp_path):
    with Index.build(RINGS, n_neighbors=5) as index:
        index.learn()
        index.save(tmp_path / "first")
        index.add(RINGS[:5] + 0.01)
        assert index.info()["learned"]["not_learned"] == 5
        version = backend_of(index).version
        index.save(tmp_path / "second")
        index.add(RINGS[:3] + 0.02)
        assert index.info()["learned"]["not_learned"] == 8
        assert backend_of(index).version == version


def test_changes_that_wait_count_and_are_merged():
    new = RINGS[:20] + 0.02
    with Index.build(RINGS, n_neighbors=5) as index:
        index.learn()
        index.add(new)
        index.remove(list(range(30, 40)))
        index.learn()
        facts = index.info()
        assert facts["pending_changes"] == facts["removed_slots"] == 0
        assert facts["learned"]["not_learned"] == 0
        kept = np.delete(np.arange(360), np.arange(30, 40))
        X, ids = np.concatenate([RINGS[kept], new]), [*kept.tolist(), *range(360, 380)]
        with Index.build(X, ids, n_neighbors=5) as anew:
            assert anew.learn().rounds == pytest.approx(backend_of(index)._engine.learned.rounds)
            one, other = index.query(3, top=400), anew.query(3, top=400)
            assert set(one.ids) == set(other.ids)
            np.testing.assert_allclose(one.scores, other.scores, atol=1e-6)


@pytest.mark.parametrize("n", [1, 2, 3, 6, 13])
def test_few_points(n):
    with Index.build(RINGS[:n], n_neighbors=5) as index:
        learned = index.learn()
        assert bool(learned.rounds) == (n > 12)
        assert len(index.query(0, top=20)) == n - 1
        index.remove(index.ids)
        assert index.learn().rounds == ()
        assert index.info()["learned"]["not_learned"] == 0
        index.add(RINGS[:40])
        assert len(index.query(vectors=RINGS[0], top=50)) == 40


@pytest.mark.parametrize("X", [RINGS, STRANDS])
@pytest.mark.parametrize(
    "left",
    [1, 6, 12] + [pytest.param(left, marks=pytest.mark.slow) for left in (2, 3, 7, 8, 11, 13)],
)
def test_hardly_any_learned_points_are_left(X, left):
    with Index.build(X, n_neighbors=5) as index:
        index.learn()
        index.query(0, solver="region")
        index.remove(list(range(left, len(X))))
        for settings in ({}, {"adapt": "collective"}, {"solver": "region"}):
            assert sorted(index.query(0, top=20, **settings).ids) == list(range(1, left))
        index.save()
        assert sorted(index.query(0, top=20).ids) == list(range(1, left))


def test_too_few_points_for_the_neighbours_of_the_learned_graph():
    with Index.build(RINGS, n_neighbors=5) as index:
        index.learn()
        index.remove(list(range(6, len(RINGS))))
        with pytest.warns(UserWarning, match="n_neighbors=5 is too large for 6 points"):
            found = index.query(0, adapt="collective", n_neighbors=5)
        same(found, index.query(0, adapt="collective"))


def test_what_cannot_be_done_is_said(tmp_path):
    with Index.build(RINGS, path=tmp_path / "index") as index:
        with pytest.raises(InputError, match=r"not learned a graph for n_neighbors=10; learn\("):
            index.query(0, adapt="collective")
        with pytest.raises(InputError, match="adapt is 'other', but must be"):
            index.query(0, adapt="other")
        for wrong in (0, -1.0, float("nan"), "much"):
            with pytest.raises(InputError, match="smoothness"):
                index.learn(smoothness=wrong)
        index.learn()
        for other in (7, "auto"):
            with pytest.raises(InputError, match=f"not learned a graph for n_neighbors={other!r};"):
                index.query(0, adapt="collective", n_neighbors=other)
        with pytest.raises(InputError, match="method 'manifold' has no parameter 'adapt'"):
            index.query(0, method="manifold", adapt="query")
    with Index.open(tmp_path / "index") as reader:
        for act in (reader.learn, reader.unlearn):
            with pytest.raises(InputError, match="write=True"):
                act()
