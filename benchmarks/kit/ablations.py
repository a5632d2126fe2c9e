"""Every choice of collective learning varied alone, beside one alternation."""

import numpy as np

from kit.all_queries import Judge, percent
from kit.learned_graphs import SMOOTHNESS, Workshop
from rankfold.graph import candidate_lists

ROUNDS, WEIGHTS, PROFILE_SMOOTHNESS = (0, 1, 2, 3, 4), (1.0, 3.0, 10.0, 30.0), (0.3, 1.0, 3.0)
QUERY_SMOOTHNESS, NEIGHBORS = (10.0, 30.0, 100.0), (5, 10, 20)


class Bench:
    """A set with its workshop, and the precision of one alternation on it."""

    def __init__(self, dataset):
        self.judge = Judge(dataset)
        self.n_neighbors = candidate_lists(self.judge.engine, "auto", 2)[1]
        self.workshop = Workshop(self.judge.engine, self.n_neighbors)
        self.one = self.judge.precisions(self.workshop.plain, SMOOTHNESS)

    def at(self, n_neighbors, smoothness):
        """Return what one alternation and the learned graph do at another k and smoothness."""
        workshop = Workshop(self.judge.engine, n_neighbors, smoothness)
        graphs = workshop.plain, workshop.guarded()[0].symmetric()
        return [self.judge.precisions(graph, smoothness) for graph in graphs]


def summary(what, value, benches, results, base=None):
    """Return a row: precision on every set, mean gain over a base, the worst gain, mean harm."""
    base = [bench.one for bench in benches] if base is None else base
    gains = [percent(new) - percent(old) for new, old in zip(results, base, strict=True)]
    harm = [bench.judge.harm(found) for bench, found in zip(benches, results, strict=True)]
    return {
        "what": what,
        "value": value,
        **{
            bench.judge.name: f"{percent(found):.2f}"
            for bench, found in zip(benches, results, strict=True)
        },
        "mean gain": f"{np.mean(gains):+.2f}",
        "worst gain": f"{min(gains):+.2f}",
        "harm": f"{np.mean(harm):.1f}",
    }


def on_each(benches, make):
    """Return the precisions on every set of the graph that is made in its workshop."""
    return [bench.judge.precisions(make(bench.workshop), SMOOTHNESS) for bench in benches]


def without_guard(benches):
    for rounds in ROUNDS:
        made = on_each(benches, lambda w, r=rounds: w.unguarded(1, r).symmetric())
        yield summary("rounds, k' = k", rounds, benches, made)
    wider = [bench for bench in benches if bench.workshop.allows(2)]
    for rounds in ROUNDS[1:]:
        made = on_each(wider, lambda w, r=rounds: w.unguarded(2, r).symmetric())
        row = summary("rounds, k' = 2k, where candidates allow it", rounds, wider, made)
        yield {**dict.fromkeys(summary("", "", benches, [b.one for b in benches]), "-"), **row}
    dampings = {
        "mean of the lifts": lambda w: w.unguarded(1, 3).symmetric(),
        "none, last lift only": lambda w: w.with_last_lift(3),
        "half a step in S": lambda w: w.with_half_steps(3),
        "mean of all S": lambda w: w.with_mean_affinity(3),
    }
    for name, make in dampings.items():
        yield summary("damping, 3 rounds", name, benches, on_each(benches, make))
    for weight in WEIGHTS:
        made = on_each(benches, lambda w, m=weight: w.unguarded(1, 3, weight=m).symmetric())
        yield summary("mu, 3 rounds", f"{weight:g}", benches, made)
    for value in PROFILE_SMOOTHNESS:
        made = on_each(
            benches, lambda w, s=value: w.unguarded(1, 3, profile_smoothness=s).symmetric()
        )
        yield summary("lambda_F, 3 rounds", f"{value:g}", benches, made)


def with_guard(benches):
    made = on_each(benches, lambda w: w.plain)
    yield summary("one alternation", "", benches, made)
    for weight in WEIGHTS:
        made = on_each(benches, lambda w, m=weight: w.guarded(weight=m)[0].symmetric())
        yield summary("mu", f"{weight:g}", benches, made)
    for value in PROFILE_SMOOTHNESS:
        made = on_each(benches, lambda w, s=value: w.guarded(profile_smoothness=s)[0].symmetric())
        yield summary("lambda_F", f"{value:g}", benches, made)


def other_graphs(benches):
    """Yield pairs of rows: one alternation, and the learned graph, each at the same setting."""
    settings = [(k, SMOOTHNESS) for k in NEIGHBORS]
    settings += [("auto", smoothness) for smoothness in QUERY_SMOOTHNESS]
    for k, smoothness in settings:
        found = [b.at(b.n_neighbors if k == "auto" else k, smoothness) for b in benches]
        one, learned = zip(*found, strict=True)
        value = f"k {k}, smoothness {smoothness:g}"
        yield summary("one alternation", value, benches, one, one)
        yield summary("collective", value, benches, learned, one)
