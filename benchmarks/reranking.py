"""How many candidates does a re-ranker need? RAN on what a plain search found, beside the whole.

A database or a pipeline hands a re-ranker only what its own search has found, and the graph is
that of these candidates alone. Half of the points of a set, at random, are the database; up to 300
of the others are queries that it does not hold. Of MNIST, 20,000 random points are used. The
nearest candidates by plain distance are ranked with `rankfold.integrations.documents.rerank`;
beside it are plain distance and RAN on the whole database. Precision is that of the first 10, in
per cent; harm is the share of queries with fewer right ones than plain distance. Needs the folder
RANKFOLD_DATA.
"""

import numpy as np
from kit.report import options, publish, table, versions

from rankfold import RAN, Distance, datasets
from rankfold.integrations.documents import rerank

SETS = ("digits", "usps_all", "coil20", "umist", "mnist")
CANDIDATES = (20, 50, 100, 200, 400)
TOP, N_QUERIES, MOST_POINTS = 10, 300, 20_000


def precisions(dataset, half, queries, found):
    labels = dataset.labels
    return np.array(
        [
            np.mean(labels[half[ids]] == labels[query])
            for query, ids in zip(queries, found, strict=True)
        ]
    )


def measure():
    """Yield a row for every set and number of candidates."""
    for name in SETS:
        dataset = datasets.load(name)
        order = np.random.default_rng(0).permutation(len(dataset.X))[:MOST_POINTS]
        half, queries = np.split(order, [len(order) // 2])
        queries = queries[:N_QUERIES]
        known, vectors = dataset.X[half], dataset.X[queries]
        plain, whole = Distance().fit(known), RAN().fit(known)
        near = [plain.rank(vectors=one, top=max(CANDIDATES)).indices for one in vectors]
        base = precisions(dataset, half, queries, [ids[:TOP] for ids in near])
        rankings = {"none: plain distance": [ids[:TOP] for ids in near]}
        for n in CANDIDATES:
            rankings[str(n)] = [
                ids[:n][rerank(known[ids[:n]], one, TOP, RAN())[0]]
                for ids, one in zip(near, vectors, strict=True)
            ]
        rankings["all: the whole graph"] = [whole.rank(vectors=v, top=TOP).indices for v in vectors]
        for candidates, found in rankings.items():
            right = precisions(dataset, half, queries, found)
            yield {
                "data": name,
                "points": len(known),
                "candidates": candidates,
                "precision %": 100 * float(right.mean()),
                "harm %": 100 * float(np.mean(right < base - 1e-9)),
                "helped %": 100 * float(np.mean(right > base + 1e-9)),
            }


def main():
    arguments = options(__doc__).parse_args()
    intro = [*__doc__.strip().splitlines()[2:], "", versions("rankfold")]
    tables = {"Precision and harm": table(measure())}
    publish("reranking", "re-ranking candidates", intro, tables, [], docs=arguments.docs)


if __name__ == "__main__":
    main()
