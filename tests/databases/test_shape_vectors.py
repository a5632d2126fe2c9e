"""The recipes of docs/shape_vectors.md for databases that run as servers."""

import numpy as np
import psycopg
import pytest
from databases.servers import postgresql
from pymilvus import DataType, MilvusClient

from rankfold import datasets
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
