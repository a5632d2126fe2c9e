import numpy as np
import pyarrow.parquet
import pytest
from cluster.conftest import MANY, check_same_index

from rankfold import Index
from rankfold.cluster import build_index
from rankfold.errors import InputError
from rankfold.neighbors import ExactEngine
from rankfold.storage import Store


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("kind", ["npy", "zarr", "parquet"])
def test_all_kinds_of_shards_give_the_index_of_the_whole(
    kind, metric, client, X, shards, whole, tmp_path
):
    parts = shards(kind, X)
    built = build_index(parts.shards, tmp_path / "made", scheduler=client, metric=metric)
    check_same_index(tmp_path / "made", whole(X, parts, metric=metric))
    assert (built.points, built.features, built.recall) == (*X.shape, 1.0)
    assert not list(tmp_path.glob(".rankfold-*"))


def test_it_opens_answers_and_changes_like_any_other(client, X, shards, tmp_path):
    parts = shards("parquet", X)
    build_index(parts.shards, tmp_path / "made", scheduler=client, source={"made": "in parts"})
    with Index.open(tmp_path / "made", write=True) as made, Index.build(X) as known:
        found, expected = made.query("p7", top=20, where="even"), known.query(7, top=100)
        even = [row for row in expected if row % 2 == 0][:20]
        assert found.payload["row"] == even
        made.add(X[:1] + 1, ids=["new"])
        made.remove("p0")
        assert len(made) == len(X)
        assert made.info()["source"] == {"made": "in parts"}


def test_cells_that_workers_fill_are_those_of_one_process(client, many, tmp_path):
    built = build_index(many / "points.npy", tmp_path / "made", scheduler=client, **MANY)
    check_same_index(tmp_path / "made", many / "whole")
    X, rng = np.load(many / "points.npy"), np.random.default_rng(1)
    with Store.open(tmp_path / "made") as store:
        assert store.settings["engine"]["index"] == "ivf"
        sample = rng.choice(len(X), 200, replace=False)
        lists = store.arrays["list_indices"][sample]
    true = ExactEngine(X).rows(sample, lists.shape[1]).indices
    shared = [np.isin(*rows).mean() for rows in zip(lists, true, strict=True)]
    assert built.recall >= MANY["recall"]
    assert abs(np.mean(shared) - built.recall) < 0.03


@pytest.mark.slow
def test_points_of_no_cells_are_searched_through_all(client, shards, whole, tmp_path):
    X = np.random.default_rng(0).normal(size=(20_010, 18)).astype(np.float32)
    parts, options = shards("npy", X), {"metric": "cosine", "recall": 1.0, "n_neighbors": 1}
    build_index(parts.shards, tmp_path / "made", scheduler=client, **options)
    with Store.open(tmp_path / "made") as store:
        assert store.settings["engine"]["index"] == "flat"
    check_same_index(tmp_path / "made", whole(X, parts, **options))


def test_columns_are_named_and_widened(client, tmp_path):
    for number, prices in enumerate(([1, 2], [0.5, None])):
        columns = {"name": [f"a{number}", f"b{number}"], "x": [0.0, 1.0 + number], "y": [3.0, 4.0]}
        table = pyarrow.table({**columns, "price": prices, "other": ["no", "no"]})
        pyarrow.parquet.write_table(table, tmp_path / f"{number}.parquet")
    built = build_index(
        tmp_path,
        tmp_path / "made",
        scheduler=client,
        n_neighbors=2,
        id_column="name",
        vector_columns=["x", "y"],
        payload_columns=["price"],
    )
    assert built.columns == {"price": "number"}
    assert built.layout == "plane"
    with Index.open(tmp_path / "made") as made:
        assert made.payload(made.ids) == {"price": [1.0, 2.0, 0.5, None]}
        assert made.ids == ["a0", "b0", "a1", "b1"]


def test_an_index_is_replaced_only_if_asked(client, X, shards, tmp_path):
    parts = shards("npy", X[:50])
    build_index(parts.shards, tmp_path / "made", scheduler=client, layout="none")
    with pytest.raises(InputError, match="exists already"):
        build_index(parts.shards, tmp_path / "made", scheduler=client)
    more = shards("zarr", X[:60])
    build_index(more.shards, tmp_path / "made", scheduler=client, layout="none", replace=True)
    with Index.open(tmp_path / "made") as made:
        assert (len(made), made.layout) == (60, None)
