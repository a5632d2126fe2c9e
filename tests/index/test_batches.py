"""Many queries at once give what each gives alone, and a query of several examples is explicit."""

import numpy as np
import pytest

from rankfold import RAN, Distance, Index, Query, datasets
from rankfold.errors import InputError

DIGITS = datasets.load("digits")
X, UNSEEN = DIGITS.X[:600], DIGITS.X[600:606]


@pytest.fixture(scope="module")
def index():
    with Index.build(X, payload={"digit": DIGITS.labels[:600]}, n_neighbors=10) as built:
        yield built


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"where": "digit < 5"},
        {"offset": 3},
        {"diversity": 0.3},
        {"method": "distance"},
        {"include_query": True},
        {"n_jobs": 2},
        {"smoothness": 3.0, "fusion": "none"},
    ],
)
def test_a_batch_is_its_queries(index, options):
    batch = index.query_batch([5, 70], vectors=UNSEEN, top=8, **options)
    alone = {name: value for name, value in options.items() if name != "n_jobs"}
    asked = [{"ids": 5}, {"ids": 70}, *({"vectors": vector} for vector in UNSEEN)]
    assert len(batch) == len(asked)
    for results, query in zip(batch, asked, strict=True):
        expected = index.query(**query, top=8, **alone)
        assert results.ids == expected.ids
        assert results.payload == expected.payload
        np.testing.assert_allclose(results.scores, expected.scores, rtol=1e-9)
        assert [row["rank"] for row in results.rows()] == [r["rank"] for r in expected.rows()]


def test_results_of_a_batch_can_be_refined_and_explained(index):
    results = index.query_batch([5, 70], top=5)[1]
    assert results.explain(results.ids[0]).explanation.examples
    again = results.refine(wrong=results.ids[0])
    assert results.ids[0] not in again.ids


def test_search_returns_ids_and_scores(index):
    ids, scores = index.search(UNSEEN, k=4)
    assert scores.shape == (len(UNSEEN), 4)
    for row, vector in enumerate(UNSEEN):
        expected = index.query(vectors=vector, top=4)
        assert ids[row] == expected.ids
        np.testing.assert_allclose(scores[row], expected.scores, rtol=1e-9)


def test_an_empty_batch_is_answered(index):
    assert index.query_batch() == []
    assert index.query_batch([]) == []
    ids, scores = index.search(np.empty((0, X.shape[1])))
    assert (ids, len(scores)) == ([], 0)


@pytest.mark.parametrize("ranker", [RAN(n_neighbors=10), Distance()], ids=["ran", "distance"])
def test_search_of_a_ranker_is_its_rankings(ranker):
    ranker.fit(X)
    indices, scores = ranker.search(UNSEEN, k=7, n_jobs=2)
    for row, vector in enumerate(UNSEEN):
        expected = ranker.rank(vectors=vector, top=7)
        np.testing.assert_array_equal(indices[row], expected.indices)
        np.testing.assert_allclose(scores[row], expected.scores, rtol=1e-9)
    assert ranker.search(UNSEEN, k=10_000)[0].shape == (len(UNSEEN), len(X))


def test_an_array_of_rows_is_no_single_query(index):
    ranker = RAN(n_neighbors=10).fit(X)
    several = list(UNSEEN)
    for ask, batch in ((index.query, "query_batch"), (ranker.rank, "search")):
        with pytest.raises(InputError, match=rf"array of 6 rows.*list\(X\).*{batch}") as caught:
            ask(vectors=UNSEEN)
        assert caught.value.argument == "vectors"
        assert len(ask(vectors=several, top=5)) == len(ask(vectors=UNSEEN[:1], top=5)) == 5
    with pytest.raises(InputError, match="negative_vectors is an array of 6 rows"):
        index.query(5, negative_vectors=UNSEEN)
    one = ranker.rank_query(Query(vectors=UNSEEN), top=5)
    np.testing.assert_array_equal(one.indices, ranker.rank(vectors=several, top=5).indices)


@pytest.mark.parametrize("wrong", [UNSEEN[0], 3.0, UNSEEN[None]])
def test_searches_want_rows(index, wrong):
    for search in (index.search, RAN(n_neighbors=10).fit(X).search):
        with pytest.raises(InputError, match="a row for each query"):
            search(wrong)


def test_points_are_got_and_put(tmp_path):
    path = tmp_path / "index"
    payload = {"name": ["a", "b", "c"], "kind": [1, 2, None]}
    with Index.build(np.eye(3), ["x", "y", "z"], payload, path=path) as index:
        index.upsert([[2.0, 0, 0], [0, 0, 5.0]], ids=["y", "new"], payload={"name": ["B", "N"]})
        assert index.ids == ["x", "z", "y", "new"]
        found = index.get(["new", "y"], vectors=True)
        assert [point["id"] for point in found] == ["new", "y"]
        assert found[1]["payload"] == {"name": "B", "kind": None}
        np.testing.assert_array_equal(found[1]["vector"], [2.0, 0, 0])
        assert index.get("z") == [{"id": "z", "payload": {"name": "c", "kind": None}}]
        index.upsert(np.empty((0, 3)), ids=[])
        assert index.info()["pending_changes"] == 1
        for ids, message in ((["y", "y"], "more than once"), (["y"], "give as many")):
            with pytest.raises(InputError, match=message):
                index.upsert(np.eye(3)[:2], ids=ids)
        with pytest.raises(InputError, match="no points with the ids 'nobody'"):
            index.get("nobody")
    with Index.open(path) as again:
        assert again.ids == ["x", "z", "y", "new"]


def test_results_are_columns(index):
    results = index.query(5, top=3, offset=2)
    columns = results.columns()
    assert list(columns) == ["rank", "id", "score", "shape", "distance", "digit"]
    assert columns["rank"] == [3, 4, 5]
    assert columns["id"] == results.ids
    assert columns["digit"] == results.payload["digit"]
    assert columns["score"] == results.scores.tolist()
