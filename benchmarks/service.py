"""How much does the service carry? Queries over HTTP on 70,000 digits, beside plain FAISS.

wrk asks for points drawn at random, for some seconds, over connections that each wait for an
answer before they ask again. The service and plain FAISS are processes of their own on the
same machine as wrk. FAISS is behind the same guards, turns, logs and metrics, with one route that
reads the same body, searches with one thread and answers with ids and scores. Ways to ask take
turns at every number of connections. Refused are answers of 503, failed all others that are
not 200, and broken connections. A batch is 32 queries in one request.

Needs the folder RANKFOLD_DATA, the extras "bench" and "serve", and wrk.
"""

import os
import sys
from pathlib import Path
from typing import NamedTuple

import faiss
import numpy as np
from kit.graphs import draw
from kit.load import load, process, require_wrk
from kit.pictures import GREEN, GREY, INK, RIGHT, label_ends, plot
from kit.report import OUT, Goal, options, publish, table, versions
from kit.timing import overlap

from rankfold import Index, datasets

CONNECTIONS = (1, 4, 16, 64)
N_POINTS, BATCH, SAMPLE = 70_000, 32, 200
LINKS, BREADTH = 16, 200
NAME = "mnist"
KIT = Path(__file__).parent / "kit"
FLAT = "FAISS flat, top 10"


class Way(NamedTuple):
    """A way to ask: one of ours by its method, one of FAISS by the name of its file."""

    of: str
    top: int = 10
    n_queries: int = 1


OURS = {
    "RAN, top 10": Way("ran"),
    "RAN, top 100": Way("ran", top=100),
    "RAN, batch": Way("ran", n_queries=BATCH),
    "Euclidean, top 10": Way("euclidean"),
}
PLAIN = {
    FLAT: Way("flat"),
    "FAISS flat, top 100": Way("flat", top=100),
    "FAISS flat, batch": Way("flat", n_queries=BATCH),
    "FAISS HNSW, top 10": Way("hnsw"),
    "FAISS HNSW, top 100": Way("hnsw", top=100),
}


def our_index():
    """Return the folder of the index, built when it is missing."""
    path = OUT / "indexes" / NAME
    if not path.is_dir():
        path.parent.mkdir(parents=True, exist_ok=True)
        data = datasets.load("mnist")
        images = {"images": {"size": [28, 28], "colour": False, "scale": 255}}
        payload = {"digit": data.labels}
        print(f"building {path}", flush=True)
        Index.build(data.X, payload=payload, path=path, source=images, progress=True).close()
    return path


def plain_indexes():
    """Return the files of the FAISS indexes, built when they are missing."""
    files = [OUT / "plain" / f"{name}.faiss" for name in ("flat", "hnsw")]
    if not all(file.is_file() for file in files):
        files[0].parent.mkdir(parents=True, exist_ok=True)
        X = datasets.load("mnist").X
        graph = faiss.IndexHNSWFlat(X.shape[1], LINKS)
        graph.hnsw.efSearch = BREADTH
        for file, index in zip(files, (faiss.IndexFlatL2(X.shape[1]), graph), strict=True):
            print(f"building {file}", flush=True)
            index.add(X)
            partial = file.with_suffix(".partial")
            faiss.write_index(index, str(partial))
            partial.replace(file)
    return files


def share_found(files):
    """Return the share of the true nearest 10 that HNSW finds."""
    flat, graph = (faiss.read_index(str(file)) for file in files)
    asked = flat.reconstruct_batch(draw(N_POINTS, SAMPLE))
    found, true = graph.search(asked, 11)[1], flat.search(asked, 11)[1]
    return float(np.mean([overlap(*pair) for pair in zip(found, true, strict=True)]))


def measure(service, plain, seconds):
    """Let all ways take turns at every number of connections, and yield a row for each."""
    ways = {name: (f"{service}/v1/indexes/{NAME}/query", way) for name, way in OURS.items()}
    ways |= {name: (f"{plain}/{way.of}", way) for name, way in PLAIN.items()}
    for url, way in ways.values():  # loads compiled code, reads what is mapped from disk
        load(url, 4, 2, N_POINTS, way.n_queries, way.top, way.of)
    for connections in CONNECTIONS:
        for name, (url, way) in ways.items():
            asked = load(url, connections, seconds, N_POINTS, way.n_queries, way.top, way.of)
            # Answers that are no answers were fast, and do not count.
            answered = asked["requests"] - asked["refused"] - asked["failed"]
            a_second = answered / (asked["microseconds"] / 1e6)
            yield {
                "what": name,
                "connections": connections,
                "requests / s": a_second,
                "queries / s": a_second * way.n_queries,
                **{f"{mark} ms": asked[mark] / 1e3 for mark in ("p50", "p95", "p99")},
                "refused": asked["refused"],
                "failed": asked["failed"],
            }


def judge(rows):
    """Compare with plain search at the same number of connections, and count what went wrong."""
    carried = {(row["what"], row["connections"]): row["queries / s"] for row in rows}
    goals = [
        Goal(
            f"{connections} connections: RAN's queries / those of {FLAT}",
            carried["RAN, top 10", connections] / carried[FLAT, connections],
            least=1,
        )
        for connections in CONNECTIONS
    ]
    return goals + [
        Goal(f"{wrong}, of all requests", sum(row[wrong] for row in rows), most=0)
        for wrong in ("refused", "failed")
    ]


def picture(rows):
    colors = {"RAN, top 10": RIGHT, "Euclidean, top 10": GREEN, FLAT: GREY}
    colors["FAISS HNSW, top 10"] = INK
    figure, panels = plot(
        "Queries over HTTP among 70,000 digits",
        "MNIST, top 10, one query in a request; service, FAISS and load generator on one machine",
        n_panels=2,
        size=(12.0, 5.2),
    )
    for axes, value in zip(panels, ("queries / s", "p99 ms"), strict=True):
        ends = []
        for name, color in colors.items():
            values = [row[value] for row in rows if row["what"] == name]
            axes.plot(CONNECTIONS, values, "o-", color=color, linewidth=1.6, markersize=5)
            ends.append((values[-1], name.removesuffix(", top 10"), color))
        axes.set(xscale="log", yscale="log", xlabel="connections", ylabel=value)
        axes.set_xticks(CONNECTIONS, [str(count) for count in CONNECTIONS])
        axes.minorticks_off()
        label_ends(axes, CONNECTIONS[-1], ends)
    figure.subplots_adjust(left=0.07, right=0.9, wspace=0.5)
    return figure


def main():
    parser = options(__doc__)
    parser.add_argument("--seconds", type=int, default=5, help="of every measurement")
    arguments = parser.parse_args()
    require_wrk()
    if not os.environ.get("RANKFOLD_DATA"):
        raise SystemExit("set RANKFOLD_DATA to the folder with the data files")
    index, files = our_index(), plain_indexes()
    script = str(Path(sys.executable).with_name("rankfold"))
    ours = [script, "serve", str(index), "--port", "0"]
    theirs = [sys.executable, str(KIT / "plain_service.py"), *map(str, files)]
    with (
        process(ours, OUT / "service.log") as service,
        process(theirs, OUT / "plain_service.log") as plain,
    ):
        rows = table(measure(service.address, plain.address, arguments.seconds))
    intro = [
        *__doc__.split("\n\n")[1].splitlines(),
        "",
        f"MNIST, {N_POINTS:,} x 784, {arguments.seconds} s for every row. HNSW has {LINKS} links "
        f"and looks at {BREADTH} points; it finds {share_found(files):.1%} of the nearest. "
        + versions("rankfold", "fastapi", "uvicorn", "faiss-cpu"),
    ]
    alt = "Queries a second and the 99th percentile of latency by the number of connections."
    publish("service", "the service under load", intro, {"Load": rows}, judge(rows),
            picture(rows), alt, arguments.docs)  # fmt: skip


if __name__ == "__main__":
    main()
