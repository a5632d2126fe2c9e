"""How local is an explanation? Points that it looks at, and its time, as the database grows.

With ``--docs`` the picture of the page on explanations is drawn anew.
"""

import numpy as np
from kit.report import DOCS, options, table
from kit.timing import seconds

from rankfold import RAN, datasets
from rankfold.datasets.synthetic import sheets
from rankfold.explanation import draw_explanation, explain

SIZES, TOP, N_QUERIES = (10_000, 100_000), 100, 10


def explained(ranker, query):
    """Return the seconds of a query and of an explanation of its last result, and the latter."""
    answering, ranking = seconds(lambda: ranker.rank(query, top=TOP))
    point = int(ranking.indices[-1])
    explaining, told = seconds(lambda: explain(ranker, query, point))
    return answering, explaining, told.n_visited


def measure(sizes):
    """Yield a row for every size."""
    for size in sizes:
        ranker = RAN(n_neighbors=10, solver="region").fit(sheets(size).X)
        queries = [int(q) for q in np.random.default_rng(0).choice(size, N_QUERIES, replace=False)]
        explained(ranker, queries[0])  # compiled code is read
        answering, explaining, visited = np.median([explained(ranker, q) for q in queries], axis=0)
        yield {
            "points": size,
            "visited by the search": float(visited),
            "explanation (ms)": 1000 * float(explaining),
            "explanation / query": float(explaining / answering),
        }


def draw():
    moons = datasets.load("moons")
    explanation = explain(RAN(n_neighbors=10).fit(moons.X), query=94, point=139)
    draw_explanation(explanation, DOCS / "images" / "explain.png", moons.X)


def main():
    parser = options(__doc__.splitlines()[0], large="a million points as well")
    arguments = parser.parse_args()
    table(measure((*SIZES, 1_000_000) if arguments.large else SIZES))
    if arguments.docs:
        draw()


if __name__ == "__main__":
    main()
