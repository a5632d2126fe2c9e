"""Criteria that use no labels, and how well they tell graphs that gain from those that lose."""

import numpy as np
from scipy import stats

from kit.all_queries import Judge, percent, solved
from kit.collective_sets import taken
from kit.criteria import components, hubness, objective, ranks, reciprocity, stability
from kit.learned_graphs import SMOOTHNESS, Workshop
from rankfold import ExactEngine
from rankfold.graph import candidate_lists
from rankfold.graph.collective import median_reach, sample_of

FACTORS, ROUNDS, SHARE = (1, 2), (1, 2, 3), 0.8
CRITERIA = (
    "reach", "reach at smoothness 1", "reciprocity", "stability", "hubness", "components",
    "objective",
)  # fmt: skip


class Case:
    """A data set, the same set twice with a fifth of the points left out, and the plain graph."""

    def __init__(self, dataset):
        self.judge = Judge(dataset)
        self.n_neighbors = candidate_lists(self.judge.engine, "auto", 2)[1]
        self.whole = Workshop(self.judge.engine, self.n_neighbors)
        n_points, rng = self.judge.n_points, np.random.default_rng(0)
        kept = [np.sort(rng.permutation(n_points)[: int(SHARE * n_points)]) for _ in range(2)]
        self.parts = [
            (rows, Workshop(ExactEngine(taken(dataset, rows), dataset.metric), self.n_neighbors))
            for rows in kept
        ]
        self.sample = sample_of(np.arange(n_points))
        self.plain = self.measured(lambda workshop: workshop.plain_form)

    def measured(self, make):
        """Return the precision of a graph, and every criterion, in its own unit."""
        form = make(self.whole)
        graph = form.symmetric()
        scores, settings = solved(graph, SMOOTHNESS), self.whole.learning
        answers = [
            (rows, ranks(solved(make(part).symmetric(), SMOOTHNESS))) for rows, part in self.parts
        ]
        return {
            "reach": median_reach(graph, SMOOTHNESS, self.sample, 1),
            "reach at smoothness 1": median_reach(graph, 1.0, self.sample, 1),
            "reciprocity": reciprocity(ranks(scores)),
            "stability": stability(answers),
            "hubness": hubness(graph),
            "components": components(graph),
            "objective": objective(
                form.affinity(self.judge.n_points), settings.candidates, self.whole.plain_form.end,
                self.n_neighbors, settings.weight, settings.profile_smoothness,
            ),
            "precision": percent(self.judge.of_scores(scores)),
        }  # fmt: skip

    def rows(self):
        """Yield what every setting gains, and every criterion relative to the plain graph."""
        for factor in FACTORS:
            for rounds in ROUNDS if self.whole.allows(factor) else ():
                found = self.measured(lambda w, f=factor, r=rounds: w.unguarded(f, r))
                gain = found["precision"] - self.plain["precision"]
                yield {
                    "set": self.judge.name,
                    "k'": factor * self.n_neighbors,
                    "rounds": rounds,
                    "gain": gain,
                    **{name: relative(name, found[name], self.plain[name]) for name in CRITERIA},
                }


def relative(name, value, plain):
    """Compare with the plain graph; skewness, which can be zero, by the difference."""
    return value - plain if name == "hubness" else value / plain


def correlations(rows):
    """Yield how well each criterion orders the gains, and how often a threshold is right."""
    gains = np.array([row["gain"] for row in rows])
    for name in CRITERIA:
        values = np.array([row[name] for row in rows])
        right, side, threshold = max(
            (int(((side * values >= side * value) == (gains > 0)).sum()), side, value)
            for value in (*values, np.inf, -np.inf)
            for side in (1, -1)
        )
        yield {
            "criterion": name,
            "Spearman correlation with gain": f"{stats.spearmanr(values, gains).statistic:+.2f}",
            "rightly decided": f"{right} of {len(rows)}",
            "learn where it is": f"{'at least' if side > 0 else 'at most'} {threshold:.3g}",
        }
    more = int((gains > 0).sum())
    yield {
        "criterion": "always the same",
        "Spearman correlation with gain": "",
        "rightly decided": f"{max(more, len(rows) - more)} of {len(rows)}",
        "learn where it is": "always" if 2 * more > len(rows) else "never",
    }
