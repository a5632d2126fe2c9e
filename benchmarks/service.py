"""How much does the service carry? Queries over HTTP on 70,000 digits, beside plain FAISS.

wrk asks for points drawn at random, for some seconds, over connections that each wait for an
answer before they ask again. The service and plain FAISS are processes of their own on the
same machine as wrk. FAISS is behind the same guards, turns, logs and metrics, with one route that
reads the same body, searches with one thread and answers with ids and scores. Ways to ask take
turns at every number of connections, and each waits until all is quiet. Refused are answers of
503, failed all others that are not 200, and broken connections; latency is that of all answers.
A batch is 32 queries in one request. RAN has its defaults (smoothness 30, a score for at most 1,000
points where ten results are asked for, and 2,000 for a hundred) but where something else is named:
without that budget a query goes on until its best are proven, or, with a tol, until no score is
further off than that; the smaller the smoothness, the less far it reaches.

Needs the folder RANKFOLD_DATA, the extras "bench" and "serve", and wrk.
"""

import os
import sys
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import faiss
import numpy as np
from kit.graphs import draw
from kit.load import load, process, require_wrk
from kit.pictures import GREEN, GREY, INK, RIGHT, WRONG, label_ends, plot
from kit.report import OUT, Goal, options, publish, table, versions
from kit.timing import overlap

from rankfold import Index, datasets

CONNECTIONS = (1, 4, 16)
N_POINTS, BATCH, SAMPLE, FEW = 70_000, 32, 200, 50
LINKS, BREADTH = 16, 200
NAME = "mnist"
KIT = Path(__file__).parent / "kit"
TOL = 0.01
RAN, PROVEN, ROUGH, LOCAL = (
    "RAN, top 10",
    "RAN, proven, top 10",
    "RAN, tol 0.01, top 10",
    "RAN, smoothness 1, proven, top 10",
)
FLAT, HNSW = "FAISS flat, top 10", "FAISS HNSW, top 10"
NO_BUDGET = {"budget": "proven"}


class Way(NamedTuple):
    """A way to ask: the end of its address, and what is asked."""

    of: str
    top: int = 10
    n_queries: int = 1
    method: str = "ran"
    parameters: dict[str, float | str] = MappingProxyType({})

    def fields(self):
        """Return the fields of a query; no payload, of which plain search has none."""
        return {
            "top": self.top,
            "method": self.method,
            "parameters": dict(self.parameters),
            "columns": [],
        }


OURS = {
    RAN: Way("query"),
    "RAN, top 100": Way("query", top=100),
    "RAN, batch": Way("query", n_queries=BATCH),
    PROVEN: Way("query", parameters=NO_BUDGET),
    ROUGH: Way("query", parameters={"tol": TOL, **NO_BUDGET}),
    LOCAL: Way("query", parameters={"smoothness": 1, **NO_BUDGET}),
    "RAN, smoothness 1, proven, batch": Way(
        "query", n_queries=BATCH, parameters={"smoothness": 1, **NO_BUDGET}
    ),
    "Distance, top 10": Way("query", method="distance"),
}
PLAIN = {
    FLAT: Way("flat"),
    "FAISS flat, top 100": Way("flat", top=100),
    "FAISS flat, batch": Way("flat", n_queries=BATCH),
    HNSW: Way("hnsw"),
    "FAISS HNSW, top 100": Way("hnsw", top=100),
    "FAISS HNSW, batch": Way("hnsw", n_queries=BATCH),
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


def shares_kept(path):
    """Return the shares of the proven best 10 and 100 that are found by default and by a tol."""
    ways = {"default": {}, "tol": {"tol": TOL, "budget": None}}
    shares = {(way, top): [] for way in ways for top in (10, 100)}
    with Index.open(path) as index:
        for way, top in shares:
            for row in draw(N_POINTS, FEW):
                true = index.query(row, top=top, budget=None).ids
                shares[way, top].append(overlap(index.query(row, top=top, **ways[way]).ids, true))
    return {key: float(np.mean(found)) for key, found in shares.items()}


def measure(service, plain, seconds):
    """Let all ways take turns at every number of connections, and yield a row for each."""
    ways = {name: (f"{service}/v1/indexes/{NAME}/{way.of}", way) for name, way in OURS.items()}
    ways |= {name: (f"{plain}/{way.of}", way) for name, way in PLAIN.items()}
    for url, way in ways.values():  # loads compiled code, reads what is mapped from disk
        load(url, 1, 2, N_POINTS, way.n_queries, way.fields())
    for connections in CONNECTIONS:
        for name, (url, way) in ways.items():
            asked = load(url, connections, seconds, N_POINTS, way.n_queries, way.fields())
            # Answers that are no answers were fast, and do not count.
            answered = asked["requests"] - asked["refused"] - asked["failed"]
            a_second = answered / (asked["microseconds"] / 1e6)
            marks = ("p50", "p95", "p99")
            yield {
                "what": name,
                "connections": connections,
                "requests / s": a_second,
                "queries / s": a_second * way.n_queries,
                **{f"{mark} ms": asked[mark] / 1e3 if answered else "-" for mark in marks},
                "refused": asked["refused"],
                "failed": asked["failed"],
            }


def judge(rows):
    """Compare with plain search at the same number of connections, and count what went wrong."""
    carried = {(row["what"], row["connections"]): row["queries / s"] for row in rows}
    goals = [
        Goal(
            f"{connections} connections: queries of {ours} / those of {FLAT}",
            carried[ours, connections] / carried[FLAT, connections],
            least=1,
        )
        for ours in (ROUGH, LOCAL)
        for connections in CONNECTIONS
    ]
    goals += [
        Goal(
            f"{connections} connections: queries of {RAN} / those of {plain}",
            carried[RAN, connections] / carried[plain, connections],
            least=least,
        )
        for plain, least in ((FLAT, 3), (HNSW, 0.5))
        for connections in CONNECTIONS
    ]
    return goals + [
        Goal(f"{wrong}, of all requests", sum(row[wrong] for row in rows), most=0)
        for wrong in ("refused", "failed")
    ]


def picture(rows):
    colors = {RAN: RIGHT, PROVEN: WRONG, LOCAL: WRONG, "Distance, top 10": GREEN, FLAT: GREY}
    colors[HNSW] = INK
    figure, panels = plot(
        "Queries over HTTP among 70,000 digits",
        "MNIST, top 10, one query in a request; service, FAISS and load generator on one machine",
        n_panels=2,
        size=(12.0, 5.2),
    )
    for axes, value in zip(panels, ("queries / s", "p99 ms"), strict=True):
        ends = []
        for name, color in colors.items():
            # Where nothing was answered there is nothing to draw.
            shown = [row for row in rows if row["what"] == name and row["requests / s"] > 0]
            if not shown:
                continue
            places, values = [row["connections"] for row in shown], [row[value] for row in shown]
            axes.plot(places, values, "o-", color=color, linewidth=1.6, markersize=5)
            ends.append((values[-1], name.removesuffix(", top 10"), color))
        axes.set(xscale="log", yscale="log", xlabel="connections", ylabel=value)
        axes.set_xticks(CONNECTIONS, [str(count) for count in CONNECTIONS])
        axes.minorticks_off()
        label_ends(axes, CONNECTIONS[-1], ends)
    figure.subplots_adjust(left=0.07, right=0.9, wspace=0.5)
    return figure


def main():
    parser = options(__doc__)
    parser.add_argument("--seconds", type=int, default=4, help="of every measurement")
    arguments = parser.parse_args()
    require_wrk()
    if not os.environ.get("RANKFOLD_DATA"):
        raise SystemExit("set RANKFOLD_DATA to the folder with the data files")
    index, files = our_index(), plain_indexes()
    script = str(Path(sys.executable).with_name("rankfold"))
    ours = [script, "serve", str(index), "--port", "0"]
    theirs = [sys.executable, "-P", str(KIT / "plain_service.py"), *map(str, files)]
    with (
        process(ours, OUT / "service.log") as service,
        process(theirs, OUT / "plain_service.log") as plain,
    ):
        rows = table(measure(service.address, plain.address, arguments.seconds))
    kept = shares_kept(index)
    intro = [
        *__doc__.split("\n\n")[1].splitlines(),
        "",
        f"MNIST, {N_POINTS:,} x 784, {arguments.seconds} s for every row. HNSW has {LINKS} links "
        f"and looks at {BREADTH} points; it finds {share_found(files):.1%} of the nearest. By "
        f"default RAN finds {kept['default', 10]:.1%} of its proven best 10 and "
        f"{kept['default', 100]:.1%} of its proven best 100, with tol {TOL} {kept['tol', 10]:.1%} "
        f"and {kept['tol', 100]:.1%} ({FEW} queries). "
        + versions("rankfold", "fastapi", "uvicorn", "faiss-cpu"),
    ]
    alt = "Queries a second and the 99th percentile of latency by the number of connections."
    publish("service", "the service under load", intro, {"Load": rows}, judge(rows),
            picture(rows), alt, arguments.docs)  # fmt: skip


if __name__ == "__main__":
    main()
