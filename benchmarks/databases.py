"""What does ranking by shape cost over a collection of a database? Beside its own kNN query.

Handwritten digits, or points on curved sheets, 10,000 on each, lie in tables and collections as
their users keep them; rankfold has attached a graph. PostgreSQL has an HNSW index of pgvector and
runs as a server on the same machine; Qdrant is in its local mode, Milvus is Milvus Lite, LanceDB a
folder. All answers are the best ten, for points of the collection. "kNN" is the database's own
search for the nearest ten, without rankfold. "Cold" is the first query of a collection that was
just opened, "warm" the same query again. All take turns, so that ratios are from one run. Round
trips are all exchanges of a query. "Same" is the share of answers whose members and scores (to
1e-5) are those of RAN in memory. Both have the lists of one index of FAISS, as two may miss
different neighbours.

"Near" is a query by the fourth result of it, whose region is mostly known.

With --attach, a table of 200,000 vectors of 384 features in PostgreSQL, in a space of 24
dimensions, is attached in a process of its own on all cores, with n_neighbors=10 and recall=0.95:
seconds of every stage, and its largest memory beside that before. --points attaches fewer.
"""

import json
import sys
from contextlib import ExitStack
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from statistics import median
from subprocess import PIPE, run
from tempfile import TemporaryDirectory
from time import perf_counter
from unittest.mock import patch

import numpy as np
import psycopg
from kit.memory import peak_mb
from kit.report import OUT, Goal, options, publish, replace_text, table, versions

from rankfold import RAN, Collection, datasets
from rankfold.databases import attachment as stages
from rankfold.datasets.synthetic import sheets

SERVERS = Path(__file__).parents[1] / "tests" / "databases" / "servers.py"
N_DIGITS, N_SHEETS, N_QUERIES, TOP = 20_000, 100_000, 15, 10
N_ATTACHED, N_FEATURES = 200_000, 384
MOST_WARM, MOST_COLD, MOST_RATIO = 6, 8, 6.0
ATTACHED = OUT / "databases_attached.json"
"""What --attach found, for the page."""

EMBEDDED_LIMIT = 20_000
"""Points above which databases that search by looking at all in Python are left out."""


def server():
    """Start the server that tests use, but let it wait for the disk."""
    spec = spec_from_file_location("servers", SERVERS)
    servers = module_from_spec(spec)
    spec.loader.exec_module(servers)
    return servers.PostgreSQLServer(durable=True)


def in_postgresql(folder, X, index=True):
    """Return the address of a table of vectors."""
    address = server().address()
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        width = X.shape[1]
        connection.execute(f"CREATE TABLE docs (id int PRIMARY KEY, v vector({width}), note text)")
        with connection.cursor().copy("COPY docs FROM STDIN") as copy:
            for row, vector in enumerate(X):
                copy.write_row((row, json.dumps(vector.tolist()), f"point {row}"))
        if index:
            connection.execute("SET maintenance_work_mem = '1GB'")
            connection.execute("CREATE INDEX ON docs USING hnsw (v vector_l2_ops)")
    return address


def in_qdrant(folder, X):
    from qdrant_client import QdrantClient, models

    client = QdrantClient(path=str(folder / "qdrant"))
    space = models.VectorParams(size=X.shape[1], distance="Euclid")
    client.create_collection("docs", vectors_config=space)
    client.upload_collection("docs", X, ids=range(len(X)))
    client.close()
    return f"qdrant://{folder}/qdrant"


def in_milvus(folder, X):
    from pymilvus import MilvusClient

    client = MilvusClient(str(folder / "milvus.db"))
    client.create_collection("docs", dimension=X.shape[1], metric_type="L2")
    for start in range(0, len(X), 1000):
        some = enumerate(X[start : start + 1000].tolist(), start)
        client.insert("docs", [{"id": row, "vector": vector} for row, vector in some])
    client.close()
    return f"milvus://{folder}/milvus.db"


def in_lancedb(folder, X):
    import lancedb
    import pyarrow as pa

    vectors = pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), X.shape[1])
    data = pa.table({"id": np.arange(len(X)), "vector": vectors})
    lancedb.connect(folder / "lance").create_table("docs", data)
    return f"lancedb://{folder}/lance"


DATABASES = {
    "PostgreSQL": in_postgresql,
    "Qdrant": in_qdrant,
    "Milvus": in_milvus,
    "LanceDB": in_lancedb,
}


def took(call):
    start = perf_counter()
    answer = call()
    return perf_counter() - start, answer


def measured(data, X, names, folder):
    """Yield a row for every database."""
    ranker = RAN().fit(X)
    queries = np.random.default_rng(0).integers(0, len(X), N_QUERIES).tolist()
    for name in names:
        place = Path(folder) / f"{data} {name}"
        place.mkdir()
        address = DATABASES[name](place, X)
        k = {"n_neighbors": ranker.n_neighbors_}
        key = {"key": "id"} if name == "LanceDB" else {}
        with patch.object(stages, "choose_engine", lambda *_: ranker.engine_):
            Collection.attach(address, "docs", **k, **key).close()
        yield {"data": data, "in": name, **asked(address, key, X, ranker, queries)}


def asked(address, key, X, ranker, queries):
    """Return medians over queries."""
    times = {"kNN": [], "cold": [], "warm": [], "near": []}
    trips, rows, same = {"cold": [], "warm": [], "near": []}, [], []
    for query in queries:
        with Collection.open(address, "docs", **key) as collection:
            answers = []
            for cache in trips:
                by = answers[0].ids[3] if cache == "near" else query
                seconds, found = took(lambda: collection.query(by, top=TOP))  # noqa: B023
                times[cache].append(seconds)
                trips[cache].append(found.ranking.solution.round_trips)
                answers.append(found)
            rows.append(collection._graph.fetched.n_rows)
            vector = X[query : query + 1]
            times["kNN"].append(took(lambda: collection.database.search(vector, TOP))[0])  # noqa: B023
        results, expected = answers[1], ranker.rank(query, top=TOP)
        alike = set(results.ids) == set(expected.indices.tolist())
        same.append(alike and np.allclose(results.scores, expected.scores, atol=1e-5))
    ms = {name: 1e3 * median(found) for name, found in times.items()}
    return {
        "points": len(X),
        "kNN ms": ms["kNN"],
        "warm ms": ms["warm"],
        "near ms": ms["near"],
        "cold ms": ms["cold"],
        "warm / kNN": ms["warm"] / ms["kNN"],
        "warm trips": float(median(trips["warm"])),
        "near trips": float(median(trips["near"])),
        "cold trips": float(median(trips["cold"])),
        "rows": float(median(rows)),
        "same": float(np.mean(same)),
    }


def filled(n):
    """Return the address of a table of vectors near a space of 24 dimensions, made in parts."""
    rng = np.random.default_rng(0)
    directions = rng.normal(size=(24, N_FEATURES))
    address = server().address()
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        connection.execute(f"CREATE TABLE docs (id int PRIMARY KEY, v vector({N_FEATURES}))")
        with connection.cursor().copy("COPY docs FROM STDIN") as copy:
            for start in range(0, n, 5_000):
                some = rng.normal(size=(min(5_000, n - start), 24)) @ directions
                for row, vector in enumerate(some.astype(np.float32).tolist(), start):
                    copy.write_row((row, json.dumps(vector)))
    return address


def attachment(n):
    """Yield how long every stage of attaching a large table takes, and the memory it takes."""
    address = filled(n)
    again = [sys.executable, __file__, "--attached", address]
    told = json.loads(run(again, check=True, stdout=PIPE, text=True).stdout)  # noqa: S603
    yield {"points": n, "features": N_FEATURES, **told, "MB of the graph": size_of(address) / 2**20}


def attached(address):
    """Attach a table, and print seconds and megabytes as JSON."""
    seconds = {"reading": 0.0, "neighbours": 0.0, "graph": 0.0, "writing": 0.0}

    def timing(stage, function):
        def timed(*args, **options):
            spent, answer = took(lambda: function(*args, **options))
            seconds[stage] += spent
            return answer

        return timed

    def timed_pages(self):
        pages = scan(self)
        while page := timing("reading", next)(pages, None):
            yield page

    from rankfold.databases.postgresql import PostgreSQL

    scan = PostgreSQL.scan
    before = peak_mb()
    with ExitStack() as patched:
        patched.enter_context(patch.object(PostgreSQL, "scan", timed_pages))
        for owner, name, stage in (
            (stages, "choose_engine", "neighbours"),
            (stages, "candidate_lists", "neighbours"),
            (stages, "Graph", "graph"),
            (PostgreSQL, "write_rows", "writing"),
        ):
            timed = timing(stage, getattr(owner, name))
            patched.enter_context(patch.object(owner, name, timed))
        whole, collection = took(
            lambda: Collection.attach(address, "docs", n_neighbors=10, recall=0.95)
        )
    collection.close()
    print(json.dumps({
        **{f"{stage} s": spent for stage, spent in seconds.items()}, "all s": whole,
        "MB before": before, "MB at most": peak_mb(),
    }))  # fmt: skip


def size_of(address):
    with psycopg.connect(address) as connection:
        query = "SELECT pg_total_relation_size('docs_rankfold')"
        return connection.execute(query).fetchone()[0]


def judge(rows):
    """Return the goals, over all databases; that of time is for PostgreSQL."""
    for row in rows:
        what = f"{row['data']} in {row['in']}"
        yield Goal(f"{what}: warm round trips", row["warm trips"], most=MOST_WARM)
        yield Goal(f"{what}: cold round trips", row["cold trips"], most=MOST_COLD)
        yield Goal(f"{what}: answers as in memory", row["same"], least=1.0)
        if row["in"] == "PostgreSQL":
            yield Goal(f"{what}: warm / kNN", row["warm / kNN"], most=MOST_RATIO)


def main():
    parser = options(__doc__.splitlines()[0])
    parser.add_argument("--attach", action="store_true", help="attach a large table, nothing else")
    parser.add_argument("--points", type=int, default=N_ATTACHED, help="its points")
    parser.add_argument("--attached", metavar="ADDRESS", help="of a table, to be attached here")
    given = parser.parse_args()
    if given.attached:
        attached(given.attached)
        return
    if given.attach:
        rows = table(attachment(given.points))
        replace_text(ATTACHED, json.dumps(rows, indent=2) + "\n")
        return
    digits = np.asarray(datasets.load("mnist").X[:N_DIGITS], dtype=np.float32)
    curved = np.asarray(sheets(N_SHEETS).X, dtype=np.float32)
    with TemporaryDirectory() as folder:
        rows = table(
            row
            for data, X in (("digits", digits), ("sheets", curved))
            for row in measured(
                data, X, [*DATABASES][: None if len(X) <= EMBEDDED_LIMIT else 1], folder
            )
        )
    tables = {"Queries": rows}
    if ATTACHED.exists():
        tables["Attaching, measured by --attach"] = table(json.loads(ATTACHED.read_text()))
    packages = versions(
        "rankfold", "psycopg", "qdrant-client", "pymilvus", "milvus-lite", "lancedb"
    )
    intro = [*__doc__.strip().splitlines(), "", packages]
    publish("databases", "over a collection of a database", intro, tables, list(judge(rows)),
            docs=given.docs)  # fmt: skip


if __name__ == "__main__":
    main()
