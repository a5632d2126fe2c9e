"""Measures by name, and how sure a mean over queries is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from rankfold import metrics
from rankfold.errors import InputError
from rankfold.types import FloatArray

CONFIDENCE = 0.95

N_RESAMPLES = 2_000
"""Samples of queries drawn for a confidence interval."""

N_FLIPS = 9_999
"""Random signs drawn for a paired test; the smallest p-value is one over this plus one."""

ROUNDING = 1e-9
"""Values of a measure that differ by less are the same value, computed in another order."""

BLOCK = 2**22
"""Random numbers held at once."""

DEFAULTS = ("r_precision", "average_precision", "ndcg@10")
"""What is measured unless asked otherwise; r_precision is the precision at the class size."""

DEFAULTS_OF = {
    ("labels", False): DEFAULTS,
    ("labels", True): ("precision@1", "precision@10", "precision@50", "ndcg@10"),
    ("judgements", False): ("ndcg@10", "average_precision", "recall@100"),
    ("judgements", True): ("ndcg@10", "average_precision@1000", "recall@100"),
}
"""The same, by what says which points are relevant, and whether there are many points: then no
measure needs a ranking of all of them."""

WITH_CUTOFF: dict[str, Callable[[FloatArray, FloatArray, int], float]] = {
    "precision": lambda gains, ideal, cutoff: metrics.precision(gains > 0, cutoff),
    "recall": lambda gains, ideal, cutoff: metrics.recall(gains > 0, cutoff, len(ideal)),
    "ndcg": lambda gains, ideal, cutoff: metrics.ndcg(gains, cutoff, ideal),
    "average_precision": lambda gains, ideal, cutoff: metrics.average_precision(
        gains[:cutoff] > 0, len(ideal)
    ),
}

WITHOUT_CUTOFF: dict[str, Callable[[FloatArray, FloatArray], float]] = {
    "average_precision": lambda gains, ideal: metrics.average_precision(gains > 0, len(ideal)),
    "trapezoidal_average_precision": lambda gains, ideal: metrics.trapezoidal_average_precision(
        gains > 0, len(ideal)
    ),
    "r_precision": lambda gains, ideal: metrics.r_precision(gains > 0, len(ideal)),
    "bulls_eye": lambda gains, ideal: metrics.bulls_eye(gains > 0, len(ideal)),
    "reciprocal_rank": lambda gains, ideal: metrics.reciprocal_rank(gains > 0),
}


def bootstrap_interval(values: FloatArray, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    """Return the 95 % interval of the mean of every column, by the percentile bootstrap.

    Queries are drawn with replacement, as many as there are; the interval holds the middle
    95 % of the means of such samples. All columns see the same samples.

    Parameters
    ----------
    values : array, shape (n_queries, n_columns)
    seed : int

    Returns
    -------
    low, high : array, shape (n_columns,)

    Examples
    --------
    >>> import numpy as np
    >>> low, high = bootstrap_interval(np.array([[0.0], [1.0]] * 50))
    >>> print(f"{low[0]:.2f} {high[0]:.2f}")
    0.40 0.60
    """
    rng = np.random.default_rng(seed)
    n_queries = len(values)
    means = []
    for size in _sizes(N_RESAMPLES, n_queries):
        drawn = rng.integers(n_queries, size=(size, n_queries))
        means.append(np.stack([column[drawn].mean(axis=1) for column in values.T], axis=1))
    tail = 100 * (1 - CONFIDENCE) / 2
    low, high = np.percentile(np.concatenate(means), [tail, 100 - tail], axis=0)
    # The mean of equal values may differ from them in the last digit.
    mean = values.mean(axis=0)
    return np.minimum(low, mean), np.maximum(high, mean)


def randomization_test(differences: FloatArray, seed: int = 0) -> FloatArray:
    """Return two-sided p-values for "the mean difference is zero", one per column.

    Fisher's paired randomisation: if two methods were alike, the sign of the difference on
    each query would be a coin toss. The p-value is the share of tosses, the observed one
    among them, whose mean is at least as far from zero. Columns without any difference
    have p = 1. The p-values are not corrected for the number of methods compared.

    Parameters
    ----------
    differences : array, shape (n_queries, n_columns)
        Value of one method minus value of the other, query by query.
    seed : int

    Examples
    --------
    >>> import numpy as np
    >>> differences = np.column_stack([np.zeros(20), np.ones(20)])
    >>> randomization_test(differences).tolist()
    [1.0, 0.0001]
    """
    rng = np.random.default_rng(seed)
    n_queries = len(differences)
    observed = np.abs(differences.sum(axis=0)) - ROUNDING * max(1, n_queries)
    as_far = np.ones(differences.shape[1])
    for size in _sizes(N_FLIPS, n_queries):
        signs = rng.integers(2, size=(size, n_queries), dtype=np.int8) * 2.0 - 1.0
        as_far += (np.abs(signs @ differences) >= observed).sum(axis=0)
    p_values: FloatArray = as_far / (N_FLIPS + 1)
    return p_values


def share_worse(values: FloatArray, plain: FloatArray) -> float:
    """Return the share of queries on which a method falls behind plain distance.

    Examples
    --------
    >>> import numpy as np
    >>> share_worse(np.array([0.5, 0.2, 1.0, 0.0]), np.array([0.5, 0.3, 0.9, 0.0]))
    0.25
    """
    return float(np.mean(values < plain - ROUNDING))


def _sizes(total: int, n_queries: int) -> list[int]:
    """Split ``total`` samples into blocks that fit in memory."""
    step = max(1, BLOCK // max(1, n_queries))
    return [min(step, total - start) for start in range(0, total, step)]


@dataclass(frozen=True)
class Measure:
    """A measure of one ranking.

    Parameters
    ----------
    kind : str
        A name of ``WITH_CUTOFF`` or ``WITHOUT_CUTOFF``.
    cutoff : int, optional
        How many results are looked at, where the kind needs to be told.

    Examples
    --------
    >>> import numpy as np
    >>> Measure("precision", 2)(np.array([1.0, 0.0, 1.0]), ideal=np.ones(2))
    0.5
    """

    kind: str
    cutoff: int | None = None

    @property
    def name(self) -> str:
        """The name that gives this measure when parsed."""
        return self.kind if self.cutoff is None else f"{self.kind}@{self.cutoff}"

    def __call__(self, gains: FloatArray, ideal: FloatArray) -> float:
        """Measure results of these gains; ``ideal`` is what each relevant point is worth."""
        if self.cutoff is None:
            return WITHOUT_CUTOFF[self.kind](gains, ideal)
        return WITH_CUTOFF[self.kind](gains, ideal, self.cutoff)

    def depth(self, n_relevant: int, n_points: int) -> int:
        """Return how many results this measure looks at."""
        if self.cutoff is not None:
            return min(self.cutoff, n_points)
        depths = {"r_precision": n_relevant, "bulls_eye": 2 * n_relevant}
        return min(depths.get(self.kind, n_points), n_points)


def parse_measures(names: str | Sequence[str]) -> tuple[Measure, ...]:
    """Return the measures of these names.

    Examples
    --------
    >>> [measure.name for measure in parse_measures(["ndcg@20", "bulls_eye"])]
    ['ndcg@20', 'bulls_eye']
    """
    names = [names] if isinstance(names, str) else list(names)
    if not names:
        raise InputError(
            f"metrics is empty; give at least one, for example {DEFAULTS[0]!r}.", "metrics"
        )
    measures = tuple(_parse(name) for name in names)
    for measure in measures:
        if measures.count(measure) > 1:
            raise InputError(
                f"metrics holds {measure.name!r} more than once; name each one once.", "metrics"
            )
    return measures


def _parse(name: object) -> Measure:
    kind, at, cutoff = str(name).partition("@")
    if kind in WITHOUT_CUTOFF and at and kind not in WITH_CUTOFF:
        raise InputError(
            f"metric {name!r} has a cutoff, but {kind} takes none; write {kind!r}.", "metrics"
        )
    if kind in WITHOUT_CUTOFF and not at:
        return Measure(kind)
    if kind not in WITH_CUTOFF:
        known = ", ".join([*WITHOUT_CUTOFF, *(f"{kind}@K" for kind in WITH_CUTOFF)])
        raise InputError(f"metric {name!r} is not known; choose from {known}.", "metrics")
    if not (cutoff.isascii() and cutoff.isdigit() and int(cutoff) > 0):
        raise InputError(
            f"metric {name!r} needs a cutoff, a whole number of at least 1; write '{kind}@10'.",
            "metrics",
        )
    return Measure(kind, int(cutoff))


def usual_measures(says: str, many_points: bool) -> tuple[str, ...]:
    """Return what is measured unless asked otherwise.

    Parameters
    ----------
    says : {"labels", "judgements"}
        What says which points are relevant.
    many_points : bool
        Whether a ranking of all points would take too long.

    Examples
    --------
    >>> usual_measures("labels", many_points=True)
    ('precision@1', 'precision@10', 'precision@50', 'ndcg@10')
    """
    return DEFAULTS_OF[says, many_points]


def measure_all(
    measures: Sequence[Measure], gains: FloatArray, ideal: FloatArray
) -> dict[str, float]:
    """Return every measure of one ranking by its name."""
    return {measure.name: measure(gains, ideal) for measure in measures}


def depth_of(measures: Sequence[Measure], n_relevant: int, n_points: int) -> int:
    """Return how many results the most demanding of the measures looks at."""
    return int(np.max([measure.depth(n_relevant, n_points) for measure in measures]))
