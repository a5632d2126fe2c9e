"""Databases to measure: started here, with their own search for neighbours and their size."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import psycopg
import pymilvus

from kit.counting import CountedDatabase
from rankfold.databases.milvus import Milvus, lite
from rankfold.databases.postgresql import PostgreSQL
from rankfold.databases.postgresql.arguments import Floats, teach_arrays
from rankfold.databases.postgresql.schema import hnsw_indexed

SERVERS = Path(__file__).parents[2] / "tests" / "databases" / "servers.py"


def folder_bytes(folder):
    """Return the size of all files in a folder."""
    return sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())


def postgresql_server():
    """Start the server that tests use, but let it wait for the disk."""
    spec = spec_from_file_location("servers", SERVERS)
    servers = module_from_spec(spec)
    spec.loader.exec_module(servers)
    return servers.PostgreSQLServer(durable=True)


class PostgreSQLHere:
    """A server of its own, or one whose address is given."""

    name = "PostgreSQL"
    package = "psycopg"

    def __init__(self, folder, address=None):
        address = address or postgresql_server().address()
        self.database = CountedDatabase(PostgreSQL(address), trips_of_end=1)
        self._connection = psycopg.connect(address, autocommit=True)
        teach_arrays(self._connection)

    def plain_search(self, index, top):
        """Return a function from a vector to its nearest points, as pgvector finds them."""
        sql = (
            f"SELECT slot FROM rankfold_{self._number(index)}_points "  # noqa: S608
            f"ORDER BY vector <-> (%s)::vector LIMIT {top}"
        )

        def search(vector):
            found = self._connection.execute(sql, [Floats(vector)]).fetchall()
            return [slot for (slot,) in found]

        return search

    def room(self, index):
        """Return the bytes of an index, by what they are for."""
        tables = f"rankfold_{self._number(index)}"
        search = self._bytes(f"pg_relation_size(to_regclass('{tables}_vectors'))")
        points = self._bytes(f"pg_total_relation_size('{tables}_points')") - search
        lists = self._bytes(f"pg_total_relation_size('{tables}_lists')")
        return {"points": points, "lists": lists, "search": search}

    def index_vectors(self, index, n_points, n_features):
        """Build the index for searches that a small index goes without."""
        with self._connection.transaction():
            sql = hnsw_indexed(self._number(index), n_points, n_features)
            self._connection.execute(sql.encode(), prepare=False)

    def _number(self, index):
        sql = "SELECT number FROM rankfold_tables WHERE name = %s"
        return self._connection.execute(sql, [index]).fetchone()[0]

    def _bytes(self, sql):
        return self._connection.execute(f"SELECT coalesce({sql}, 0)").fetchone()[0]

    def close(self):
        """Close the connection; a server that was started here ends with this process."""
        self._connection.close()


class MilvusLiteHere:
    """A file of Milvus Lite, which stays open, or a server whose address is given."""

    name = "Milvus Lite"
    package = "milvus-lite"

    def __init__(self, folder, address=None):
        self._file = None if address else Path(folder) / "milvus.db"
        self.database = CountedDatabase(Milvus(address or f"milvus://{self._file}"))
        uri = address.replace("milvus://", "http://") if address else lite.serve(self._file)[0]
        self._client = pymilvus.MilvusClient(uri)

    def plain_search(self, index, top):
        """Return a function from a vector to its nearest points, as Milvus finds them."""
        collection = next(n for n in self._client.list_collections() if n.endswith("vectors"))

        def search(vector):
            (hits,) = self._client.search(collection, [vector], limit=top)
            return [hit["slot"] for hit in hits]

        return search

    def room(self, index):
        """Return the bytes of the file, which has no other index in it."""
        return {"all": folder_bytes(self._file)}

    def close(self):
        """Close the client, and the file."""
        self._client.close()
        if self._file:
            lite.leave(self._file)


DATABASES = {"postgresql": PostgreSQLHere, "milvus": MilvusLiteHere}
"""By the beginning of their addresses."""
