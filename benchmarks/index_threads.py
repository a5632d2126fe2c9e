"""What do threads gain that ask one index at the same time? Queries a second of 1, 2 and 4.

70,000 points lie on curved sheets, 2,000 on each, in random order, with 32 features. Threads share
queries of 10 results. Numbers of threads take turns, and a ratio is the median of those of every
turn. "4 by a lock" lets one of them ask at a time, as where nothing can run at once. Checksums of
8 MB, which need neither index nor interpreter, show how many cores were free meanwhile.
"""

import zlib
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from threading import Lock

import numpy as np
from kit.report import Goal, options, publish, table, versions
from kit.timing import seconds
from threadpoolctl import threadpool_limits

from rankfold import Index
from rankfold.datasets.synthetic import sheets

N_POINTS, N_NEIGHBORS, QUERIES, TURNS, THREADS = 70_000, 5, 40, 9, (1, 2, 4)
METHODS = ("ran", "manifold")
CONTENT = bytes(2**23)


def built():
    X = sheets(N_POINTS, n_sheets=N_POINTS // 2000).X.astype(np.float32)
    X = X[np.random.default_rng(0).permutation(N_POINTS)]
    return Index.build(X, n_neighbors=N_NEIGHBORS)


def rate(ask, queries, n_threads, turn=None):
    """Return how many queries are answered in a second."""

    def one(query):
        with turn or nullcontext():
            ask(query)

    with ThreadPoolExecutor(n_threads) as threads:
        took, _ = seconds(lambda: list(threads.map(one, queries)))
    return len(queries) / took


def measure(name, ask):
    """Ask with every number of threads, in turns."""
    ask(0)  # fits, and loads compiled code
    rates = []
    for first in range(1, 1 + TURNS * QUERIES, QUERIES):
        queries = range(first, first + QUERIES)
        rates.append([rate(ask, queries, n_threads) for n_threads in THREADS])
        rates[-1].append(rate(ask, queries, THREADS[-1], Lock()))
    alone = np.array(rates)[:, 0]
    ratios = np.median(np.array(rates) / alone[:, None], axis=0)[1:].tolist()
    names = [*(f"{n_threads} threads / 1" for n_threads in THREADS[1:]), "4 by a lock / 1"]
    begin = {"what": name, "1 thread, a second": float(np.median(alone))}
    return begin | dict(zip(names, ratios, strict=True))


def main():
    arguments = options(__doc__).parse_args()
    with threadpool_limits(1), built() as index:
        asked = {
            method: lambda query, method=method: index.query(query, method=method)
            for method in METHODS
        }
        asked["checksums"] = lambda _: zlib.crc32(CONTENT)
        rows = table(measure(*one) for one in asked.items())
    gain = rows[0]["2 threads / 1"] / rows[-1]["2 threads / 1"]
    goals = [Goal("gain of 2 threads by RAN / by checksums", gain, least=0.7)]
    intro = [*__doc__.split("\n\n")[1].splitlines(), "", versions("rankfold", "faiss-cpu")]
    publish("index_threads", "threads", intro, {"Rates": rows}, goals, docs=arguments.docs)


if __name__ == "__main__":
    main()
