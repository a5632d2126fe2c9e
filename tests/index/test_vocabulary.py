"""Counting, paging, thresholds, groups, frames, and one scale of scores."""

import numpy as np
import pytest

from rankfold import Index, datasets
from rankfold.datasets.synthetic import sheets
from rankfold.errors import InputError

MOONS = datasets.load("moons")
RNG = np.random.default_rng(0)
COLOURS = RNG.choice(["red", "green", "blue"], 400).tolist()


@pytest.fixture(scope="module")
def moons():
    payload = {"moon": MOONS.labels, "colour": [None, *COLOURS[1:]]}
    with Index.build(MOONS.X, payload=payload) as index:
        yield index


@pytest.fixture(scope="module")
def angles():
    with Index.build(MOONS.X + 3, metric="cosine") as index:
        yield index


def cosines(X, queries):
    rows = [one / np.linalg.norm(one, axis=-1, keepdims=True) for one in (X, queries)]
    return rows[0] @ rows[1].T


def test_points_are_counted(moons):
    assert moons.count() == 400
    assert moons.count("moon = 1") == int((MOONS.labels == 1).sum())
    assert moons.count('colour = "red" or colour is null') == COLOURS[1:].count("red") + 1
    with pytest.raises(InputError, match="no column") as error:
        moons.count("price = 1")
    assert error.value.argument == "where"


def test_pages_hold_every_point_once_whatever_changes():
    ids = [7, "b", -3, "a", 10, "10", "é"]
    with Index.build(np.eye(7), ids=ids, payload={"price": range(7)}) as index:
        assert [one["id"] for one in index.scroll()] == [-3, 7, 10, "10", "a", "b", "é"]
        first = index.scroll(top=3)
        index.remove([7, 10])  # the last one seen is gone
        index.update("a", vectors=np.ones(7))  # which moves it to another slot
        index.add(np.eye(7)[:1] * 3, ids=["c"])
        index.save()  # and all of them get other ones
        rest = index.scroll(top=3, after=first[-1]["id"])
        last = index.scroll(top=3, after=rest[-1]["id"])
        assert [one["id"] for one in (*rest, *last)] == ["10", "a", "b", "c", "é"]
        assert index.scroll(after="é") == []
        chosen = index.scroll("price > 4 or id = -3", vectors=True)
        assert [one["id"] for one in chosen] == [-3, "10", "é"]
        assert chosen[0]["vector"].tolist() == np.eye(7)[2].tolist()
        assert chosen[1]["payload"] == {"price": 5}
        with pytest.raises(InputError, match="top is 0"):
            index.scroll(top=0)


def test_plain_scores_are_similarities_or_distances(moons, angles):
    by_angle = angles.query(5, method="distance", top=20)
    expected = cosines(MOONS.X + 3, MOONS.X[5:6] + 3)[by_angle.ids, 0]
    np.testing.assert_allclose(by_angle.scores, expected, atol=1e-9)
    several = angles.query([5, 9], weights=[1, 3], method="distance", top=20)
    both = cosines(MOONS.X + 3, MOONS.X[[5, 9]] + 3)[several.ids]
    np.testing.assert_allclose(several.scores, both @ [0.25, 0.75], atol=1e-9)
    straight = moons.query(5, method="distance", top=20)
    away = np.linalg.norm(MOONS.X[straight.ids] - MOONS.X[5], axis=1)
    np.testing.assert_allclose(straight.scores, -away, atol=1e-9)
    batch, again = moons.query_batch([5], method="distance", top=20)[0], straight.ranking.scores
    assert batch.scores.tolist() == straight.scores.tolist() == again.tolist()


def test_distances_beside_shape_are_on_the_same_scale(moons, angles):
    row = angles.query(5, top=1).rows()[0]
    assert row["distance"] == pytest.approx(
        1 - cosines(MOONS.X[[row["id"]]] + 3, MOONS.X[5:6] + 3)[0, 0], abs=1e-9
    )
    row = moons.query(5, top=1).rows()[0]
    assert row["distance"] == pytest.approx(np.linalg.norm(MOONS.X[row["id"]] - MOONS.X[5]))
    for index in (moons, angles):
        plain = index.query(5, method="distance", top=3)
        reason = plain.explain(plain.ids[2])
        similarity = reason.explanation.score
        assert similarity == pytest.approx(plain.scores[2])
        offset = 1 if index is angles else 0
        assert reason.explanation.distance == pytest.approx(offset - similarity, abs=1e-9)


def test_a_pushed_score_keeps_its_order(moons):
    pushed = moons.query(5, negative=[300], method="distance", top=400)
    assert (np.diff(pushed.scores) <= 0).all()


@pytest.mark.parametrize("method", ["ran", "pagerank", "distance"])
@pytest.mark.parametrize("place", [0, 7, 399 - 1])
def test_a_least_score_is_proven(moons, method, place):
    everything = moons.query(5, method=method, top=400)
    least = float(everything.scores[min(place, len(everything) - 1)]) - 1e-9
    enough = int((everything.scores >= least).sum())
    found = moons.query(5, method=method, top=400, min_score=least)
    assert found.ids == everything.ids[:enough]
    assert found.threshold.complete
    assert found.threshold.proven.all()
    assert found.rows()[0]["proven"] is True
    assert found.columns()["proven"] == [True] * enough
    few = moons.query(5, method=method, top=max(1, enough - 1), min_score=least)
    assert few.threshold.complete is (enough == 1)
    assert moons.query(5, method=method, min_score=2.0).ids == []


def test_what_a_bound_leaves_open_is_not_proven():
    """In a budget, a score within the bound of the threshold may be on either side of it."""
    data = sheets(6000, n_sheets=3)
    with Index.build(data.X) as index:
        given = {"fusion": "none", "budget": 200, "top": 50}
        scores, bound = (found := index.query(7, **given)).scores, found.ranking.solution.bound
        assert not found.ranking.solution.certified
        assert bound > 0
        least = float(scores[20])
        some = index.query(7, **given, min_score=least)
        assert some.threshold.proven.tolist() == [score - bound >= least for score in scores[:21]]
        assert not some.threshold.proven.all()
        exact = index.query(7, fusion="none", solver="cg", tol=1e-12, top=6000)
        score_of = dict(zip(exact.ids, exact.scores, strict=True))
        for name, proven in zip(some.ids, some.threshold.proven, strict=True):
            assert not proven or score_of[name] >= least
        if some.threshold.complete:
            assert {one for one in exact.ids if score_of[one] >= least} <= set(some.ids)


def test_ranks_prove_nothing(moons):
    found = moons.query(5, fusion="reciprocal_rank", min_score=0.01)
    assert found.ids
    assert not found.threshold.proven.any()
    assert not found.threshold.complete
    hybrid = moons.query(5, words="red", min_score=0.001)
    assert not hybrid.threshold.proven.any()
    diverse = moons.query(5, min_score=0.1, diversity=0.5, top=5)
    assert (diverse.scores >= 0.1).all()
    assert diverse.threshold.proven.all()
    assert not diverse.threshold.complete
    ranks = moons.query(5, fusion="reciprocal_rank", min_score=0.01, diversity=0.5)
    assert not ranks.threshold.proven.any()
    second = moons.query(5, min_score=0.1, offset=3, top=4)
    assert len(second.threshold.proven) == len(second) == 1


@pytest.mark.parametrize("per_group", [1, 2, 200])
@pytest.mark.parametrize("given", [{}, {"method": "distance"}, {"words": "red"}])
def test_groups_hold_so_many_of_the_best(moons, per_group, given):
    everything = moons.query(5, top=400, **given)
    counts, expected = {}, []
    for name, colour in zip(everything.ids, everything.payload["colour"], strict=True):
        counts[colour] = counts.get(colour, 0) + 1
        if colour is not None and counts[colour] <= per_group:
            expected.append(name)
    found = moons.query(5, top=5, group_by="colour", per_group=per_group, **given)
    assert found.ids == expected[:5]
    assert len(found) == min(5, 3 * per_group)
    assert not found.ranking.solution.certified
    if per_group > 1:
        second = moons.query(5, top=2, offset=3, group_by="colour", per_group=per_group, **given)
        assert second.ids == expected[3:5]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"group_by": "price"}, "no column 'price'"),
        ({"group_by": "moon", "per_group": 0}, "per_group is 0"),
        ({"group_by": "moon", "diversity": 0.5}, "ask for one of them"),
        ({"min_score": "high"}, "must be a finite number"),
        ({"top_k": 5}, "What is called 'top_k' elsewhere is 'top' here"),
        ({"limit": 5}, "is 'top' here"),
        ({"score_threshold": 0.5}, "is 'min_score' here"),
        ({"filter": "moon = 1"}, "is 'where' here"),
        ({"mmr": 0.5}, "is 'diversity' here"),
    ],
)
def test_what_cannot_be_asked(moons, given, message):
    with pytest.raises(InputError, match=message):
        moons.query(5, **given)


def test_results_become_a_frame(moons):
    pytest.importorskip("pandas")
    frame = moons.query(5, top=3).to_frame()
    assert frame.columns.tolist() == ["rank", "id", "score", "shape", "distance", "moon", "colour"]
    assert frame["id"].tolist() == moons.query(5, top=3).ids
    assert moons.find("red", top=4).to_frame()["colour"].tolist() == ["red"] * 4
    assert len(moons.query(5, min_score=2.0).to_frame()) == 0
