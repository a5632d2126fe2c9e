"""What every database must do, so that the rest of rankfold need not know which one it is."""

import numpy as np
import pytest
from databases.backends import BACKENDS, COLORS, TABLE, ScannedPoints

from rankfold.databases.backend import Adjacency, StoredRow
from rankfold.errors import DatabaseError, InputError

N = 2_600
KINDS = [("int", "cosine"), ("text", "euclidean")]
IN_FULL = "postgresql"
"""The database that quick tests see with every kind of key and metric."""


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(
            (name, *kind),
            id="-".join((name, *kind)),
            marks=() if name == IN_FULL or kind == KINDS[0] else pytest.mark.slow,
        )
        for name in BACKENDS
        for kind in KINDS
    ],
)
def pair(request, tmp_path_factory):
    """A collection, and what is in it; tests leave both as they were."""
    name, *kind = request.param
    points = ScannedPoints.make(N, *kind)
    made = BACKENDS[name](tmp_path_factory.mktemp(name), points)
    yield made, points
    made.database.close()


@pytest.fixture
def attached(pair):
    """The same with some rows and a manifest, which are removed in the end."""
    made, points = pair
    rows = [row_of(points, place) for place in range(40)]
    made.database.write_manifest({"k": 3, "metric": points.metric})
    made.database.write_rows(rows)
    yield made.database, points, rows
    made.database.detach()


def row_of(points, place, width=5, seed=0):
    rng = np.random.default_rng([seed, place])
    nearest = rng.choice(N, 4, replace=False)
    others = np.sort(rng.choice(N, width, replace=False))
    return StoredRow(
        points.keys[place],
        int(rng.integers(-(2**63), 2**63 - 1)),
        Adjacency(
            [points.keys[other] for other in nearest], np.sort(rng.random(4, dtype=np.float32))
        ),
        Adjacency(
            [points.keys[other] for other in others],
            rng.random(width, dtype=np.float32) * np.float32(1e-20),
        ),
    )


def same_row(found, row):
    assert (found.key, found.checksum) == (row.key, row.checksum)
    for one, other in ((found.nearest, row.nearest), (found.edges, row.edges)):
        assert list(one.neighbors) == other.neighbors
        assert one.weights.dtype == np.float32
        np.testing.assert_array_equal(one.weights, other.weights)


def expected(points, vector):
    """Return squared distances to all points, in the straightforward way."""
    vectors, vector = points.vectors.astype(float), vector.astype(float)
    if points.metric == "cosine":
        cosines = vectors @ vector / np.linalg.norm(vectors, axis=1) / np.linalg.norm(vector)
        return 2 - 2 * cosines
    return ((vectors - vector) ** 2).sum(axis=1)


def shape_of(points, vectors):
    """Return vectors as databases may give them: for cosine they may have length one."""
    if points.metric == "cosine":
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


def test_it_knows_the_collection(pair):
    made, points = pair
    database = made.database
    assert (database.metric, database.n_features) == (points.metric, 8)
    assert database.count() == N
    assert TABLE in database.name


def test_scan_yields_every_point_once_in_order(pair):
    made, points = pair
    made.database.points_at_once = 1_000
    pages = list(made.database.pages())
    assert [len(page.keys) for page in pages] == [1_000, 1_000, 600]
    assert [key for page in pages for key in page.keys] == points.keys
    vectors = np.concatenate([page.vectors for page in pages])
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(
        shape_of(points, vectors), shape_of(points, points.vectors), rtol=1e-6, atol=1e-7
    )


def test_vectors_are_those_that_are_there(pair):
    made, points = pair
    strangers = ["nobody", 'o\'hara "x" \\', -4, 10**12]
    page = made.database.vectors([*points.keys[5:9], *strangers])
    assert sorted(page.keys) == points.keys[5:9]
    order = [points.keys.index(key) for key in page.keys]
    wanted = shape_of(points, points.vectors[order])
    np.testing.assert_allclose(shape_of(points, page.vectors), wanted, rtol=1e-6, atol=1e-7)
    assert made.database.vectors([]).vectors.shape == (0, 8)


def test_search_is_numpys(pair):
    made, points = pair
    vectors = np.random.default_rng(3).normal(size=(3, 8)).astype(np.float32)
    hits = made.database.search(vectors, 12)
    assert len(hits) == 3
    for found, vector in zip(hits, vectors, strict=True):
        distances = expected(points, vector)
        assert found.neighbors == [points.keys[place] for place in np.argsort(distances)[:12]]
        np.testing.assert_allclose(found.weights, np.sort(distances)[:12], rtol=1e-5)


def test_search_within_a_filter(pair):
    made, points = pair
    vector = points.vectors[:1]
    (found,) = made.database.search(vector, 10, made.where(COLORS[2]))
    distances = expected(points, vector[0])
    distances[np.arange(N) % 3 != 2] = np.inf
    assert found.neighbors == [points.keys[place] for place in np.argsort(distances)[:10]]


def test_payload_has_neither_vectors_nor_the_graph(attached):
    database, points, _ = attached
    found = database.payload([*points.keys[:3], "nobody"])
    assert found == {points.keys[place]: points.payload(place) for place in range(3)}


def test_matching_by_the_databases_own_filter(pair):
    made, points = pair
    some = [*points.keys[:30], "nobody", -4]
    assert made.database.matching(some, None) == set(points.keys[:30])
    assert made.database.matching(some, made.where("o'range")) == set(points.keys[2:30:3])
    assert made.database.matching([], made.where("red")) == set()


def test_a_wrong_filter_is_the_callers_fault(pair):
    made, points = pair
    if made.wrong is None:
        pytest.skip("it takes what it is given")
    for call in (
        lambda where: made.database.matching(points.keys[:3], where),
        lambda where: made.database.search(points.vectors[:1], 3, where),
    ):
        for where in (made.wrong, 7):
            with pytest.raises(InputError) as caught:
                call(where)
            assert caught.value.argument == "where"


def test_rows_are_read_as_they_were_written(attached):
    database, points, rows = attached
    found = database.rows(points.keys[:50])
    assert set(found) == set(points.keys[:40])
    for row in rows:
        same_row(found[row.key], row)
    edges = database.edges([points.keys[3], points.keys[45], "nobody"])
    assert list(edges) == [points.keys[3]]
    assert list(edges[points.keys[3]].neighbors) == rows[3].edges.neighbors
    np.testing.assert_array_equal(edges[points.keys[3]].weights, rows[3].edges.weights)


def test_all_rows_are_read(attached, monkeypatch):
    database, _, rows = attached
    monkeypatch.setattr(database, "records_at_once", 15)
    pages = list(database.scan_rows())
    assert max(map(len, pages)) <= 15
    found = {row.key: row for page in pages for row in page}
    assert len(found) == sum(map(len, pages)) == 40
    for row in rows:
        same_row(found[row.key], row)


def test_rows_are_replaced_and_removed(attached):
    database, points, rows = attached
    database.write_rows([other := row_of(points, 3, width=2, seed=1), row_of(points, 60)])
    database.remove_rows([points.keys[4], points.keys[1_000]])
    found = database.rows(points.keys)
    assert set(found) == set(points.keys[:40]) - {points.keys[4]} | {points.keys[60]}
    same_row(found[points.keys[3]], other)
    same_row(found[points.keys[5]], rows[5])


def test_rows_may_be_long_or_empty(attached):
    """A point that nearly all others list: more than some databases store as one text."""
    database, points, _ = attached
    hub, hermit = row_of(points, 0, width=N - 1, seed=2), row_of(points, 1, width=0)
    (near, weights), nothing = hub.edges, Adjacency([], np.empty(0, dtype=np.float32))
    hub = StoredRow(hub.key, 0, nothing, Adjacency(near * 4, np.tile(weights, 4)))
    database.write_rows([hub, hermit])
    found = database.rows(points.keys[:2])
    same_row(found[hub.key], hub)
    same_row(found[hermit.key], hermit)


def test_the_manifest(pair):
    made, points = pair
    database = made.database
    assert database.read_manifest() is None
    assert database.edges(points.keys[:3]) == database.rows(points.keys[:3]) == {}
    assert list(database.scan_rows()) == []
    try:
        for manifest in ({"k": 5, "date": "2030-01-01"}, {"note": 'say "no" ä', "x": [0.1, None]}):
            database.write_manifest(manifest)
            assert database.read_manifest() == manifest
        row = row_of(points, 2)
        with database.transaction():
            database.write_rows([row])
        other = made.again()
        found, rows = other.begin([points.keys[2], points.keys[3]])
        assert found == manifest
        assert list(rows) == [points.keys[2]]
        same_row(rows[points.keys[2]], row)
    finally:
        database.detach()
    assert database.begin(points.keys[:3]) == (None, {})


def test_nothing_of_the_users_data_is_changed(pair):
    made, points = pair
    before, names = made.contents()
    made.database.write_manifest({"k": 5})
    made.database.write_rows(row_of(points, place) for place in range(N))
    made.database.remove_rows(points.keys[:10])
    made.database.detach()
    after, names_after = made.contents()
    assert after == before
    assert names_after == names
    made.database.detach()  # does no harm
    assert made.contents()[1] == names


def test_edges_take_one_exchange(attached):
    database, points, _ = attached
    database.write_rows(row_of(points, place) for place in range(2_500))
    before = database.round_trips
    assert len(database.edges(points.keys[:2_500])) == 2_500
    assert database.round_trips == before + 1
    database.search(points.vectors[:1], 20)
    database.payload(points.keys[:20])
    database.matching(points.keys[:2_500], None)
    assert database.round_trips == before + 4


def test_rows_around_a_point(attached):
    database, points, rows = attached
    place = 7
    nearest = np.argsort(expected(points, points.vectors[place]))[:1_500]
    wanted = {points.keys[other] for other in nearest if other < 40}
    before = database.round_trips
    found = database.around(points.keys[place], 1_500)
    assert database.round_trips <= before + 3
    assert len(wanted) > 10
    assert wanted - {points.keys[place]} <= set(found) <= set(points.keys[:40])
    np.testing.assert_array_equal(
        found[min(found)].weights, rows[min_place(points, found)].edges.weights
    )
    stranger = max(points.keys) + 1 if not points.is_text else "f" * 8 + points.keys[0][8:]
    assert database.around(stranger, 10) == {}


def min_place(points, found):
    return points.keys.index(min(found))


def test_points_that_are_gone_are_left_out(tmp_path, pair, request):
    name, *kind = request.node.callspec.params["pair"]
    points = ScannedPoints.make(30, *kind)
    made = BACKENDS[name](tmp_path, points)
    database, left = made.database, points.keys[4:]
    database.write_manifest({})
    database.write_rows(small(points, place) for place in range(20))
    made.delete(points.keys[:4])
    assert database.count() == 26
    assert database.matching(points.keys, None) == set(left)
    database.points_at_once = 7
    assert [key for page in database.pages() for key in page.keys] == left
    assert set(database.payload(points.keys)) == set(left)
    assert set(database.vectors(points.keys).keys) == set(left)
    database.write_rows(small(points, place) for place in range(30))
    assert set(left) <= set(database.edges(points.keys))
    database.remove_rows(points.keys)
    assert database.edges(points.keys) == {}
    database.close()


def small(points, place):
    number = np.ones(1, dtype=np.float32)
    near, beside = (Adjacency(some, number) for some in (points.keys[:1], points.keys[1:2]))
    return StoredRow(points.keys[place], place, near, beside)


def test_what_is_not_there_is_told_with_what_is(pair):
    made, _ = pair
    if made.wrong is None:
        pytest.skip("it takes what it is given")
    with pytest.raises(DatabaseError, match=rf"no .* 'dogs'; it has:.*'{TABLE}'"):
        made.again(table="dogs")
    with pytest.raises(DatabaseError, match=r"no .* 'smell'; it has: .*'embedding'"):
        made.again(vector="smell")
