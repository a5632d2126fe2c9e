"""What does a map cost? And does it keep together what belongs together, as far as classes tell.

Places by principal components and by the graph, beside the search for the neighbour lists that an
index needs anyway. Kinship is the share of the five nearest points on the map that are of the same
class, at up to 5,000 points. Sheets are curved, 2,000 points on each, in random order, with 32
features. The graph is drawn in one thread; umap-learn is loaded, and its code compiled, before.
"""

import numpy as np
from kit.report import Goal, options, publish, table, versions
from kit.timing import seconds
from scipy.spatial import cKDTree

from rankfold import datasets
from rankfold.datasets.synthetic import sheets
from rankfold.graph import stored_width
from rankfold.layout import lay_out
from rankfold.neighbors import DynamicEngine, choose_engine

N_NEIGHBORS = 5
MOST_DRAWN = 200_000


def load(name, n_points):
    made = name == "sheets"
    data = sheets(n_points, n_sheets=n_points // 2000) if made else datasets.load(name)
    chosen = np.random.default_rng(0).permutation(len(data.X))[:n_points]
    return data.X[chosen].astype(np.float32), data.labels[chosen]


def kinship(places, labels):
    asked = np.random.default_rng(0).permutation(len(places))[:5000]
    _, near = cKDTree(places).query(places[asked], k=6)
    return float((labels[near[:, 1:]] == labels[asked][:, None]).mean())


def measure(name, n_points):
    """Search neighbour lists and draw both maps."""
    X, labels = load(name, n_points)
    width = stored_width(N_NEIGHBORS, len(X))
    searched, engine = seconds(
        lambda: DynamicEngine.build(X, "euclidean", width, engine=choose_engine(X, "euclidean"))
    )
    straight, pca = seconds(lambda: lay_out(engine, "pca", N_NEIGHBORS))
    row = {
        "data": name,
        "points": n_points,
        "features": X.shape[1],
        "search s": searched,
        "pca s": straight,
        "graph s": "",
        "kinship pca": kinship(pca.places, labels),
        "kinship graph": "",
    }
    if n_points <= MOST_DRAWN:
        row["graph s"], graph = seconds(lambda: lay_out(engine, "graph", N_NEIGHBORS))
        row["kinship graph"] = kinship(graph.places, labels)
    return row


def judge(rows):
    last, mnist = rows[-1], next(row for row in rows if row["data"] == "mnist")
    where, drawn = f"{last['points']:,} points", f"{mnist['points']:,} of MNIST"
    return [
        Goal(f"{where}: pca", last["pca s"], most=2, unit="s"),
        Goal(f"{drawn}: graph", mnist["graph s"], most=10, unit="s"),
        Goal(
            f"{drawn}: kinship, graph / pca",
            mnist["kinship graph"] / mnist["kinship pca"],
            least=1.5,
        ),
    ]


def main():
    arguments = options(__doc__, large="a million points as well").parse_args()
    cases = [("digits", 1797), ("mnist", 20_000), ("sheets", 20_000)]
    if arguments.large:
        cases.append(("sheets", 1_000_000))
    measure("digits", 200)  # compiles
    rows = table(measure(*case) for case in cases)
    intro = [*__doc__.split("\n\n")[1].splitlines(), "", versions("rankfold", "umap-learn")]
    publish("layout", "the map", intro, {"Costs": rows}, judge(rows), docs=arguments.docs)


if __name__ == "__main__":
    main()
