"""Measures by name, as an evaluation takes them: ``"precision@10"``, ``"average_precision"``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from rankfold import metrics
from rankfold.check import InputError
from rankfold.types import FloatArray

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
        raise InputError(f"metrics is empty; give at least one, for example {DEFAULTS[0]!r}.")
    measures = tuple(_parse(name) for name in names)
    for measure in measures:
        if measures.count(measure) > 1:
            raise InputError(f"metrics holds {measure.name!r} more than once; name each one once.")
    return measures


def _parse(name: object) -> Measure:
    kind, at, cutoff = str(name).partition("@")
    if kind in WITHOUT_CUTOFF and at and kind not in WITH_CUTOFF:
        raise InputError(f"metric {name!r} has a cutoff, but {kind} takes none; write {kind!r}.")
    if kind in WITHOUT_CUTOFF and not at:
        return Measure(kind)
    if kind not in WITH_CUTOFF:
        known = ", ".join([*WITHOUT_CUTOFF, *(f"{kind}@K" for kind in WITH_CUTOFF)])
        raise InputError(f"metric {name!r} is not known; choose from {known}.")
    if not (cutoff.isascii() and cutoff.isdigit() and int(cutoff) > 0):
        raise InputError(
            f"metric {name!r} needs a cutoff, a whole number of at least 1; write '{kind}@10'."
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
