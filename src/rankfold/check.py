"""Every check of what users hand in, and the errors that say how to mend it."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np

from rankfold.types import FloatArray, IntArray, Query

ROUNDING = 1e-8
"""Negative distances up to this share of the largest one are taken for rounding of zero."""


class InputError(ValueError):
    """Something handed to rankfold cannot be used; the message says what and why."""


class MissingExtraError(ImportError):
    """An optional package is not installed; the message names the extra that brings it."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(
            f"this needs the package {package!r}, which is not installed; "
            f"install it with: pip install 'rankfold[{extra}]'"
        )


def check_choice(value: object, name: str, allowed: Sequence[object]) -> None:
    """Require one of the allowed values."""
    if not any(value is choice or value == choice for choice in allowed):
        choices = ", ".join(repr(choice) for choice in allowed)
        raise InputError(f"{name} is {value!r}, but must be one of {choices}.")


def check_count(value: object, name: str, least: int = 1) -> int:
    """Require a whole number of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise InputError(f"{name} is {value!r}, but must be a whole number of at least {least}.")
    return int(value)


def check_positive(value: object, name: str) -> float:
    """Require a finite number above zero."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < np.inf:
        raise InputError(f"{name} is {value!r}, but must be a finite number above zero.")
    return float(value)


def check_flag(value: object, name: str) -> bool:
    """Require True or False."""
    if not isinstance(value, bool | np.bool_):
        raise InputError(f"{name} is {value!r}, but must be True or False.")
    return bool(value)


def check_norms(vectors: FloatArray, name: str, nonzero: bool) -> None:
    """Require vectors whose squared distances are finite and, for cosine, defined."""
    with np.errstate(over="ignore"):
        norms = np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64)
        if not np.isfinite(4 * norms.max(initial=0.0)):
            row = int(np.argmax(norms))
            raise InputError(
                f"{name} holds values too large for squared distances (row {row} has values up "
                f"to {np.abs(vectors[row]).max():.3g}); scale the data, for example with "
                "sklearn.preprocessing.StandardScaler."
            )
    if nonzero and not norms.all():
        row = int(np.argmin(norms))
        raise InputError(
            f"row {row} of {name} is all zeros, so metric='cosine' is not defined for it; "
            "remove such rows or use metric='euclidean'."
        )


def check_distances(distances: FloatArray, name: str) -> None:
    """Require distances that are not negative beyond rounding and can be squared."""
    least, largest = float(distances.min(initial=0.0)), float(distances.max(initial=0.0))
    if least < -ROUNDING * largest:
        row, column = np.unravel_index(int(np.argmin(distances)), distances.shape)
        raise InputError(
            f"{name} holds the negative distance {least:.6g} at row {row}, column {column}; "
            "distances must be zero or more. Similarities must be turned into distances first."
        )
    if largest > np.sqrt(np.finfo(np.float64).max):
        raise InputError(f"{name} holds the distance {largest:.3g}, too large to be squared.")


def check_ids(ids: Any, n_points: int) -> IntArray:
    """Require distinct row numbers of the database."""
    if ids is None:
        return np.empty(0, dtype=np.intp)
    array = np.atleast_1d(np.asarray(ids))
    if array.size == 0:
        return np.empty(0, dtype=np.intp)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise InputError(
            f"ids is {ids!r}, but must be a row number of the database or a flat list of them."
        )
    outside = array[(array < 0) | (array >= n_points)]
    if outside.size:
        raise InputError(f"ids holds {outside[0]}, but the database has rows 0 to {n_points - 1}.")
    array = array.astype(np.intp)
    values, counts = np.unique(array, return_counts=True)
    if counts.max() > 1:
        raise InputError(
            f"ids holds {values[counts.argmax()]} more than once; "
            "to make an example count more, give it a larger weight."
        )
    return array


def check_vectors(vectors: Any, n_features: int) -> FloatArray:
    """Require finite vectors of the width that was fitted."""
    if vectors is None:
        return np.empty((0, n_features))
    try:
        array = np.asarray(vectors)
        if array.dtype != np.float32:
            array = array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"vectors must be numbers in one row or in rows of equal length ({error})."
        ) from None
    if array.ndim == 1 and array.size:
        array = array[None, :]
    if array.size == 0:
        return np.empty((0, n_features))
    if array.ndim != 2 or array.shape[1] != n_features:
        raise InputError(
            f"vectors has shape {np.shape(vectors)}, but the fitted data has {n_features} columns: "
            f"expected ({n_features},) or (n_vectors, {n_features})."
        )
    bad = ~np.isfinite(array).all(axis=1)
    if bad.any():
        raise InputError(
            f"row {int(np.argmax(bad))} of vectors holds NaN or infinity; "
            "every value must be finite."
        )
    return array


def check_weights(weights: Any, n_examples: int) -> FloatArray:
    """Require a positive weight per example, and scale them so that the largest is 1."""
    if weights is None:
        return np.ones(n_examples)
    try:
        array = np.atleast_1d(np.asarray(weights, dtype=np.float64))
    except (TypeError, ValueError):
        raise InputError(f"weights is {weights!r}, but must be a list of numbers.") from None
    if array.shape != (n_examples,):
        raise InputError(
            f"weights has shape {array.shape}, but the query has {n_examples} examples "
            "(ids first, then vectors): give one weight for each."
        )
    if not (np.isfinite(array).all() and (array > 0).all()):
        raise InputError(f"weights is {weights!r}, but every weight must be finite and above zero.")
    scaled: FloatArray = array / array.max()
    return scaled


def check_query(query: object, n_points: int, n_features: int) -> Query:
    """Turn whatever was asked into a Query of checked arrays."""
    if isinstance(query, Integral) and not isinstance(query, bool):
        query = Query(ids=int(query))
    if not isinstance(query, Query):
        raise InputError(
            f"a query is {query!r}, but must be a row number or a rankfold.Query; "
            "an unseen vector is Query(vectors=...)."
        )
    ids = check_ids(query.ids, n_points)
    vectors = check_vectors(query.vectors, n_features)
    if not len(ids) + len(vectors):
        raise InputError("the query is empty: give ids of points, vectors, or both.")
    return Query(ids, vectors, check_weights(query.weights, len(ids) + len(vectors)))


def check_top(top: object, n_points: int) -> int:
    """Require a positive length of the answer; None means everything."""
    return n_points if top is None else min(check_count(top, "top"), n_points)
