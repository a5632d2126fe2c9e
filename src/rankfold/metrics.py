"""Measures of one ranking: pure functions of which results are relevant."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankfold.check import check_count


def precision(relevant: Any, cutoff: int) -> float:
    """Return the share of relevant ones among the first ``cutoff`` results.

    Parameters
    ----------
    relevant : sequence of bool
        Whether each result is relevant, best first. Missing results count as wrong.
    cutoff : int

    Examples
    --------
    >>> precision([True, False, True, True], cutoff=2)
    0.5
    """
    return _hits(relevant, cutoff) / cutoff


def recall(relevant: Any, cutoff: int, n_relevant: int) -> float:
    """Return the share of all ``n_relevant`` relevant points found in the first ``cutoff``.

    Examples
    --------
    >>> recall([True, False, True, True], cutoff=2, n_relevant=4)
    0.25
    """
    return _hits(relevant, cutoff) / check_count(n_relevant, "n_relevant")


def _hits(relevant: Any, cutoff: int) -> int:
    return int(np.count_nonzero(relevant[: check_count(cutoff, "cutoff")]))
