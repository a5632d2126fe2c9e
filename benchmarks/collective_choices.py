"""Every choice in learning one graph for all queries, varied alone, and criteria for when to stop.

All points are queries; precision at the number of relevant points in per cent, the query left out.
Gain is over one alternation at the same setting; harm is the share of queries in per cent that come
out worse than under plain distance. mnist is 1,000 of it, always the same. Settings were chosen on
these very sets. Criteria are relative to the plain graph: hubness (skewness of the number of edges)
by the difference, all others by the ratio. Objective is that of
[One graph for every query](../collective.md), reciprocity the largest share of pairs in each
other's best m beyond chance, stability the overlap of the best 20 on two random 80 % of the points.
A criterion decides rightly where its best threshold says learn and there is a gain, or says no and
there is none; it was fitted to these very rows. Alternations on top are those of 60 queries a set,
with the guard.

Needs the folder RANKFOLD_DATA.
"""

import warnings

import numpy as np
from kit.ablations import Bench, other_graphs, with_guard, without_guard
from kit.all_queries import of_library, percent
from kit.collective_sets import others, seven
from kit.report import options, publish, table, versions
from kit.telling import Case, correlations
from sklearn.exceptions import ConvergenceWarning

from rankfold import RAN

OF_MNIST, MOST_OF_OTHERS, SAMPLE, ALTERNATIONS = 1_000, 600, 60, 3


def adapt_further(dataset):
    """Return a row: alternations for each query on top of the learned graph, on some queries."""
    n_points = len(dataset.labels)
    sample = np.random.default_rng(0).permutation(n_points)[:SAMPLE]
    found = {
        (adapt, most): percent(of_library(
            RAN(adapt=adapt, max_iter=most, metric=dataset.metric).fit(dataset.X), dataset, sample
        ))
        for adapt in ("query", "collective") for most in (1, ALTERNATIONS)
    }  # fmt: skip
    more = found["collective", ALTERNATIONS] - found["collective", 1]
    names = {"query": "plain graph", "collective": "learned graph"}
    return {
        "set": dataset.name,
        **{
            f"{names[adapt]}, {most} alternation{'s' * (most > 1)}": f"{value:.2f}"
            for (adapt, most), value in found.items()
        },
        "gain on the learned graph": f"{more:+.2f}",
    }


def main():
    arguments = options(__doc__).parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    sets = list(seven(OF_MNIST))
    more = [dataset for dataset in others() if len(dataset.labels) <= MOST_OF_OTHERS]
    benches = list(map(Bench, sets))
    tables = {
        "Without the guard": table(without_guard(benches)),
        "With the guard": table(with_guard(benches)),
        "Other graphs and smoothness, with the guard": table(other_graphs(benches)),
        "Alternations for each query on top": table(map(adapt_further, sets)),
    }
    rows = table(row for dataset in [*sets, *more] for row in Case(dataset).rows())
    tables |= {"Criteria": table(correlations(rows)), "Criteria, all rows": rows}
    intro = [*__doc__.split("\n\n")[1].splitlines(), "", versions("rankfold")]
    publish("collective_choices", "the choices in one graph for every query", intro, tables, [],
            docs=arguments.docs)  # fmt: skip


if __name__ == "__main__":
    main()
