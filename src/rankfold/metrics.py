"""Measures of one ranking: pure functions of which results are relevant.

Results come best first, already in order: no measure breaks ties. Rankers order theirs by a
rule of their own (plain distance among scores of zero, then the smaller row), and scores
read from a run file are put in order by ``trec_order``.

Whether the query is among the results is up to the caller, who then counts it in
``n_relevant`` as well. Results beyond the end of a short list count as wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rankfold.check import check_count
from rankfold.errors import InputError
from rankfold.types import BoolArray, FloatArray, IntArray


def precision(relevant: Any, cutoff: int) -> float:
    """Return the share of relevant ones among the first ``cutoff`` results.

    Parameters
    ----------
    relevant : sequence of bool
        Whether each result is relevant, best first. Missing results count as wrong.
    cutoff : int
        Results that are looked at.

    Examples
    --------
    >>> precision([True, False, True, True], cutoff=2)
    0.5
    """
    return _hits(relevant, cutoff) / cutoff


def recall(relevant: Any, cutoff: int, n_relevant: int) -> float:
    """Return the share of all ``n_relevant`` relevant points found in the first ``cutoff``.

    Parameters
    ----------
    relevant : sequence of bool
        Whether each result is relevant, best first.
    cutoff : int
        Results that are looked at.
    n_relevant : int
        Relevant points there are in all.

    Examples
    --------
    >>> recall([True, False, True, True], cutoff=2, n_relevant=4)
    0.25
    """
    _places(relevant, n_relevant)
    return _hits(relevant, cutoff) / n_relevant


def r_precision(relevant: Any, n_relevant: int) -> float:
    """Return the precision at the number of relevant points, where it equals the recall.

    Parameters
    ----------
    relevant : sequence of bool
        Whether each result is relevant, best first.
    n_relevant : int
        Relevant points there are in all.

    Examples
    --------
    >>> r_precision([True, False, True, True], n_relevant=2)
    0.5
    """
    return precision(relevant, check_count(n_relevant, "n_relevant"))


def bulls_eye(relevant: Any, n_relevant: int) -> float:
    """Return the share of the class found within the first ``2 * n_relevant`` results.

    In shape retrieval the query is one of the results and counts: a class of 20 is looked for
    among the first 40. With the query left out, its class has 19 others, looked for
    among the first 38.

    Parameters
    ----------
    relevant : sequence of bool
        Whether each result is relevant, best first.
    n_relevant : int
        Relevant points there are in all.

    Examples
    --------
    >>> bulls_eye([True, False, False, False, True], n_relevant=2)
    0.5
    """
    return recall(relevant, 2 * check_count(n_relevant, "n_relevant"), n_relevant)


def reciprocal_rank(relevant: Any) -> float:
    """Return one over the place of the first relevant result, or 0 without any.

    Parameters
    ----------
    relevant : sequence of bool
        Whether each result is relevant, best first.

    Examples
    --------
    >>> reciprocal_rank([False, False, False, True])
    0.25
    """
    places = np.flatnonzero(_flags(relevant))
    return 1.0 / (int(places[0]) + 1) if len(places) else 0.0


def average_precision(relevant: Any, n_relevant: int) -> float:
    """Return the average precision of TREC.

    The precision at the place ``r_j`` of the j-th relevant result, summed over those found
    and divided by all R relevant points,

        AP = 1/R sum_j j / r_j.

    Parameters
    ----------
    relevant : sequence of bool
        Whether each result is relevant, best first.
    n_relevant : int
        Relevant points there are in all.

    Examples
    --------
    >>> average_precision([True, False, False, True], n_relevant=2)
    0.75
    """
    places, counts = _places(relevant, n_relevant)
    return float((counts / places).sum() / n_relevant)


def trapezoidal_average_precision(relevant: Any, n_relevant: int) -> float:
    """Return the area below the curve of precision over recall, by trapezoids.

    The form in use for image retrieval (the Oxford and Paris buildings): each relevant result
    contributes the mean of the precision just before and just after it,

        AP = 1/R sum_j ((j - 1) / (r_j - 1) + j / r_j) / 2,

    with precision 1 before the first result. Never larger than ``average_precision``.

    Parameters
    ----------
    relevant : sequence of bool
        Whether each result is relevant, best first.
    n_relevant : int
        Relevant points there are in all.

    Examples
    --------
    >>> trapezoidal_average_precision([True, False, False, True], n_relevant=2)
    0.7083333333333333
    """
    places, counts = _places(relevant, n_relevant)
    before = np.where(places == 1, 1.0, (counts - 1) / np.maximum(places - 1, 1))
    return float((before + counts / places).sum() / (2 * n_relevant))


def ndcg(gains: Any, cutoff: int, ideal: Any) -> float:
    """Return the discounted gain of the first ``cutoff`` results, beside the best possible.

    The gain at place i counts by ``1 / log2(i + 1)``, in the results and in the ideal list,

        nDCG = sum_i g_i / log2(i + 1)  /  sum_i g*_i / log2(i + 1),    i = 1 ... cutoff.

    Parameters
    ----------
    gains : sequence of float or bool
        What each result is worth, best result first: True and False, or grades. For the
        variant that favours high grades, hand in ``2.0**grades - 1`` here and below.
    cutoff : int
        Results that are looked at.
    ideal : sequence of float or bool
        What every relevant point is worth, in any order.

    Examples
    --------
    >>> ndcg([True, False, True], cutoff=2, ideal=[True, True])
    0.6131471927654584
    >>> ndcg([1, 3], cutoff=2, ideal=[3, 1])
    0.7967075809905066
    """
    check_count(cutoff, "cutoff")
    found, best = _gains(gains, "gains"), _gains(ideal, "ideal")
    if not best.any():
        raise InputError("ideal holds nothing above zero, but nDCG needs a relevant point.")
    return _discounted(found[:cutoff]) / _discounted(np.sort(best)[::-1][:cutoff])


def trec_order(ids: Sequence[str], scores: Any) -> IntArray:
    """Return the order in which trec_eval reads the results of a run file.

    Scores descend in single precision, as trec_eval holds them; ties go to the id that is
    later in the alphabet, whatever rank the file claims.

    Parameters
    ----------
    ids : sequence of str
        Names of the results.
    scores : sequence of float
        One for each.

    Returns
    -------
    order : array of int
        Positions in ``ids``, best first.

    Examples
    --------
    >>> trec_order(["a", "b", "c"], [0.5, 0.5, 0.9])
    array([2, 1, 0])
    """
    single = np.asarray(scores, dtype=np.float32)
    if single.shape != (len(ids),):
        raise InputError(
            f"scores has shape {single.shape}, but there are {len(ids)} ids: give one score each."
        )
    alphabet = np.argsort(np.argsort(np.asarray([str(name) for name in ids], dtype=object)))
    order: IntArray = np.lexsort((-alphabet, -single))
    return order


def _hits(relevant: Any, cutoff: int) -> int:
    return int(np.count_nonzero(relevant[: check_count(cutoff, "cutoff")]))


def _flags(relevant: Any) -> BoolArray:
    return np.asarray(relevant, dtype=bool)


def _places(relevant: Any, n_relevant: int) -> tuple[IntArray, IntArray]:
    """Return the places of the relevant results, from 1, and how many there are up to each."""
    check_count(n_relevant, "n_relevant")
    places = np.flatnonzero(_flags(relevant)) + 1
    if len(places) > n_relevant:
        raise InputError(
            f"relevant holds {len(places)} relevant results, but n_relevant is {n_relevant}; "
            "count every relevant point, and the query too if it is among the results."
        )
    return places, np.arange(1, len(places) + 1)


def _gains(gains: Any, name: str) -> FloatArray:
    array = np.asarray(gains, dtype=np.float64)
    if array.ndim != 1 or not (np.isfinite(array).all() and (array >= 0).all()):
        raise InputError(f"{name} must be a flat list of finite numbers, none below zero.")
    return array


def _discounted(gains: FloatArray) -> float:
    return float((gains / np.log2(np.arange(len(gains)) + 2)).sum())
