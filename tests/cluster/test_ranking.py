import numpy as np
import pyarrow.parquet
import pytest

from rankfold import Index
from rankfold.cluster import rank_many
from rankfold.errors import InputError


@pytest.fixture(scope="module")
def built(X, tmp_path_factory):
    """An index whose ids are numbers and texts."""
    path = tmp_path_factory.mktemp("ranked") / "digits"
    ids = [row if row % 2 else f"p{row}" for row in range(len(X))]
    Index.build(X, ids, {"half": [row < 350 for row in range(len(X))]}, path=path).close()
    return path


@pytest.mark.parametrize("options", [{}, {"where": "half", "method": "distance"}])
def test_rankings_are_those_of_the_index_in_order(options, client, built, X):
    ids, vectors = [*range(1, 400, 4), "p8"], X[5:25] + 0.5
    rankings = rank_many(built, ids, vectors, scheduler=client, top=7, **options)
    with Index.open(built) as index:
        expected = [index.query(one, top=7, **options) for one in ids]
        expected += [index.query(vectors=one, top=7, **options) for one in vectors]
    assert rankings.ids == [results.ids for results in expected]
    np.testing.assert_array_equal(rankings.scores, [results.scores for results in expected])


def test_rankings_are_written_to_files(client, built, tmp_path):
    rankings = rank_many(built, [1, 3, 5], scheduler=client, top=4)
    for name in ("found.npz", "found.parquet"):
        rankings.save(tmp_path / name)
    with np.load(tmp_path / "found.npz") as arrays:
        assert arrays["query"].tolist() == [0] * 4 + [1] * 4 + [2] * 4
        assert arrays["asked"].tolist() == [1] * 4 + [3] * 4 + [5] * 4
        assert arrays["rank"].tolist() == [1, 2, 3, 4] * 3
        assert arrays["id"].tolist() == [str(one) for ids in rankings.ids for one in ids]
        np.testing.assert_array_equal(arrays["score"], np.concatenate(rankings.scores))
        columns = {name: arrays[name].tolist() for name in arrays.files}
    assert pyarrow.parquet.read_table(tmp_path / "found.parquet").to_pydict() == columns


def test_queries_by_vectors_have_no_name(client, built, X):
    named = rank_many(built, ["p8"], X[:1], scheduler=client, top=2).columns()
    assert named["asked"].tolist() == ["p8", "p8", "", ""]
    numbered = rank_many(built, [1], X[:1], scheduler=client, top=2).columns()
    assert numbered["asked"].tolist() == [1, 1, -1, -1]


def test_an_index_that_took_the_place_of_another_is_asked(client, X, tmp_path):
    for rows in (X[:40], X[40:90]):
        Index.build(rows, path=tmp_path / "one", replace=True).close()
        (ids,) = rank_many(tmp_path / "one", [0], scheduler=client, top=100).ids
        assert sorted(ids) == list(range(1, len(rows)))


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"ids": ["nobody"]}, "no points with the ids 'nobody'"),
        ({"vectors": [[1.0, 2.0]]}, r"vectors has shape \(1, 2\)"),
        ({}, "there are no queries"),
        ({"ids": [1], "top": 0}, "top is 0"),
        ({"ids": [1], "where": "price < 1"}, "price"),
    ],
)
def test_wrong_queries_are_named(asked, message, client, built):
    with pytest.raises(InputError, match=message):
        rank_many(built, scheduler=client, **asked)


def test_wrong_files_are_named(client, built, tmp_path):
    rankings = rank_many(built, [1], scheduler=client)
    with pytest.raises(InputError, match=r"ends in '\.csv'"):
        rankings.save(tmp_path / "found.csv")
    with pytest.raises(InputError, match="does not exist"):
        rankings.save(tmp_path / "nowhere" / "found.npz")
