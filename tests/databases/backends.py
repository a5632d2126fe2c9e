"""A collection in every database that rankfold attaches to: real ones, filled with the same points.

To add a database, write a function that makes a collection of `Points`, and enter it in `BACKENDS`.
"""

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID, uuid4

import lancedb
import numpy as np
import psycopg
import pyarrow as pa
from pymilvus import DataType, MilvusClient
from qdrant_client import QdrantClient, models
from sources.array_collection import ArrayCollection

from rankfold.databases.backend import Database
from rankfold.databases.lancedb import LanceDB
from rankfold.databases.milvus import Milvus
from rankfold.databases.postgresql import PostgreSQL
from rankfold.databases.qdrant import Qdrant

COLORS = ("red", "green", "o'range")
TABLE = "docs"


@dataclass
class ScannedPoints:
    """What a user has: keys in order, vectors, a color and a price."""

    keys: list
    vectors: np.ndarray
    metric: str

    @classmethod
    def make(cls, n, kind, metric, seed=0):
        rng = np.random.default_rng(seed)
        vectors = rng.normal(size=(n, 8)).astype(np.float32)
        keys = sorted(rng.choice(10 * n, n, replace=False).tolist())
        if kind == "text":
            keys = [str(UUID(int=key)) for key in keys]
        return cls(keys, vectors, metric)

    @property
    def is_text(self):
        return isinstance(self.keys[0], str)

    def payload(self, place):
        return {"color": COLORS[place % 3], "price": place}

    def shuffled(self):
        """Return places in an order that is not that of keys, as users write points."""
        return np.random.default_rng(1).permutation(len(self.keys)).tolist()


@dataclass
class Made:
    """A collection that was made.

    ``contents`` returns all that the user has, and names of all collections; ``where`` turns a
    color into a filter; ``wrong`` is a filter that the database does not understand, or None;
    ``delete`` removes points, as the user does; ``again`` opens the collection a second time, maybe
    with another table or vector.
    """

    database: Database
    contents: Callable
    where: Callable
    wrong: object
    delete: Callable
    again: Callable


def qdrant(folder, points):
    client = QdrantClient(":memory:")
    distance = {"cosine": "Cosine", "euclidean": "Euclid"}[points.metric]
    size = points.vectors.shape[1]
    spaces = {
        "embedding": models.VectorParams(size=size, distance=distance),
        "product": models.VectorParams(size=2, distance="Dot"),
    }
    client.create_collection(TABLE, vectors_config=spaces)
    client.upsert(
        TABLE,
        [
            models.PointStruct(
                id=points.keys[place],
                vector={"embedding": points.vectors[place].tolist(), "product": [1.0, 2.0]},
                payload=points.payload(place),
            )
            for place in points.shuffled()
        ],
    )

    def contents():
        found, _ = client.scroll(TABLE, limit=10**6, with_vectors=True)
        names = sorted(c.name for c in client.get_collections().collections)
        return {record.id: (record.payload, record.vector) for record in found}, names

    return Made(
        Qdrant(client, TABLE, "embedding", place="qdrant://test"),
        contents,
        lambda color: {"must": [{"key": "color", "match": {"value": color}}]},
        {"must": "what?"},
        lambda keys: client.delete(TABLE, keys),
        lambda table=TABLE, vector="embedding": Qdrant(client, table, vector, place="qdrant"),
    )


def milvus(folder, points):
    file = folder / "test.db"
    logging.getLogger("pymilvus").setLevel(logging.CRITICAL)
    client = MilvusClient(str(file))
    schema = client.create_schema(auto_id=False, enable_dynamic_field=True)
    if points.is_text:
        schema.add_field("name", DataType.VARCHAR, is_primary=True, max_length=100)
    else:
        schema.add_field("name", DataType.INT64, is_primary=True)
    schema.add_field("embedding", DataType.FLOAT_VECTOR, dim=points.vectors.shape[1])
    schema.add_field("color", DataType.VARCHAR, max_length=20)
    index = client.prepare_index_params()
    kind = {"cosine": "COSINE", "euclidean": "L2"}[points.metric]
    index.add_index("embedding", index_type="FLAT", metric_type=kind)
    client.create_collection(TABLE, schema=schema, index_params=index)
    client.insert(
        TABLE,
        [
            {
                "name": points.keys[place],
                "embedding": points.vectors[place],
                **points.payload(place),  # the price goes into the dynamic field
            }
            for place in points.shuffled()
        ],
    )

    def contents():
        found = client.query(TABLE, "", output_fields=["*"], limit=16_000)
        return {entity["name"]: dict(entity) for entity in found}, sorted(client.list_collections())

    def again(table=TABLE, vector="embedding"):
        return Milvus.open(f"milvus://{file}", table, vector)

    return Made(
        again(),
        contents,
        lambda color: f'color == "{color}"',
        "color ===",
        lambda keys: client.delete(TABLE, ids=keys),
        again,
    )


def lance(folder, points):
    connection = lancedb.connect(folder / "lance")
    order = points.shuffled()
    vectors = pa.array(points.vectors[order].ravel())
    table = connection.create_table(
        TABLE,
        pa.table(
            {
                "the key": [points.keys[place] for place in order],
                "embedding": pa.FixedSizeListArray.from_arrays(vectors, points.vectors.shape[1]),
                "color": [points.payload(place)["color"] for place in order],
                "price": [points.payload(place)["price"] for place in order],
            }
        ),
    )

    def contents():
        table.checkout_latest()
        return table.to_arrow(), connection.list_tables().tables

    def again(table=TABLE, vector="embedding"):
        address = f"lancedb://{folder}/lance"
        return LanceDB.open(address, table, vector, key="the key", metric=points.metric)

    def delete(keys):
        for key in keys:
            table.delete(f"`the key` = {key!r}")

    def where(color):
        color = color.replace("'", "''")
        return f"color = '{color}'"

    return Made(again(), contents, where, "color === 1", delete, again)


def postgresql(folder, points):
    from databases.servers import postgresql as server

    server, database = server(), f"test_{uuid4().hex}"
    server.run(f"CREATE DATABASE {database}")
    server.run("CREATE EXTENSION vector", database)
    kind = "uuid" if points.is_text else "bigint"
    server.run(
        f'CREATE TABLE docs ("the key" {kind} PRIMARY KEY, color text, price int, '
        "embedding vector(8), product vector(2))",
        database,
    )
    address = server.address(database)
    with psycopg.connect(address) as connection:
        names = 'docs ("the key", color, price, embedding)'
        with connection.cursor().copy(f"COPY {names} FROM STDIN") as copy:
            for place in points.shuffled():
                vector = json.dumps(points.vectors[place].tolist())
                copy.write_row((points.keys[place], *points.payload(place).values(), vector))

    def contents():
        rows = server.run('SELECT * FROM docs ORDER BY "the key"', database)
        names = server.run("SELECT relname FROM pg_class WHERE relname LIKE 'docs%'", database)
        return rows, sorted(names)

    def delete(keys):
        with psycopg.connect(address) as connection:
            one = f'DELETE FROM docs WHERE "the key" = %s::{kind}'  # noqa: S608
            connection.cursor().executemany(one, [(key,) for key in keys])

    def again(table=TABLE, vector="embedding"):
        return PostgreSQL.open(address, table, vector, metric=points.metric)

    def where(color):
        return "color = %(color)s", {"color": color}

    return Made(again(), contents, where, "color === 1", delete, again)


def arrays(folder, points):
    """Make a collection of the example in the docs."""
    fields = [points.payload(place) for place in range(len(points.keys))]
    database = ArrayCollection(points.keys, points.vectors, fields, points.metric)

    def delete(keys):
        for key in keys:
            del database.points[key], database.fields[key]

    return Made(
        database,
        lambda: ({k: (v.tobytes(), database.fields[k]) for k, v in database.points.items()}, []),
        lambda color: lambda fields: fields["color"] == color,
        None,
        delete,
        lambda: database,
    )


BACKENDS = {
    "qdrant": qdrant,
    "milvus": milvus,
    "lancedb": lance,
    "postgresql": postgresql,
    "the docs": arrays,
}
