"""A collection ranks as the same graph does in memory, and follows what its user changes."""

import numpy as np
import pytest
from databases.backends import BACKENDS, COLORS, ScannedPoints
from databases.memory import MemoryCollection

from rankfold import RAN, Collection, Distance, Index
from rankfold.databases import engine as engines
from rankfold.errors import DatabaseError, InputError
from rankfold.types import Query

FEW, MANY = 700, 6_000


def points_of(n, seed=0):
    rng = np.random.default_rng(seed)
    wide = rng.uniform(0, 40, size=(n, 2))
    return np.concatenate([wide, rng.normal(size=(n, 6))], axis=1).astype(np.float32)


@pytest.fixture(scope="module", params=BACKENDS)
def small(request, tmp_path_factory):
    """A collection that is small enough to be factorised, in every database."""
    points = ScannedPoints.make(FEW, "int", "euclidean")
    made = BACKENDS[request.param](tmp_path_factory.mktemp(request.param), points)
    with Collection.attach(made.database, n_neighbors=8) as collection:
        yield collection, points, made


@pytest.fixture(scope="module")
def large():
    """A collection whose regions are solved, and RAN on the same vectors."""
    vectors = points_of(MANY)
    payload = {key: {"third": key % 3} for key in range(MANY)}
    collection = Collection.attach(
        MemoryCollection(dict(enumerate(vectors)), payload), n_neighbors=10
    )
    return collection, vectors, RAN(n_neighbors=10).fit(vectors)


def same(results, keys, ranking, keep=None):
    """Require the members and scores of a ranking, or of those of its results that are kept."""
    places = [
        place for place, at in enumerate(ranking.indices.tolist()) if keep is None or keep(at)
    ]
    places = places[: len(results)]
    assert len(places) == len(results)
    np.testing.assert_allclose(results.scores, ranking.scores[places], atol=1e-5)
    assert set(results.ids) == {keys[at] for at in ranking.indices[places].tolist()}


QUERIES = {
    "a point": ({"ids": [3]}, [1.0]),
    "a set": ({"ids": [3, 90], "weights": [1.0, 2.0]}, [1.0, 2.0]),
    "negatives": ({"ids": [3], "negative": [14]}, [1.0, 0.0]),
}


def asked_of(points, kind):
    """Return a query by the users' own keys, and places and weights of the same in memory."""
    asked, weights = QUERIES[kind]
    named = {name: [points.keys[p] for p in some] if name != "weights" else some
             for name, some in asked.items()}  # fmt: skip
    return named, [*asked["ids"], *asked.get("negative", [])], weights


@pytest.mark.one_in(4)
@pytest.mark.parametrize("fusion", ["auto", "none", "reciprocal_rank"])
@pytest.mark.parametrize("kind", QUERIES)
def test_points_rank_as_in_memory_in_every_database(small, kind, fusion):
    collection, points, _ = small
    ranker = RAN(n_neighbors=8, fusion=fusion).fit(points.vectors)
    named, places, weights = asked_of(points, kind)
    results = collection.query(**named, top=25, fusion=fusion)
    same(results, points.keys, ranker.rank(places, weights=weights, top=25))


def test_unseen_vectors_rank_as_in_memory_in_every_database(small):
    collection, points, _ = small
    vector = points.vectors[5] + np.float32(0.2)
    ranker = RAN(n_neighbors=8).fit(points.vectors)
    same(collection.query(vectors=vector, top=25), points.keys, ranker.rank(vectors=vector, top=25))


@pytest.mark.parametrize("fusion", ["auto", "none"])
@pytest.mark.parametrize("kind", QUERIES)
def test_filters_keep_what_passes_in_every_database(small, kind, fusion):
    collection, points, made = small
    ranker = RAN(n_neighbors=8, fusion=fusion).fit(points.vectors)
    named, places, weights = asked_of(points, kind)
    everybody = ranker.rank(places, weights=weights, top=FEW - len(places))
    passing = sum(place % 3 == 1 for place in range(FEW) if place not in places)
    for top in (40, passing, FEW):
        results = collection.query(**named, where=made.where(COLORS[1]), top=top, fusion=fusion)
        assert len(results) == min(top, passing)
        same(results, points.keys, everybody, keep=lambda place: place % 3 == 1)
        assert set(results.payload["color"]) == {COLORS[1]}


def test_results_carry_payload_and_the_users_own_keys(small):
    collection, points, _ = small
    results = collection.query(points.keys[0], top=3)
    places = [points.keys.index(key) for key in results.ids]
    assert results.payload["price"] == places
    assert results.refine(right=results.ids[0]).query.ids == [points.keys[0], results.ids[0]]


@pytest.mark.parametrize("asked", [
    {"min_score": 0.02},
    {"min_score": 0.02, "fusion": "none", "offset": 2},
    {"min_score": -3.0, "method": "distance"},
    {"group_by": "color"},
    {"group_by": "color", "per_group": 3, "offset": 1},
    {"group_by": "color", "per_group": 2, "diversity": 0.0, "where": COLORS[1]},
    {"where": COLORS[1], "fusion": "reciprocal_rank"},
    {"where": COLORS[1], "fusion": "reciprocal_rank", "include_query": True, "offset": 3},
    {"where": COLORS[1], "fusion": "reciprocal_rank", "top": 400},
    {"where": COLORS[1], "fusion": "reciprocal_rank", "negative": 4},
    {"diversity": 0.4},
    {"diversity": 0.4, "min_score": 0.001},
], ids=str)  # fmt: skip
def test_thresholds_and_groups_are_those_of_an_index(small, asked):
    collection, points, made = small
    payload = {"color": [points.payload(place)["color"] for place in range(FEW)]}
    with Index.build(points.vectors, points.keys, payload, n_neighbors=8) as index:
        there, here = dict(asked), dict(asked)
        if "where" in asked:
            there["where"], here["where"] = made.where(COLORS[1]), f"color = '{COLORS[1]}'"
        for one in (there, here):
            one |= {"ids": points.keys[3], "top": asked.get("top", 12)}
            one |= {"negative": points.keys[4]} if "negative" in asked else {}
        found, expected = collection.query(**there), index.query(**here)
    assert found.ids == expected.ids
    assert len(found) > 0
    np.testing.assert_allclose(found.scores, expected.scores, atol=1e-5)
    assert found.payload["color"] == expected.payload["color"]
    if "min_score" in asked:
        assert found.proven == expected.proven
        assert found.threshold.complete == expected.threshold.complete


def test_groups_are_by_a_field_that_is_there():
    vectors = dict(enumerate(points_of(60)))
    payload = {key: {"tags": ["a"], "kind": key % 2} for key in vectors}
    collection = Collection.attach(MemoryCollection(vectors, payload), n_neighbors=5)
    gone = collection.query(7, group_by="kind").ids[0]
    del collection.database.points[gone]
    found = collection.query(7, group_by="kind")
    assert sorted(found.payload["kind"]) == [0, 1]
    assert gone not in found.ids
    assert found.ranking.solution.n_gone == 1
    for column, match in (("size", "'size' is no field .* kind, tags"), ("tags", "texts")):
        with pytest.raises(InputError, match=match) as caught:
            collection.query(7, group_by=column)
        assert caught.value.argument == "group_by"


def test_texts_are_embedded_as_by_an_index():
    vectors = points_of(60)
    database = MemoryCollection(dict(enumerate(vectors)))

    def embed(texts):
        return [vectors[int(text)] + np.float32(0.1) for text in texts]

    with pytest.raises(InputError, match="embedder is 'chatty'"):
        Collection.attach(database, embedder="chatty", n_neighbors=5)
    assert database.stored == {}
    Collection.attach(database, embedder=embed, n_neighbors=5)
    collection = Collection.open(database, embedder=embed)
    found = collection.query(text=["4", "9"], weights=[1.0, 2.0])
    expected = collection.query(vectors=embed("49"), weights=[1.0, 2.0])
    assert (found.ids, found.scores.tolist()) == (expected.ids, expected.scores.tolist())
    with pytest.raises(InputError, match="no embedder") as caught:
        Collection.open(database).query(text="4")
    assert caught.value.argument == "text"
    with pytest.raises(InputError, match="full-text search") as caught:
        collection.query(3, words="chess")
    assert caught.value.argument == "words"


def test_detach_leaves_the_users_data_as_it_was(tmp_path):
    for make in BACKENDS.values():
        (tmp_path / make.__name__).mkdir()
        made = make(tmp_path / make.__name__, ScannedPoints.make(60, "int", "euclidean"))
        before, names = made.contents()
        collection = Collection.attach(made.database, n_neighbors=4)
        with pytest.raises(InputError, match="has a graph of 60 points already"):
            Collection.attach(made.database, n_neighbors=4)
        collection.detach()
        after, left = made.contents()
        assert left == names
        assert repr(after) == repr(before)
        with pytest.raises(InputError, match="attach it first"):
            collection.query(0)
        collection.close()


@pytest.mark.parametrize("parameters", [
    {}, {"fusion": "none"}, {"fusion": "none", "budget": 900}, {"smoothness": 100.0},
    {"budget": None, "fusion": "none"},
], ids=str)  # fmt: skip
def test_regions_rank_as_in_memory(large, parameters):
    collection, vectors, _ = large
    ranker = RAN(n_neighbors=10, **parameters).fit(vectors)
    keys = range(MANY)
    for point in (5, 2017, 5999):
        collection._graph = None
        same(collection.query(point, top=20, **parameters), keys, ranker.rank(point, top=20))
    vector = vectors[77] + np.float32(0.1)
    ranking = ranker.rank(vectors=vector, top=20)
    same(collection.query(vectors=vector, top=20, **parameters), keys, ranking)
    ranking = ranker.rank_many([Query([5, 90, 300], None, [1.0, 1.0, 0.0])], top=20)[0]
    same(collection.query([5, 90], negative=300, top=20, **parameters), keys, ranking)


@pytest.mark.parametrize("fusion", ["auto", "none"])
def test_filters_of_a_region_rank_as_in_memory(large, fusion):
    collection, vectors, _ = large
    ranker = RAN(n_neighbors=10, fusion=fusion, budget=2000).fit(vectors)
    how = {"top": 40, "fusion": fusion, "budget": 2000}
    for third, point in ((0, 5), (1, 5), (2, 2017), (0, 5999)):

        def where(fields, third=third):
            return fields["third"] == third

        def passes(place, third=third):
            return place % 3 == third

        everybody = ranker.rank(point, top=900)
        same(collection.query(point, where=where, **how), range(MANY), everybody, passes)
        everybody = ranker.rank([point, 90, 300], weights=[1.0, 1.0, 0.0], top=900)
        found = collection.query([point, 90], negative=300, where=where, **how)
        same(found, range(MANY), everybody, passes)
        vector = vectors[point] + np.float32(0.1)
        everybody = ranker.rank(vectors=vector, top=900)
        found = collection.query(vectors=vector, where=where, **how)
        same(found, range(MANY), everybody, passes)


def test_reciprocal_ranks_are_counted_among_those_that_pass(large):
    collection, vectors, _ = large
    ranker = RAN(n_neighbors=10, fusion="none", budget=2_000).fit(vectors)
    for ids in (5, 2017, [6, 90]):
        shape = [at for at in ranker.rank(ids, top=1_400).indices.tolist() if at % 3 == 0][:500]
        away = ((vectors[shape] - vectors[np.atleast_1d(ids)][:, None]) ** 2).sum(axis=2)
        nearer = np.argsort(np.argsort(away.mean(axis=0)))
        scores = 1 / (61 + np.arange(len(shape))) + 1 / (61 + nearer)
        best = np.lexsort((shape, -scores))[:30]
        how = {"fusion": "reciprocal_rank", "budget": 2_000, "top": 30}
        found = collection.query(ids, where=lambda fields: fields["third"] == 0, **how)
        assert found.ids == [shape[at] for at in best]
        np.testing.assert_allclose(found.scores, scores[best], atol=1e-9)


def test_a_filter_that_few_pass_is_filled_up_by_distance(large):
    collection, vectors, _ = large
    far = np.argsort(-((vectors - vectors[5]) ** 2).sum(axis=1))[:3]
    allowed = {*far.tolist()}
    database = collection.database
    database.fields = {key: {"third": key % 3, "key": key} for key in database.points}
    results = collection.query(5, where=lambda fields: fields["key"] in allowed, top=10)
    assert results.ids == far[::-1].tolist()


def test_few_exchanges_cold_and_fewer_warm(large):
    collection, _, _ = large
    cold, warm = [], []
    for point in range(0, 600, 60):
        collection._graph = None
        cold.append(collection.query(point).ranking.solution.round_trips)
        warm.append(collection.query(point).ranking.solution.round_trips)
    assert np.median(cold) <= 8
    assert max(warm) <= 3


def test_results_that_are_gone_are_skipped_and_counted():
    collection = Collection.attach(MemoryCollection(dict(enumerate(points_of(900)))), n_neighbors=8)
    best = collection.query(0, top=30).ids
    for gone in best[:3]:
        del collection.database.points[gone]
    results = collection.query(0, top=5)
    assert results.ids == best[3:8]
    assert results.ranking.solution.n_gone == 3
    for gone in best[3:5]:  # as where rows lie in a field of the point
        del collection.database.points[gone]
        collection.database.remove_rows([gone])
    collection._graph = None
    assert not {*best[:5]} & {*collection.query(0, top=9).ids}


def test_new_points_answer_at_once_and_are_found_after_a_refresh():
    vectors = points_of(900)
    collection = Collection.attach(MemoryCollection(dict(enumerate(vectors[:890]))), n_neighbors=8)
    collection.database.put({key: vectors[key] for key in range(890, 900)})
    asked = collection.query(895, top=5)
    assert asked.ids == collection.query(vectors=vectors[895], top=5).ids
    with pytest.raises(InputError, match="no point 5000"):
        collection.query(5000)
    done = collection.refresh()
    assert (done["new"], done["removed"], done["moved"]) == (10, 0, 0)
    assert 895 in collection.query(asked.ids[0], top=200).ids


def change(collection):
    """Let points come, go and move, as a user does."""
    points, rng = collection.database.points, np.random.default_rng(4)
    for key in rng.choice(800, 9, replace=False).tolist():
        del points[key]
    for key in [k for k in rng.choice(800, 9, replace=False).tolist() if k in points]:
        points[key] = points[key] + np.float32(0.5)
    collection.database.put({1_000 + at: one for at, one in enumerate(points_of(9, seed=9))})


def test_a_refresh_stores_what_a_new_attachment_would():
    collection = Collection.attach(MemoryCollection(dict(enumerate(points_of(900)))), n_neighbors=8)
    change(collection)
    done = collection.refresh()
    assert 0 < done["rewritten"] < 800
    fresh = MemoryCollection(collection.database.points)
    Collection.attach(fresh, n_neighbors=8)
    same_graphs(collection.database, fresh)
    assert collection.refresh() == {"new": 0, "removed": 0, "moved": 0, "rewritten": 0}


def same_graphs(database, fresh):
    stored, expected = database.stored, fresh.stored
    assert stored.keys() == expected.keys()
    for key, row in expected.items():
        found = stored[key]
        assert found.checksum == row.checksum
        assert list(found.nearest.neighbors) == list(row.nearest.neighbors)
        assert list(found.edges.neighbors) == list(row.edges.neighbors)
        np.testing.assert_allclose(found.edges.weights, row.edges.weights, rtol=1e-5, atol=1e-7)
    facts, wanted = (one.manifest["graph"] for one in (database, fresh))
    assert facts["n_edges"] == wanted["n_edges"]


@pytest.mark.parametrize("after", [0, 1, 2])
def test_a_refresh_that_is_stopped_goes_on(monkeypatch, after):
    collection = Collection.attach(MemoryCollection(dict(enumerate(points_of(900)))), n_neighbors=8)
    change(collection)
    monkeypatch.setattr(collection.database, "rows_at_once", 50)
    write, calls = collection.database.store, []

    def stop(records):
        calls.append(len(calls))
        if len(calls) > after + 1:  # the first is the manifest
            raise KeyboardInterrupt
        write(records)

    monkeypatch.setattr(collection.database, "store", stop)
    with pytest.raises(KeyboardInterrupt):
        collection.refresh()
    monkeypatch.setattr(collection.database, "store", write)
    assert len(collection.query(1, top=5)) == 5  # some rows are old, some are new
    collection.refresh()
    fresh = MemoryCollection(collection.database.points)
    Collection.attach(fresh, n_neighbors=8)
    same_graphs(collection.database, fresh)


def test_an_attachment_that_is_stopped_can_be_made_again(monkeypatch):
    database = MemoryCollection(dict(enumerate(points_of(300))))
    with monkeypatch.context() as patched:
        patched.setattr(database, "write_rows", lambda rows: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            Collection.attach(database, n_neighbors=8)
    with pytest.raises(DatabaseError, match="attach it again"):
        Collection(database).query(0)
    assert len(Collection.attach(database, n_neighbors=8).query(0)) == 10


def test_explanations_name_the_users_keys(large):
    collection, _, _ = large
    results = collection.query(5, top=5)
    reason = results.explain(results.ids[3]).to_dict()
    assert reason["point"] == results.ids[3]
    assert reason["path"]["steps"][0]["start"] == 5
    assert reason["score"] == pytest.approx(results.scores[3], abs=1e-5)


def test_what_needs_the_whole_graph_is_refused(large):
    collection, _, _ = large
    for parameters, match in [
        ({"n_neighbors": 5}, "n_neighbors is 5"),
        ({"max_iter": 3}, "max_iter is 3"),
        ({"method": "pagerank"}, "method is 'pagerank'"),
        ({"speed": 3}, "no parameter 'speed'"),
    ]:
        with pytest.raises(InputError, match=match):
            collection.query(5, **parameters)


def test_what_is_remembered_is_bounded(large, monkeypatch):
    collection, _, _ = large
    collection.query(5)
    monkeypatch.setattr(engines, "MOST_POINTS", 10)
    monkeypatch.setattr(collection._graph, "n_points", 5)
    before = collection._graph
    collection.query(9)
    assert collection._graph is not before


def test_plain_distance_is_the_databases_own_search(large):
    collection, vectors, _ = large
    nearest = np.argsort(((vectors - vectors[5]) ** 2).sum(axis=1))[1:11]
    assert collection.query(5, method="distance").ids == nearest.tolist()


def test_ties_go_to_the_smaller_key_whatever_was_met_first():
    vectors = np.repeat(points_of(100), 4, axis=0)
    collection = Collection.attach(MemoryCollection(dict(enumerate(vectors))), n_neighbors=8)
    collection.query(399, top=50)  # meets large keys first
    plain = Distance().fit(vectors)
    for point in (0, 17, 398):
        found = collection.query(point, method="distance", top=5)
        assert found.ids == plain.rank(point, top=5).indices.tolist()


@pytest.mark.parametrize("asked", [
    {"method": "distance"},
    {"method": "distance", "include_query": True},
    {"fusion": "reciprocal_rank"},
    {},
], ids=str)  # fmt: skip
@pytest.mark.parametrize("names", [int, "{:04}".format])
def test_ties_go_by_key_in_large_collections_too(asked, names):
    line = np.zeros((5_100, 2), dtype=np.float32)
    line[:, 0] = np.random.default_rng(0).permutation(len(line))
    keys = [names(place) for place in range(len(line))]
    database = MemoryCollection(dict(zip(keys, line, strict=True)))
    collection = Collection.attach(database, n_neighbors=8)
    own = {name: value for name, value in asked.items() if name == "fusion"}
    plain = asked.get("method") == "distance"
    ranker = (Distance() if plain else RAN(n_neighbors=8, **own)).fit(line)
    inner = np.flatnonzero(abs(line[:, 0] - 2_000) < 9)
    for point in inner[::-1].tolist():  # large keys are met first
        expected = ranker.rank(point, top=9, include_query=asked.get("include_query", False))
        found = collection.query(keys[point], top=9, **asked)
        assert found.ids == [keys[at] for at in expected.indices.tolist()]


def test_keys_may_be_numbers_of_numpy(large):
    collection, vectors, _ = large
    assert collection.query(np.array([5, 9]), top=3).ids == collection.query([5, 9], top=3).ids
    np.testing.assert_array_equal(collection.vectors(np.array([5])), vectors[5:6])
