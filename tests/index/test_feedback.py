"""Results are marked, and explained."""

import json

import numpy as np
import pytest
from index_cases import built

from rankfold import RANKERS, InputError


@pytest.fixture(scope="module")
def index():
    """Return an index with removed slots."""
    index, _ = built(60)
    index.remove([0, 5, "p3"])
    with index:
        yield index


def same(found, true):
    assert found.ids == true.ids
    np.testing.assert_array_equal(found.scores, true.scores)


def test_right_and_wrong(index):
    first = index.query(3)
    again = first.refine(right=first.ids[:2], wrong=first.ids[2])
    same(again, index.query([3, *first.ids[:2]], negative=first.ids[2]))
    assert not {3, *first.ids[:3]} & set(again.ids)
    assert first.query.ids == [3]


def test_marks_add_up(index):
    first = index.query(3)
    right, wrong, late = first.ids[:3]
    again = first.refine(right=right).refine(wrong=[wrong]).refine(right=[late], wrong=())
    same(again, index.query([3, right, late], negative=[wrong]))


def test_the_last_mark_counts(index):
    first = index.query(3)
    one, other = first.ids[:2]
    wrong = first.refine(wrong=[one, other])
    same(wrong.refine(right=one), index.query([3, one], negative=other))
    right = first.refine(right=[one, other])
    same(right.refine(wrong=one), index.query([3, other], negative=one))
    same(right.refine(right=one), right)
    same(wrong.refine(wrong=one), index.query(3, negative=[other, one]))
    same(wrong.refine(right=one).refine(wrong=one), wrong.refine(wrong=one))


def test_weights_follow_their_examples(index):
    vector = [1.0, 1.0, 1.0]
    first = index.query([3, "p1"], vector, [1.0, 4.0, 2.0])
    one = first.ids[0]
    right = first.refine(right=one)
    same(right, index.query([3, "p1", one], vector, [1.0, 4.0, 4.0, 2.0]))
    same(right.refine(wrong="p1"), index.query([3, one], vector, [1.0, 4.0, 2.0], negative="p1"))
    arrays = index.query([3, "p1"], vector, np.array([1.0, 4.0, 2.0]))
    same(arrays.refine(right=one), right)
    single = index.query(3, weights=2.0)
    same(single.refine(right=one), index.query([3, one]))


def test_everything_else_stays(index):
    settings = {"where": "price > 10", "method": "manifold", "top": 5, "alpha": 0.9}
    first = index.query(3, offset=3, diversity=0.3, **settings)
    one = first.ids[0]
    same(first.refine(wrong=one), index.query(3, negative=one, diversity=0.3, **settings))


def test_a_query_of_vectors_is_refined(index):
    first = index.query(vectors=[1.0, 1.0, 1.0])
    one, other = first.ids[:2]
    same(first.refine(one, other), index.query(one, [1.0, 1.0, 1.0], negative=other))


def test_what_cannot_be_marked(index):
    first = index.query(3)
    with pytest.raises(InputError, match="right and as wrong"):
        first.refine(right=[7], wrong=[7, 8])
    with pytest.raises(InputError, match="'nobody'"):
        first.refine(right="nobody")
    with pytest.raises(InputError, match="no example"):
        first.refine(wrong=3)


@pytest.mark.parametrize("method", RANKERS)
@pytest.mark.parametrize("query", [{"ids": ["p1", 7]}, {"ids": "p1", "negative": [7, 8]}])
def test_reasons_speak_of_ids_and_places(index, method, query):
    everything = index.query(**query, vectors=[0.5, 0.5, 0.0], top=100, method=method)
    near = index.query(**query, vectors=[0.5, 0.5, 0.0], top=3, method=method)
    assert len({"p1", 7, 8} & set(everything.ids)) <= 1
    for place in (0, 1, 10, len(everything) - 1):
        point = everything.ids[place]
        reason = near.explain(point)
        found = json.loads(json.dumps(reason.to_dict()))
        assert found["point"] == point
        assert reason.explanation.score_rank == place + 1
        assert reason.explanation.n_ranked == len(everything)
        assert reason.explanation.score == pytest.approx(everything.scores[place], abs=1e-9)
        examples = [
            *np.atleast_1d(np.array(query["ids"], dtype=object)),
            *query.get("negative", ()),
        ]
        assert [example["point"] for example in found["examples"]] == [*examples, None]
        assert repr(point).strip("'") in reason.to_text()
        if found["path"]:
            assert found["path"]["steps"][-1]["end"] == point
            ends = [step["end"] for step in found["path"]["steps"]]
            assert set(ends) <= set(index.ids)


def test_reasons_are_drawn(index, tmp_path):
    found = index.query(["p1", 7])
    found.explain(found.ids[4]).draw(tmp_path / "why.png")
    assert (tmp_path / "why.png").read_bytes().startswith(b"\x89PNG")
    assert str(found.explain(found.ids[4])) == found.explain(found.ids[4]).to_text()


def test_what_cannot_be_explained(index):
    found = index.query(["p1", 7])
    with pytest.raises(InputError, match="'p1' is an example"):
        found.explain("p1")
    with pytest.raises(InputError, match="ids 0"):
        found.explain(0)


@pytest.mark.parametrize("method", ["ran", "pagerank", "distance"])
def test_the_place_by_distance_is_that_of_the_list_by_distance(index, method):
    query = {"ids": [3, "p1"], "weights": [1.0, 4.0], "negative": [7, 8], "top": 100}
    by_distance = index.query(**query, method="distance").ids
    found = index.query(**query, method=method)
    for point in (by_distance[0], by_distance[9], by_distance[-1]):
        place = by_distance.index(point)
        assert found.explain(point).explanation.distance_rank == place + 1
