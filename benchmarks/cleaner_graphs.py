"""Cleaner graphs: five ideas beside RAN's own graph, under one contract.

Each idea changes the symmetric weights W of RAN's first graph and nothing else; scores, fusion with
distance and evaluation are those of the defaults. *Mutual*: only edges whose ends list each other,
and the strongest edge of a point that would have none (reciprocal masks, as in k-reciprocal
re-ranking and cluster-aware similarity diffusion). *Shared neighbours*: each weight times the share
of neighbours that its ends have in common (denoising by agreement of neighbourhoods, as conditional
random fields over graphs do). *Hubs*: weights divided by the root of the product of the degrees.
*Local scaling*: distances divided by those of the k-th neighbours of both ends (Zelnik-Manor and
Perona) before the closed form. *Degree*: scores times the degree, which favours what is central.
Rows are gains over plain distance in points of per cent; the sets that had no part in choosing the
defaults are named *tested on*.

Needs the folder RANKFOLD_DATA and the extra "bench".
"""

import warnings
from dataclasses import replace

import numpy as np
import quality
from kit.report import options, publish, table, versions
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from rankfold import RAN, evaluate
from rankfold.graph import ClosedForm
from rankfold.solvers import GraphRows
from rankfold.types import Neighbors

METRICS = ("precision@1", "precision@10", "precision@50", "r_precision")
MOST_POINTS, N_QUERIES, BRIEF = 3_000, 300, 40
OWN = "as it is"


class Cleaned(RAN):
    """RAN whose first graph is changed before it is used."""

    def _clean(self, weights):
        return weights

    def _prepare(self, rows):
        scale = 2 * self._smoothness
        cleaned = sparse.csr_array(self._clean(rows.csr() / scale))
        cleaned.sort_indices()
        super()._prepare(GraphRows.of(scale * cleaned))


class Mutual(Cleaned):
    """Only edges whose ends list each other."""

    def _clean(self, weights):
        listed = self._first.affinity(self.engine_.n_points)
        both = sparse.csr_array(weights.multiply(listed.multiply(listed.T) > 0))
        alone = np.flatnonzero(np.diff(both.indptr) == 0)
        strongest = weights[alone].toarray().argmax(axis=1) if len(alone) else alone
        kept = weights[alone, strongest] if len(alone) else np.empty(0)
        more = sparse.csr_array((kept, (alone, strongest)), shape=weights.shape)
        return both + more.maximum(more.T)


class Shared(Cleaned):
    """Weights times the share of neighbours in common."""

    def _clean(self, weights):
        listed = self._first.affinity(self.engine_.n_points) > 0
        listed = (listed + sparse.eye_array(listed.shape[0], dtype=bool)).astype(np.float64)
        common = (listed @ listed.T).multiply(weights > 0)
        return weights.multiply(common / (self.n_neighbors_ + 1))


class Hubs(Cleaned):
    """Weights divided by the root of the product of the degrees."""

    def _clean(self, weights):
        roots = sparse.diags_array(1 / np.sqrt(np.maximum(weights.sum(axis=1), 1e-12)))
        return roots @ weights @ roots


class LocalScaling(Cleaned):
    """The closed form over distances in units of both ends."""

    def _clean(self, weights):
        lists, k = self.neighbors_, self.n_neighbors_
        unit = np.sqrt(np.maximum(lists.sq_distances[:, k - 1].astype(np.float64), 1e-300))
        scaled = lists.sq_distances / (unit[:, None] * unit[lists.indices])
        order = np.argsort(scaled, axis=1, kind="stable")
        taken = Neighbors(*(np.take_along_axis(a, order, 1) for a in (lists.indices, scaled)))
        return ClosedForm.of(taken, k, self.engine_.n_alive).symmetric()


class Degree(Cleaned):
    """Scores times the degree."""

    def _solve(self, queries, wanted, lists):
        for solution, trace in super()._solve(queries, wanted, lists):
            scores = solution.scores * self._relative_degrees[solution.points]
            yield replace(solution, scores=scores), trace


IDEAS = {OWN: RAN(), "mutual": Mutual(), "shared neighbours": Shared(), "hubs": Hubs(),
         "local scaling": LocalScaling(), "degree": Degree()}  # fmt: skip


def few_points(sets):
    return (dataset for dataset in sets if len(dataset.labels) <= MOST_POINTS)


def main():
    parser = options(__doc__)
    parser.add_argument("--brief", action="store_true", help="few queries, no page worth keeping")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    n_queries, rows, means = BRIEF if arguments.brief else N_QUERIES, [], {}
    groups = ((quality.chosen_on(), quality.CHOSEN), (quality.tested_on(), quality.TESTED))
    for sets, used in groups:
        for dataset in few_points(sets):
            drawn = quality.eligible(dataset, n_queries)
            found = evaluate(IDEAS, dataset, METRICS, queries=drawn)
            if not found.complete:
                raise KeyboardInterrupt
            for idea in IDEAS:
                gains = {quality.SHORT[m]: quality.gain(found, idea, m)[0] for m in METRICS}
                gains["harm at 10 %"] = 100 * quality.harm(found, idea)
                means.setdefault((used, idea), []).append(gains)
                cells = {name: f"{value:+.1f}" for name, value in gains.items()}
                rows.append({"set": dataset.name, "used": used, "graph": idea, **cells})
            table(rows[-len(IDEAS) :])
    summary = [
        {"used": used, "sets": len(some), "graph": idea,
         **{name: f"{np.mean([one[name] for one in some]):+.2f}" for name in some[0]}}
        for (used, idea), some in means.items()
    ]  # fmt: skip
    intro = [*__doc__.split("\n\n")[1].splitlines(), "", versions("rankfold")]
    tables = {"Means": table(summary), "Every set": rows}
    publish("cleaner_graphs", "cleaner graphs", intro, tables, [], docs=arguments.docs)


if __name__ == "__main__":
    main()
