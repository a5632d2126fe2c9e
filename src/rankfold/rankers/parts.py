"""Queries with negative examples, taken apart: what pulls up, and what pulls down."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from rankfold.rankers.ordering import certain_scores
from rankfold.solvers.contract import EPS
from rankfold.types import Query, Solution


def one_sided(queries: Sequence[Query]) -> list[Query]:
    """Return two queries for each that has a negative weight, and all others as they are.

    Both have all its examples: one with positive weights as they are and zero for the others, one
    with negative weights turned positive and zero for the others.
    """
    parts = []
    for query in queries:
        if (query.weights >= 0).all():
            parts.append(query)
        else:
            parts.append(replace(query, weights=np.maximum(query.weights, 0.0)))
            parts.append(replace(query, weights=np.maximum(-query.weights, 0.0)))
    return parts


def joined(queries: Sequence[Query], solutions: Iterable[Solution]) -> Iterator[Solution]:
    """Subtract the parts of `one_sided` again, for a method that is linear in its weights.

    Each part only adds up positive terms, so its error is known; errors of both add up. A score
    that they cannot tell from zero is zero.
    """
    parts = iter(solutions)
    for query in queries:
        up = next(parts)
        if (query.weights >= 0).all():
            yield up
            continue
        down = next(parts)
        scores = up.scores - down.scores
        rounding = EPS * float(np.abs(scores).max(initial=0.0))
        yield certain_scores(
            Solution(
                scores,
                up.residual + down.residual,
                up.bound + down.bound + rounding,
                max(up.n_iter, down.n_iter),
                up.converged and down.converged,
            )
        )
    # Whoever solves may have something to say at the end.
    next(parts, None)
