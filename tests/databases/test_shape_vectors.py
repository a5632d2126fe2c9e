"""The recipes of docs/shape_vectors.md for databases that run as servers."""

import json

import numpy as np
import psycopg
import pytest
from click.testing import CliRunner
from databases.backends import ScannedPoints, lance
from databases.servers import postgresql
from psycopg import sql
from pymilvus import DataType, MilvusClient
from qdrant_client import QdrantClient, models

from rankfold import Collection, InputError, datasets
from rankfold.cli import main
from rankfold.databases.qdrant import Qdrant
from rankfold.embedding import ShapeEmbedding

NUMBERS = 32


@pytest.fixture(scope="module")
def vectors():
    X = datasets.load("digits").X[:300]
    return X, ShapeEmbedding(NUMBERS).fit_transform(X)


def expected(vectors, query):
    _, shape = vectors
    return np.argsort(-(shape @ shape[query]), kind="stable")[:10].tolist()


def text(vector):
    return str(vector.tolist())


def test_pgvector(vectors):
    X, shape = vectors
    with psycopg.connect(postgresql().address(), autocommit=True) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        connection.execute("CREATE TEMPORARY TABLE documents (id int, plain vector(64))")
        with connection.cursor() as cursor:
            rows = [(row, text(x)) for row, x in enumerate(X)]
            cursor.executemany("INSERT INTO documents VALUES (%s, %s)", rows)
            cursor.execute(f"ALTER TABLE documents ADD COLUMN shape vector({NUMBERS})")
            rows = [(text(one), row) for row, one in enumerate(shape)]
            cursor.executemany("UPDATE documents SET shape = %s WHERE id = %s", rows)
        connection.execute("CREATE INDEX ON documents USING hnsw (shape vector_ip_ops)")
        connection.execute("SET hnsw.ef_search = 200")
        connection.execute("SET enable_seqscan = off")
        found = connection.execute(
            "SELECT id, -(shape <#> %s) AS product, plain <-> %s AS distance FROM documents "
            "ORDER BY shape <#> %s LIMIT 10",
            [text(shape[7]), text(X[7]), text(shape[7])],
        ).fetchall()
    ids, products, distances = map(list, zip(*found, strict=True))
    assert ids == expected(vectors, 7)
    np.testing.assert_allclose(products, shape[ids] @ shape[7], rtol=1e-4)
    np.testing.assert_allclose(distances, np.linalg.norm(X[ids] - X[7], axis=1), rtol=1e-4)


def test_milvus(vectors, tmp_path):
    X, shape = vectors
    client = MilvusClient(str(tmp_path / "shape.db"))
    try:
        schema = client.create_schema()
        schema.add_field("id", DataType.INT64, is_primary=True)
        schema.add_field("plain", DataType.FLOAT_VECTOR, dim=64)
        schema.add_field("shape", DataType.FLOAT_VECTOR, dim=NUMBERS)
        index = client.prepare_index_params()
        index.add_index("plain", index_type="FLAT", metric_type="L2")
        params = {"M": 32, "efConstruction": 200}
        index.add_index("shape", index_type="HNSW", metric_type="IP", params=params)
        client.create_collection("documents", schema=schema, index_params=index)
        rows = [
            {"id": row, "plain": X[row].tolist(), "shape": shape[row].tolist()}
            for row in range(300)
        ]
        client.insert("documents", rows)
        client.flush("documents")
        client.load_collection("documents")
        found = client.search(
            "documents", data=[shape[7].tolist()], anns_field="shape", limit=10,
            output_fields=["plain"],
        )[0]  # fmt: skip
    finally:
        client.close()
    assert [hit["id"] for hit in found] == expected(vectors, 7)
    np.testing.assert_allclose(found[1]["entity"]["plain"], X[found[1]["id"]], rtol=1e-5)


def fill(connection, X):
    connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
    connection.execute("DROP TABLE IF EXISTS digits, digits_rankfold")
    connection.execute("CREATE TABLE digits (id int PRIMARY KEY, plain vector(64))")
    rows = [(row, text(x)) for row, x in enumerate(X)]
    connection.cursor().executemany("INSERT INTO digits VALUES (%s, %s)", rows)


def test_attach_writes_a_column_of_shape_vectors(vectors):
    X, _ = vectors
    address, odd = postgresql().address(), 'sh"ape; DROP TABLE digits'
    with psycopg.connect(address, autocommit=True) as connection:
        fill(connection, X)
        options = ["attach", address, "--table", "digits", "--neighbors", "10"]
        done = CliRunner().invoke(main, [*options, "--as-vector", odd, "--components", "32"])
        assert done.exit_code == 0, done.output
        shape = ShapeEmbedding(NUMBERS, n_neighbors=10).fit_transform(X.astype(np.float32))
        column = sql.Identifier(odd)
        found = connection.execute(
            sql.SQL("SELECT id, {}::text FROM digits ORDER BY id").format(column)
        ).fetchall()
        written = np.array([json.loads(one) for _, one in found])
        np.testing.assert_allclose(written @ written.T, shape @ shape.T, atol=1e-4)
        with Collection.open(address, "digits") as collection:
            assert collection.payload([3]) == {}
            assert collection.refresh()["rewritten"] == 0
            with pytest.raises(InputError, match="already"):
                collection.write_shape(odd)
        connection.execute("DROP TABLE digits, digits_rankfold")


def test_shape_vectors_go_into_a_named_vector_of_qdrant(vectors):
    X, _ = vectors
    client = QdrantClient(":memory:")
    spaces = {
        "plain": models.VectorParams(size=64, distance="Euclid"),
        "shape": models.VectorParams(size=NUMBERS, distance="Dot"),
    }
    client.create_collection("digits", vectors_config=spaces)
    points = [models.PointStruct(id=i, vector={"plain": x.tolist()}) for i, x in enumerate(X)]
    client.upsert("digits", points)
    collection = Collection.attach(Qdrant(client, "digits", "plain"), n_neighbors=10)
    embedding = collection.write_shape("shape", NUMBERS)
    shape = embedding.vectors()
    found = client.query_points("digits", shape[7].tolist(), using="shape", limit=10).points
    assert [one.id for one in found] == expected((X, shape), 7)
    with pytest.raises(InputError, match="no vector 'other' of 32 numbers by Dot"):
        collection.write_shape("other", NUMBERS)


def test_databases_that_take_no_second_vector_say_so(tmp_path):
    made = lance(tmp_path, ScannedPoints.make(60, "int", "euclidean"))
    collection = Collection.attach(made.database, n_neighbors=4)
    with pytest.raises(InputError, match=r"cannot be given a second vector: LanceDB"):
        collection.write_shape("shape", 8)
