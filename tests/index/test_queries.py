"""Queries in every mode, over an index that has changed."""

import numpy as np
import pytest
from index_cases import backend_of, built, fitted_rankers, vectors

from rankfold import RAN, RANKERS, Index, InputError, Query, datasets
from rankfold.datasets.synthetic import sheets
from rankfold.diversity import diversify
from rankfold.index.scores import scaled_scores

NEW = vectors(np.random.default_rng(9), 4)
MOONS = sheets(6000, n_sheets=6).X


@pytest.fixture(scope="module")
def changed():
    """Return an index with removed slots, and its points in the order of arrival."""
    index, expected = built(60)
    index.remove([0, 5, "p3"])
    expected.remove([0, 5, "p3"])
    index.update("p7", vectors=NEW[0])
    expected.move(["p7"], NEW)
    with index:
        yield index, expected


def plain(changed, name, settings=None):
    """Return a ranker that is fitted to the points alone, and the place of each id."""
    index, expected = changed
    X = np.array([expected.vectors[one] for one in expected.ids])
    chosen = {"n_neighbors": index.info()["n_neighbors"]} if name == "ran" else {}
    ranker = RANKERS[name](**chosen, **(settings or {})).fit(X)
    return ranker, {one: place for place, one in enumerate(expected.ids)}


QUERIES = {
    "a point": {"ids": 3},
    "a set": {"ids": ["p1", 7, "p7"]},
    "a vector": {"vectors": [1.0, 2.0, 0.5]},
    "vectors": {"vectors": list(NEW[1:3])},
    "both": {"ids": ["p2"], "vectors": list(NEW[1:3]), "weights": [1.0, 0.5, 0.25]},
    "weights": {"ids": ["p1", 7, "p7"], "weights": [1.0, 4.0, 2.0]},
    "against": {"ids": ["p1"], "negative": [7, "p7"]},
    "against vectors": {"ids": ["p1"], "negative_vectors": NEW[1]},
    "against all": {
        "ids": ["p1", 2],
        "vectors": NEW[1:2],
        "weights": [1.0, 3.0, 2.0],
        "negative": 7,
        "negative_vectors": list(NEW[2:4]),
    },
}


def as_query(query, places, method):
    """Write a query of an index as one of a ranker."""
    ids = query.get("ids", [])
    ids = ids if isinstance(ids, list) else [ids]
    against = query.get("negative", [])
    against = against if isinstance(against, list) else [against]
    positive = np.reshape(query.get("vectors", []), (-1, 3))
    opposed = np.reshape(query.get("negative_vectors", []), (-1, 3))
    given = np.array(query.get("weights", np.ones(len(ids) + len(positive))), dtype=float)
    given /= given.max()
    weight = 0.0 if method in ("ran", "transduction") else -0.5
    weights = [
        *given[: len(ids)],
        *[weight] * len(against),
        *given[len(ids) :],
        *[weight] * len(opposed),
    ]
    return Query(
        [places[one] for one in [*ids, *against]], np.concatenate([positive, opposed]), weights
    )


@pytest.mark.parametrize("method", ["ran", "distance"])
@pytest.mark.parametrize("case", QUERIES)
def test_answers_are_those_of_the_ranker(changed, method, case):
    query = QUERIES[case]
    index, expected = changed
    ranker, places = plain(changed, method)
    (true,) = ranker.rank_many([as_query(query, places, method)])
    found = index.query(**query, top=100, method=method)
    assert found.ids == [expected.ids[place] for place in true.indices]
    scores = true.scores
    if method == "distance":  # an index shows distances, a ranker their squares
        scores = scaled_scores(scores, index.info()["metric"])
    np.testing.assert_allclose(found.scores, scores, rtol=1e-8, atol=1e-12)
    assert found.payload == {
        name: [expected.payload[one][name] for one in found.ids] for name in index.columns
    }


@pytest.mark.parametrize("method", RANKERS)
@pytest.mark.parametrize("case", QUERIES)
def test_every_method_in_every_mode(changed, method, case):
    query = QUERIES[case]
    index, expected = changed
    found = index.query(**query, top=100, method=method)
    ids = np.atleast_1d(np.array(query.get("ids", []), dtype=object)).tolist()
    against = np.atleast_1d(np.array(query.get("negative", []), dtype=object)).tolist()
    examples = {*ids, *against}
    assert set(found.ids) == set(expected.ids) - examples
    assert (np.diff(found.scores) <= 0).all()
    with_them = index.query(**query, top=100, method=method, include_query=True)
    assert set(with_them.ids) == set(expected.ids)
    assert [one for one in with_them.ids if one not in examples] == found.ids
    short = index.query(**query, top=7, method=method)
    assert short.ids == found.ids[:7]
    assert [row["rank"] for row in short.rows()] == list(range(1, 8))
    assert [row["id"] for row in short.rows()] == short.ids
    assert list(short) == short.ids
    assert len(short) == 7


def test_negative_examples_pull_down(changed):
    index, _ = changed
    by_distance = ("distance", "k_reciprocal", "query_expansion")  # which add what pushes away
    for method in [name for name in RANKERS if name not in by_distance]:
        plain = index.query("p1", top=100, method=method)
        against = index.query("p1", negative=plain.ids[0], top=100, method=method)
        before = dict(zip(plain.ids, plain.scores, strict=True))
        assert against.scores.sum() < sum(before[name] for name in against.ids)


def test_parameters_are_passed_on(changed):
    index, _ = changed
    ranker, places = plain(changed, "ran", {"smoothness": 2.0})
    found = index.query(3, smoothness=2.0, top=20)
    np.testing.assert_allclose(found.scores, ranker.rank(places[3], top=20).scores, rtol=1e-8)
    assert found.scores[0] != index.query(3, top=20).scores[0]
    few = index.query(3, n_neighbors=2, top=20)
    assert few.scores[0] != index.query(3, top=20).scores[0]


WRONG = {
    "nothing": ({}, "no example"),
    "only against": ({"negative": [3]}, "no example"),
    "nobody": ({"ids": "nobody"}, "'nobody'"),
    "removed": ({"ids": [0, 3]}, "ids 0"),
    "twice": ({"ids": ["p1", "p1"]}, "'p1' is an example more than once"),
    "for and against": ({"ids": ["p1"], "negative": "p1"}, "'p1' is an example more than once"),
    "dimension": ({"vectors": [1.0, 2.0]}, "shape"),
    "NaN": ({"vectors": [1.0, 2.0, np.nan]}, "NaN"),
    "weights": ({"ids": [3], "weights": [1.0, 2.0]}, "one weight for each"),
    "negative weight": ({"ids": [3, 4], "weights": [1.0, -1.0]}, "above zero"),
    "top": ({"ids": 3, "top": 0}, "top is 0"),
    "offset": ({"ids": 3, "offset": -1}, "offset is -1"),
    "diversity": ({"ids": 3, "diversity": 2}, "diversity is 2"),
    "method": ({"ids": 3, "method": "best"}, "must be one of"),
    "parameter": ({"ids": 3, "smoothnes": 2}, "smoothnes"),
    "metric": ({"ids": 3, "metric": "cosine"}, "metric"),
    "where": ({"ids": 3, "where": "prize < 3"}, "no column 'prize'"),
    "where no text": ({"ids": 3, "where": 5}, "where is 5"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_asked(changed, case):
    index, _ = changed
    query, message = WRONG[case]
    with pytest.raises(InputError, match=message):
        index.query(**query)


@pytest.mark.parametrize("method", RANKERS)
@pytest.mark.parametrize("where", ['color = "red" and not sold', "price > 20", "id like 'p%'"])
def test_a_filter_leaves_the_graph_whole(changed, method, where):
    index, _ = changed
    everything = index.query("p1", top=100, method=method)
    slots = backend_of(index).store.matching(where)
    matching = set(backend_of(index).store.ids_of(slots))
    assert 3 < len(matching) < 55
    true = [row for row in everything.rows() if row["id"] in matching]
    for top in (1, 3, 100):
        found = index.query("p1", top=top, method=method, where=where)
        assert found.ids == [row["id"] for row in true[:top]]
        np.testing.assert_allclose(found.scores, [row["score"] for row in true[:top]], rtol=1e-8)


def test_filters_that_match_little(changed):
    index, _ = changed
    last = index.query(3, top=100).ids[-1]
    assert index.query(3, where=f"id = {last!r}").ids == [last]
    for settings in ({}, {"diversity": 0.5}, {"offset": 5}, {"include_query": True}):
        assert index.query(3, where="price > 1000", **settings).ids == []
    assert index.query(3, where="id = 3").ids == []
    assert index.query(3, where="id = 3", include_query=True).ids == [3]
    assert index.query(3, where="id != 3", top=2).ids == index.query(3, top=2).ids


@pytest.mark.parametrize("method", RANKERS)
@pytest.mark.parametrize("settings", [{}, {"diversity": 0.4}, {"where": "price > 10"}])
def test_pages_follow_each_other(changed, method, settings):
    index, _ = changed
    first = index.query(3, top=10, method=method, **settings)
    second = index.query(3, top=10, offset=10, method=method, **settings)
    both = index.query(3, top=20, method=method, **settings)
    assert first.ids + second.ids == both.ids
    np.testing.assert_allclose([*first.scores, *second.scores], both.scores, rtol=1e-12)
    assert [row["rank"] for row in second.rows()] == list(range(11, 21))
    beyond = index.query(3, offset=1000, method=method, **settings)
    assert beyond.ids == []
    assert not second.ranking.solution.certified


def test_diverse_results(changed):
    index, _ = changed
    ranked = index.query("p1", top=100)
    found = index.query("p1", top=10, diversity=0.7)
    X = index.vectors(ranked.ids)
    between = ((X[:, None] - X) ** 2).sum(axis=2)
    order = diversify(ranked.scores, between, 10, 0.7)
    assert found.ids == [ranked.ids[place] for place in order]
    assert found.ids != ranked.ids[:10]
    assert not found.ranking.solution.certified
    assert index.query("p1", diversity=0.0).ids == ranked.ids[:10]


@pytest.fixture(scope="module")
def large():
    """Return an index whose queries are solved locally, and all scores by a full solve."""
    payload = {"place": list(range(6000))}
    with Index.build(MOONS, payload=payload, n_neighbors=6) as index:
        index.remove(range(0, 6000, 7))
        left = [i for i in range(6000) if i % 7]
        exact = RAN(n_neighbors=6, solver="direct").fit(MOONS[left])
        yield index, left, exact


@pytest.mark.parametrize("where", [None, "place >= 2500", "place between 3000 and 3020"])
def test_certified_is_honest(large, where):
    index, left, exact = large
    n_certified = 0
    for query in (1, 2501, 3011, 5997):
        found = index.query(query, top=10, where=where)
        full = exact.rank(left.index(query))
        scores = dict(zip((left[i] for i in full.indices), full.scores, strict=True))
        bound = found.ranking.solution.bound + full.solution.bound
        for name, score in zip(found.ids, found.scores, strict=True):
            assert abs(score - scores[name]) <= bound
        matches = {
            None: lambda place: True,
            "place >= 2500": lambda place: place >= 2500,
            "place between 3000 and 3020": lambda place: 3000 <= place <= 3020,
        }[where]
        outside = [scores[one] for one in scores if matches(one) and one not in found.ids]
        assert all(matches(one) for one in found.ids)
        least = min(scores[one] for one in found.ids)
        assert max(outside) <= least + 2 * bound
        if found.ranking.solution.certified:
            n_certified += 1
            assert max(outside) <= least + full.solution.bound
    assert n_certified == 4 or where is not None


def test_pages_of_local_answers(large):
    index, _, _ = large
    for query in (1, 2501, 5997):
        pages = [index.query(query, top=10, offset=offset).ids for offset in (0, 10)]
        assert pages[0] + pages[1] == index.query(query, top=20).ids


@pytest.mark.parametrize("name", RANKERS)
def test_diverse_results_may_include_the_query(name):
    X = np.random.default_rng(0).normal(size=(60, 3))
    with Index.build(X) as index:
        found = index.query(
            [4, 9], negative=3, top=60, method=name, diversity=0.5, include_query=True
        )
        assert set(found.ids[:2]) == {4, 9}
        assert found.ids[-1] == 3
        assert sorted(found.ids) == list(range(60))


def test_one_id_is_not_taken_for_several():
    with Index.build(np.eye(120)) as index:
        for wrong in (b"ab", bytearray(b"a"), {97: 98}):
            with pytest.raises(InputError, match="ids are whole numbers or texts"):
                index.remove(wrong)
        index.remove(np.array(97))
        assert len(index) == 119


def test_a_filter_that_changes_nothing_leaves_the_proof():
    with Index.build(MOONS) as index:
        plain, filtered = index.query(5), index.query(5, where="id >= 0")
        assert plain.ranking.solution.certified
        assert filtered.ids == plain.ids
        np.testing.assert_allclose(filtered.scores, plain.scores, atol=1e-4)


def test_matching_points_out_of_reach_follow_by_plain_distance():
    X = np.vstack([sheets(5500, n_sheets=1).X, sheets(300, n_sheets=1, seed=1).X + 50.0])
    with Index.build(X, payload={"far": [i >= 5500 for i in range(5800)]}) as index:
        found = index.query(7, top=20, where="far")
        assert not found.scores.any()
        order = np.argsort(((X[5500:] - X[7]) ** 2).sum(axis=1), kind="stable")[:20]
        assert found.ids == (5500 + order).tolist()
        assert found.ids == index.query(7, top=20, where="far", method="distance").ids


def test_an_index_tells_what_it_is_and_what_it_knows_of_points():
    index = Index.build(np.eye(9), payload={"size": range(9)})
    assert "9 points x 9" in repr(index)
    assert index.payload([3, 1]) == {"size": [3, 1]}
    index.close()
    assert repr(index) == "Index(closed)"


def test_queries_with_different_budgets_share_one_fitted_ranker():
    with Index.build(datasets.load("moons").X) as index:
        plain = index.query(3, top=5)
        for budget in ("auto", 40, None):
            found = index.query(3, top=5, budget=budget)
            assert found.ids == plain.ids  # up to 5,000 points answers are exact in any case
        assert len(fitted_rankers(index)) == 1
        with pytest.raises(InputError, match="budget is 0") as caught:
            index.query(3, budget=0)
        assert caught.value.argument == "parameters.budget"
        with pytest.raises(InputError, match="'lcdp' has no parameter 'budget'"):
            index.query(3, method="lcdp", budget=40)


def test_queries_with_different_fusions_share_one_fitted_ranker():
    X = datasets.load("moons").X
    with Index.build(X, n_neighbors=10) as index:
        for fusion in ("none", "auto", 2.5, "reciprocal_rank", 0):
            true = RAN(n_neighbors=10, fusion=fusion).fit(X).rank(3, top=20)
            found = index.query(3, top=20, fusion=fusion, budget=40)
            assert found.ids == true.indices.tolist()
            np.testing.assert_allclose(found.scores, true.scores, rtol=1e-8)
            assert found.ranking.solution.fused == true.solution.fused
            assert {*found.rows()[0]} == {
                *("rank", "id", "score", "payload"),
                *(() if true.distances is None else ("shape", "distance")),
            }
        assert index.query(3, top=20).ids == index.query(3, top=20, fusion="auto").ids
        assert len(fitted_rankers(index)) == 1
        with pytest.raises(InputError, match=r"fusion is 'both'.*the weight of dist") as caught:
            index.query(3, fusion="both")
        assert caught.value.argument == "parameters.fusion"
        with pytest.raises(InputError, match="'distance' has no parameter 'fusion'"):
            index.query(3, method="distance", fusion="none")


def test_marks_and_reasons_keep_the_fusion_of_the_query():
    with Index.build(datasets.load("moons").X) as index:
        found = index.query(3, top=5, fusion=2.5)
        again = found.refine(right=found.ids[0])
        assert again.ranking.solution.fused.weight == 2.5
        assert found.explain(found.ids[1]).explanation.fused.weight == 2.5
        assert index.query(3, fusion="none").explain(7).explanation.fused is None
