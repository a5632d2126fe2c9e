"""How sure is a mean over queries: intervals, paired tests, and the share of harm."""

from __future__ import annotations

import numpy as np

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
