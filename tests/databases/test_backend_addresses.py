"""Backends by their addresses, and what only one of them has."""

import subprocess
import sys

import lancedb
import numpy as np
import pyarrow as pa
import pytest
from databases.backends import TABLE, ScannedPoints, lance, milvus
from lancedb.index import IvfFlat
from pymilvus import DataType, MilvusClient
from qdrant_client import QdrantClient, models

from rankfold import Collection
from rankfold.databases.backend import Adjacency, StoredRow
from rankfold.databases.lancedb import LanceDB
from rankfold.databases.milvus import Milvus
from rankfold.databases.qdrant import Qdrant
from rankfold.errors import DatabaseError, InputError, UnreachableError

VECTORS = np.random.default_rng(0).normal(size=(300, 4)).astype(np.float32)
ONE = np.ones(1, dtype=np.float32)


@pytest.mark.parametrize(
    ("backend", "address"),
    [(Qdrant, "qdrant://:s3cret@127.0.0.1:1?tls=true"), (Milvus, "milvus://me:s3cret@127.0.0.1:1")],
)
def test_nobody_answers(backend, address):
    with pytest.raises(UnreachableError, match="does not answer") as caught:
        backend.open(address, "docs")
    assert "s3cret" not in str(caught.value)
    assert "127.0.0.1:1" in str(caught.value)


@pytest.mark.parametrize("backend", [Qdrant, Milvus, LanceDB])
def test_addresses_that_are_none(backend, tmp_path):
    scheme = backend.__name__.lower()
    for wrong in (
        f"{scheme}://me:s3cret@host:x",
        "mysql://me:s3cret@host",
        f"{scheme}://me:s3cret@host?tls=no",
        f"{scheme}://{tmp_path}/nothing",
    ):
        with pytest.raises(InputError) as caught:
            backend.open(wrong, "docs")
        assert "s3cret" not in str(caught.value)
    assert not list(tmp_path.iterdir())  # nothing was made there


def a_qdrant(folder, distance="Euclid", **more):
    client = QdrantClient(path=str(folder))
    params = models.VectorParams(size=4, distance=distance, **more)
    client.create_collection("docs", vectors_config=params)
    points = [models.PointStruct(id=i, vector=VECTORS[i].tolist()) for i in range(5)]
    client.upsert("docs", points)
    return client


# where it fails to lock a folder, qdrant-client leaves the file open
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_folder_of_qdrant_keeps_the_graph(tmp_path):
    a_qdrant(tmp_path).close()
    database = Qdrant.open(f"qdrant://{tmp_path}", "docs")
    database.write_manifest({"k": 1})
    database.write_rows([StoredRow(3, 7, Adjacency([1], ONE), Adjacency([2], ONE))])
    with pytest.raises(UnreachableError, match="already accessed"):
        Qdrant.open(f"qdrant://{tmp_path}", "docs")
    database.close()
    database = Qdrant.open(f"qdrant://{tmp_path}", "docs", key="id", metric="euclidean")
    manifest, rows = database.begin([3, 4])
    assert manifest == {"k": 1}
    assert rows[3].checksum == 7
    database.close()
    with pytest.raises(InputError, match="measures by 'euclidean'"):
        Qdrant.open(f"qdrant://{tmp_path}", "docs", metric="cosine")
    with pytest.raises(DatabaseError, match="no vector 'name'; it has: ''"):
        Qdrant.open(f"qdrant://{tmp_path}", "docs", "name")


@pytest.mark.parametrize("distance", ["Dot", "Manhattan"])
def test_products_are_refused(tmp_path, distance):
    with pytest.raises(DatabaseError, match=f"measures by {distance}.*Cosine or Euclid"):
        Qdrant(a_qdrant(tmp_path, distance), "docs")


def test_sets_of_vectors_are_refused():
    client = QdrantClient(":memory:")
    several = models.MultiVectorConfig(comparator="max_sim")
    params = models.VectorParams(size=4, distance="Cosine", multivector_config=several)
    client.create_collection("docs", vectors_config=params)
    with pytest.raises(DatabaseError, match="sets of vectors"):
        Qdrant(client, "docs")


def test_points_without_the_vector_are_not_there():
    client = QdrantClient(":memory:")
    space = models.VectorParams(size=4, distance="Cosine")
    client.create_collection("docs", vectors_config={"a": space, "b": space})
    for i in range(10):
        vector = {"a": VECTORS[i].tolist()} if i % 2 else {"b": VECTORS[i].tolist()}
        client.upsert("docs", [models.PointStruct(id=i, vector=vector)])
    database = Qdrant(client, "docs", "a")
    assert database.count() == 5
    database.points_at_once = 3
    assert [page.keys for page in database.pages()] == [[1, 3, 5], [7, 9]]
    assert database.vectors(range(4)).keys == [1, 3]
    with pytest.raises(InputError, match=r"choose a vector of .*'a', 'b'"):
        Qdrant(client, "docs")


def test_ids_of_qdrant_may_be_numbers_and_uuids_and_large():
    client = QdrantClient(":memory:")
    client.create_collection("d", vectors_config=models.VectorParams(size=4, distance="Cosine"))
    keys = [7, 2**64 - 1, "00000000-0000-0000-0000-000000000005"]
    points = [models.PointStruct(id=k, vector=VECTORS[0].tolist()) for k in reversed(keys)]
    client.upsert("d", points)
    database = Qdrant(client, "d")
    assert next(database.pages()).keys == keys
    weights = np.arange(3, dtype=np.float32)
    all_three = Adjacency(keys, weights)
    database.write_rows([StoredRow(key, 1, all_three, all_three) for key in keys])
    found = database.edges(keys)
    assert [found[key].neighbors for key in keys] == [keys] * 3


@pytest.mark.parametrize("make", [milvus, lance])
def test_keys_and_filters_break_out_of_nothing(tmp_path, make):
    """Texts with quotes are keys like others, and a filter never adds points to those given."""
    points = ScannedPoints.make(6, "text", "euclidean")
    points.keys = sorted(['"', "'", "\\", "') OR true --", '"] or name != "', "日本 {k}\n"])
    made = make(tmp_path, points)
    database = made.database
    database.points_at_once = 2
    assert [key for page in database.pages() for key in page.keys] == points.keys
    for key in points.keys:
        assert database.vectors([key]).keys == [key]
        assert database.matching([key], None) == {key}
    database.write_manifest({})
    near = Adjacency(points.keys, np.ones(len(points.keys), dtype=np.float32))
    database.write_rows([StoredRow(key, 1, near, Adjacency([key], ONE)) for key in points.keys])
    for key in points.keys:
        assert database.edges([key])[key].neighbors == [key]
    breaking = made.where("red") + ") or (" + made.where("green")
    assert database.matching(points.keys[2:3], breaking) <= {points.keys[2]}
    database.remove_rows(points.keys[:1])
    assert set(database.rows(points.keys)) == set(points.keys[1:])
    database.close()


@pytest.mark.slow
def test_a_file_of_milvus_lite_is_for_one_process(tmp_path):
    milvus(tmp_path, ScannedPoints.make(3, "int", "cosine"))
    code = (
        "import sys; from rankfold.databases.milvus import Milvus\n"
        "try: Milvus.open(sys.argv[1], 'docs')\n"
        "except Exception as error: sys.stdout.write(f'{type(error).__name__}: {error}')"
    )
    address = f"milvus://{tmp_path}/test.db"
    done = subprocess.run(
        [sys.executable, "-c", code, address], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("UnreachableError: ")
    assert "one process at a time" in done.stdout
    assert not done.stderr


def test_milvus_with_inner_products_is_refused(tmp_path):
    client = MilvusClient(str(tmp_path / "x.db"))
    schema = client.create_schema(auto_id=False)
    schema.add_field("id", DataType.INT64, is_primary=True)
    schema.add_field("v", DataType.FLOAT_VECTOR, dim=4)
    index = client.prepare_index_params()
    index.add_index("v", index_type="FLAT", metric_type="IP")
    client.create_collection("docs", schema=schema, index_params=index)
    with pytest.raises(DatabaseError, match=r"measures by IP.*COSINE or L2"):
        Milvus.open(f"milvus://{tmp_path}/x.db", "docs")


def a_lance(folder, keys, **columns):
    connection = lancedb.connect(folder)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(VECTORS[: len(keys)].ravel()), 4)
    return connection.create_table("docs", pa.table({"id": keys, "v": vectors, **columns}))


def test_lancedb_takes_the_metric_of_the_index(tmp_path):
    table = a_lance(tmp_path, list(range(300)))
    address = f"lancedb://{tmp_path}"
    assert LanceDB.open(address, "docs").metric == "euclidean"
    assert LanceDB.open(address, "docs", metric="cosine").exact
    table.create_index("v", config=IvfFlat(distance_type="cosine", num_partitions=1))
    database = LanceDB.open(address, "docs")
    assert (database.metric, database.exact) == ("cosine", False)
    (hits,) = database.search(VECTORS[4:5], 3)
    assert hits.neighbors[0] == 4
    with pytest.raises(InputError, match="measures by 'cosine'"):
        LanceDB.open(address, "docs", metric="euclidean")
    table.create_index("v", config=IvfFlat(distance_type="dot", num_partitions=1))
    with pytest.raises(DatabaseError, match="measures by dot"):
        LanceDB.open(address, "docs")


def test_keys_of_lancedb_name_one_point_each(tmp_path):
    a_lance(tmp_path, [1, 2, 2], other=["a", "b", "c"], weight=[0.5, 1.0, 2.0])
    address = f"lancedb://{tmp_path}"
    with pytest.raises(DatabaseError, match="2 more than once in 'id'"):
        next(LanceDB.open(address, "docs").pages())
    assert next(LanceDB.open(address, "docs", key="other").pages()).keys == ["a", "b", "c"]
    with pytest.raises(DatabaseError, match="no column of keys 'weight'; it has: 'id', 'other'"):
        LanceDB.open(address, "docs", key="weight")


def test_table_names_with_odd_characters_are_taken_to_the_letter(tmp_path):
    a_lance(tmp_path, [1, 2])
    for name in ("docs'; DROP TABLE docs", TABLE + "/../docs", ""):
        with pytest.raises(DatabaseError, match="has no table"):
            LanceDB.open(f"lancedb://{tmp_path}", name)


def test_columns_are_remembered_with_the_graph(tmp_path):
    a_lance(tmp_path, [1, 2, 3], sku=["a", "b", "c"])
    address = f"lancedb://{tmp_path}"
    with Collection.attach(address, "docs", key="sku", metric="cosine", n_neighbors=1):
        pass
    with Collection.open(address, "docs") as collection:
        assert collection.database.columns == {"vector": "v", "key": "sku"}
        assert collection.database.metric == "cosine"
        assert set(collection.query("a").ids) <= {"b", "c"}


def test_a_deleted_point_of_qdrant_leaves_no_edges_after_a_refresh():
    """Its row is gone with it; the rows beside it are found by their edges."""
    client = QdrantClient(":memory:")
    client.create_collection("docs", vectors_config=models.VectorParams(size=4, distance="Euclid"))
    points = [models.PointStruct(id=i, vector=VECTORS[i].tolist()) for i in range(100)]
    client.upsert("docs", points)
    collection = Collection.attach(Qdrant(client, "docs"), n_neighbors=4)
    client.delete("docs", [7, 50])
    assert collection.refresh()["removed"] == 2
    edges = collection.database.edges(range(100))
    assert len(edges) == 98
    assert not {7, 50} & {key for row in edges.values() for key in row.neighbors}
