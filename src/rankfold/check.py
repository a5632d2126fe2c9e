"""Every check of what users give; each error says what was given and how to correct it."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any

import numpy as np

from rankfold.errors import InputError
from rankfold.types import BoolArray, FloatArray, IntArray, Query

ROUNDING = 1e-8
"""Differences up to this share of the largest number are taken for rounding."""


ZERO = 1e-5
"""Distances up to this share of the largest one, above or below zero, may be rounding of zero.

Such is that of cosine distances in single precision.
"""


HEAVIEST_DISTANCE = 100.0
"""Largest weight of distance beside shape; e to minus this is still far from underflow."""


FINITE_BLOCK = 2**22
"""Values looked at together, so that data mapped from disk is not copied as a whole."""

NAMES_ELSEWHERE = {
    **dict.fromkeys(["limit", "top_k", "topk", "k", "n_results", "size"], "top"),
    **dict.fromkeys(["filter", "filters"], "where"),
    **dict.fromkeys(["score_threshold", "threshold", "minscore"], "min_score"),
    **dict.fromkeys(["mmr", "mmr_lambda", "lambda_mult"], "diversity"),
    **dict.fromkeys(["group_size"], "per_group"),
    **dict.fromkeys(["skip"], "offset"),
    **dict.fromkeys(["id"], "ids"),
    **dict.fromkeys(["vector", "embedding", "query_vector"], "vectors"),
}
"""What arguments are called elsewhere, and here."""


def warn_caller(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn with the nearest line of code outside this package."""
    package = __name__.partition(".")[0]
    frame, level = sys._getframe(1), 2
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] == package:
        frame = frame.f_back
        level += 1
    warnings.warn(message, category, stacklevel=level)


@contextmanager
def about(argument: str) -> Iterator[None]:
    """Let errors name the argument that they are about.

    Examples
    --------
    >>> try:
    ...     with about("parameters"):
    ...         check_count(0, "n_neighbors")
    ... except InputError as error:
    ...     print(error.argument)
    parameters.n_neighbors
    """
    try:
        yield
    except InputError as error:
        error.argument = argument if error.argument is None else f"{argument}.{error.argument}"
        raise


def check_choice(value: object, name: str, allowed: Sequence[object]) -> None:
    """Require one of the allowed values."""
    if not (value is None or isinstance(value, str)) or value not in allowed:
        choices = ", ".join(repr(choice) for choice in allowed)
        raise InputError(f"{name} is {value!r}, but must be one of {choices}.", name)


def check_count(value: object, name: str, least: int = 1) -> int:
    """Require a whole number of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise InputError(
            f"{name} is {value!r}, but must be a whole number of at least {least}.", name
        )
    return int(value)


def check_neighbors(value: object) -> None:
    """Require "auto" or a number of neighbours."""
    if not (isinstance(value, str) and value == "auto"):
        check_count(value, "n_neighbors")


def check_positive(value: object, name: str, most: float = sys.float_info.max) -> float:
    """Require a finite number above zero, and none beyond ``most``."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) <= most:
        limit = "" if most == sys.float_info.max else f", at most {most:g}"
        raise InputError(
            f"{name} is {value!r}, but must be a finite number above zero{limit}.", name
        )
    return float(value)


def check_number(value: object, name: str) -> float:
    """Require a finite number."""
    if isinstance(value, bool) or not isinstance(value, Real) or not np.isfinite(float(value)):
        raise InputError(f"{name} is {value!r}, but must be a finite number.", name)
    return float(value)


def called_here(name: str) -> str:
    """Return a hint where an argument has another name here; nothing where it has none.

    Examples
    --------
    >>> called_here("top_k")
    " What is called 'top_k' elsewhere is 'top' here."
    """
    here = NAMES_ELSEWHERE.get(name)
    return f" What is called {name!r} elsewhere is {here!r} here." if here else ""


def check_share(value: object, name: str, *, zero: bool = False, one: bool = False) -> float:
    """Require a number between 0 and 1; the flags say which ends are allowed."""
    share = float("nan")
    if isinstance(value, Real) and not isinstance(value, bool):
        share = float(value)
    if not (0 < share < 1 or (zero and share == 0) or (one and share == 1)):
        low, high = "0 or more" if zero else "above 0", "at most 1" if one else "below 1"
        raise InputError(f"{name} is {value!r}, but must be a number {low} and {high}.", name)
    return share


def check_budget(budget: object) -> None:
    """Require "auto", a number of points, or None."""
    if isinstance(budget, str) and budget != "auto":
        raise InputError(
            f"budget is {budget!r}, but must be 'auto', a whole number of points, or None for as "
            "many as a proof takes.",
            "budget",
        )
    if not (budget is None or isinstance(budget, str)):
        check_count(budget, "budget")


def check_fusion(fusion: object) -> None:
    """Require a name of a fusion, or a weight of distance."""
    names = ("auto", "none", "reciprocal_rank")
    if isinstance(fusion, str) and fusion in names:
        return
    if isinstance(fusion, str) or not isinstance(fusion, Real) or isinstance(fusion, bool):
        raise InputError(
            f"fusion is {fusion!r}, but must be one of {', '.join(map(repr, names))}, or a number: "
            "the weight of distance.",
            "fusion",
        )
    if not 0 <= float(fusion) <= HEAVIEST_DISTANCE:
        raise InputError(
            f"fusion is {fusion!r}, but a weight of distance is between 0, shape alone, and "
            f"{HEAVIEST_DISTANCE:g}, nearly distance alone.",
            "fusion",
        )


def check_flag(value: object, name: str) -> bool:
    """Require True or False."""
    if not isinstance(value, bool | np.bool_):
        raise InputError(f"{name} is {value!r}, but must be True or False.", name)
    return bool(value)


def check_matrix(array: Any, name: str, n_columns: int | None = None, first: int = 0) -> FloatArray:
    """Require rows of finite real numbers, as many in each as were fitted.

    ``first`` is the number of the first row, for the message.
    """
    matrix = np.asarray(array)
    if matrix.dtype.kind not in "iufb":
        raise InputError(
            f"{name} holds {matrix.dtype} values, but must be a dense array of real numbers."
        )
    if matrix.ndim != 2 or (n_columns is not None and matrix.shape[1] != n_columns):
        expected = "(n_points, n_features)"
        if n_columns is not None:
            expected = f"({n_columns},) or (n_vectors, {n_columns}), like the fitted data"
        raise InputError(f"{name} has shape {matrix.shape}, but must have shape {expected}.")
    if matrix.dtype != np.float32:
        matrix = matrix.astype(np.float64, copy=False)
    check_finite(matrix, name, first)
    return matrix


def check_finite(matrix: FloatArray, name: str, first: int = 0) -> None:
    """Require finite numbers; ``first`` is the number of the first row, for the message."""
    step = max(1, FINITE_BLOCK // max(1, matrix.shape[1]))
    for start in range(0, len(matrix), step):
        finite = np.isfinite(matrix[start : start + step])
        if not finite.all():
            row, column = np.unravel_index(int(np.argmin(finite)), finite.shape)
            raise InputError(
                f"row {first + start + row} of {name} holds NaN or infinity (in column {column}); "
                "every value must be finite."
            )


def check_norms(vectors: FloatArray, name: str) -> None:
    """Require vectors whose squared distances are finite."""
    with np.errstate(over="ignore"):
        norms = np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64)
        if np.isfinite(4 * norms.max(initial=0.0)):
            return
    row = int(np.argmax(norms))
    raise InputError(
        f"{name} holds values too large for squared distances (row {row} has values up to "
        f"{np.abs(vectors[row]).max():.3g}); scale the data, for example with "
        "sklearn.preprocessing.StandardScaler."
    )


def check_single_precision(vectors: FloatArray, name: str, least: float = 0.0) -> None:
    """Require values whose squares float32 can hold, and not all of them below ``least``."""
    largest = float(np.abs(vectors).max(initial=0.0))
    most = 1e18 / np.sqrt(max(1, vectors.shape[1]))
    if largest > most or 0 < largest < least:
        raise InputError(
            f"{name} holds values up to {largest:.3g}, but squared distances in single precision "
            f"need them between {least:g} and {most:.3g}; scale the data, for example with "
            "sklearn.preprocessing.StandardScaler, or use ExactEngine."
        )


def check_directions(vectors: FloatArray, name: str, first: int = 0) -> FloatArray:
    """Require vectors that point somewhere, and scale them so that none is too long to square.

    ``first`` is the number of the first row, for the message.
    """
    largest = np.abs(vectors).max(axis=1, initial=0.0)
    if not largest.all():
        row = first + int(np.argmin(largest))
        raise InputError(
            f"row {row} of {name} is all zeros, so metric='cosine' is not "
            "defined for it; remove such rows or use metric='euclidean'."
        )
    scaled: FloatArray = vectors.astype(np.float64) / largest[:, None]
    return scaled


def check_distances(distances: Any, name: str, squared: bool) -> None:
    """Require distances that are not negative beyond rounding and, if need be, can be squared.

    They are an array, or a sparse one of which only the stored entries count.
    """
    entries = distances.tocoo() if hasattr(distances, "tocoo") else None
    values = distances if entries is None else entries.data
    least, largest = float(values.min(initial=0.0)), float(values.max(initial=0.0))
    if least < -ZERO * largest:
        place = int(np.argmin(values))
        row, column = (
            np.unravel_index(place, values.shape)
            if entries is None
            else (entries.row[place], entries.col[place])
        )
        raise InputError(
            f"{name} holds the negative distance {least:.6g} at row {row}, column {column}; "
            "distances must be zero or more. Similarities must be turned into distances first."
        )
    if squared and largest > np.sqrt(np.finfo(np.float64).max):
        raise InputError(f"{name} holds the distance {largest:.3g}, too large to be squared.")


def check_diagonal(distances: FloatArray, name: str) -> None:
    """Require that every point is at distance zero from itself."""
    own = np.abs(np.diagonal(distances))
    if own.max(initial=0.0) > ZERO * float(distances.max(initial=0.0)):
        row = int(np.argmax(own))
        raise InputError(
            f"{name} says that point {row} is at distance {own[row]:.6g} from itself, but the "
            "diagonal of a distance matrix must be zero. Similarities must be turned into "
            "distances first, for example 1 - similarity."
        )


def check_graph(weights: Any, n_points: int) -> None:
    """Require symmetric weights of zero or more between all points of the database."""
    if weights.shape != (n_points, n_points):
        raise InputError(
            f"the graph has weights of shape {weights.shape}, but there are {n_points} points: "
            f"build must return shape ({n_points}, {n_points})."
        )
    entries = weights.data if hasattr(weights, "tocsr") else weights
    if not (np.isfinite(entries).all() and (entries >= 0).all()):
        raise InputError("the graph has weights that are negative, NaN or infinite.")
    uneven = float(abs(weights - weights.T).max()) if n_points else 0.0
    if uneven > ROUNDING * float(entries.max(initial=0.0)):
        raise InputError(
            "the weights of the graph are not symmetric, which the methods and their error bounds "
            "rely on: let build return (W + W') / 2."
        )


def check_indices(
    indices: Any, n_points: int, alive: BoolArray | None = None, name: str = "indices"
) -> IntArray:
    """Require distinct row numbers of the database, of points that were not removed."""
    if indices is None:
        return np.empty(0, dtype=np.intp)
    array = np.atleast_1d(np.asarray(indices))
    if array.size == 0:
        return np.empty(0, dtype=np.intp)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise InputError(
            f"{name} is {_short(indices)}, but must be a row number of the database or a flat "
            "list of them; an example that is not in the database goes into vectors."
        )
    outside = array[(array < 0) | (array >= n_points)]
    if outside.size:
        raise InputError(
            f"{name} holds {outside[0]}, but the database has rows 0 to {n_points - 1}; give row "
            "numbers of the data that was fitted."
        )
    array = array.astype(np.intp)
    values, counts = np.unique(array, return_counts=True)
    if counts.max() > 1:
        raise InputError(
            f"{name} holds {values[counts.argmax()]} more than once; "
            "to make an example count more, give it a larger weight."
        )
    if alive is not None and not alive[array].all():
        raise InputError(
            f"{name} holds {array[~alive[array]][0]}, which was removed from the database; "
            "give row numbers of points that are still there."
        )
    return array


def check_vectors(vectors: Any, n_features: int, partial: bool = False) -> FloatArray:
    """Require finite vectors of the width that was fitted; one may come as a flat row.

    Where ``partial``, they are rows of distances, of which some are unknown: inf, or not stored in
    rows that are sparse.
    """
    if vectors is None:
        return np.empty((0, n_features))
    if partial and hasattr(vectors, "tocoo"):
        vectors = _with_unknown(vectors)
    try:
        array = np.asarray(vectors)
    except ValueError:
        raise InputError("vectors must be numbers in rows of equal length.") from None
    if array.ndim > 0 and array.size == 0:
        return np.empty((0, n_features))
    rows = array[None, :] if array.ndim == 1 else array
    if not partial:
        return check_matrix(rows, "vectors", n_features)
    unknown = rows == np.inf
    known = check_matrix(np.where(unknown, 0, rows), "vectors", n_features)
    return np.where(unknown, np.inf, known)


def _with_unknown(rows: Any) -> FloatArray:
    """Return sparse rows of distances as dense ones, with inf where nothing is stored."""
    stored = rows.tocoo(copy=True)
    stored.sum_duplicates()
    if np.isinf(stored.data).any():
        raise InputError("vectors holds infinite distances; leave out those that are unknown.")
    dense = np.full(stored.shape, np.inf)
    dense[stored.coords] = stored.data
    return dense


def check_examples(vectors: Any, batch: str, argument: str = "vectors") -> None:
    """Require one vector, or a list of several; an array of rows could be meant for many queries.

    ``batch`` names the method that takes these.
    """
    shape: tuple[int, ...] = getattr(vectors, "shape", ())
    if len(shape) == 2 and shape[0] > 1:
        raise InputError(
            f"{argument} is an array of {shape[0]} rows, but one query is asked here: give list(X) "
            f"for a query of {shape[0]} examples, or take {batch} for {shape[0]} queries.",
            argument,
        )


def check_rows(X: Any) -> Any:
    """Require an array of two dimensions, a row for each query."""
    rows = np.asarray(X)
    if rows.ndim != 2:
        raise InputError(
            f"the vectors to search for are an array of {rows.ndim} dimensions, but must be one of "
            "two, a row for each query: X[None, :] for one vector. `query` takes ids."
        )
    return rows


def check_as_many(vectors: Sized, ids: Sized) -> None:
    """Require an id for every vector."""
    if len(vectors) != len(ids):
        raise InputError(f"there are {len(vectors)} vectors and {len(ids)} ids; give as many.")


def as_list(value: Any) -> list[Any]:
    """Return one id or several as a list."""
    if value is None:
        return []
    several = isinstance(value, Iterable) and not isinstance(
        value, str | bytes | bytearray | Mapping
    )
    if isinstance(value, np.ndarray):
        return list(np.atleast_1d(value))
    return list(value) if several else [value]


def check_weights(weights: Any, n_examples: int) -> FloatArray:
    """Require a weight per example, one of them positive, and scale the largest to 1."""
    if weights is None:
        return np.ones(n_examples)
    try:
        array = np.atleast_1d(np.asarray(weights, dtype=np.float64))
    except (TypeError, ValueError):
        raise InputError(f"weights is {weights!r}, but must be a list of numbers.") from None
    if array.shape != (n_examples,):
        raise InputError(
            f"weights has shape {array.shape}, but the query has {n_examples} examples "
            "(points first, then vectors): give one weight for each."
        )
    if not np.isfinite(array).all():
        raise InputError(f"weights is {weights!r}, but every weight must be finite.")
    if not array.max() > 0:
        raise InputError(
            f"weights is {weights!r}, but at least one must be above zero: the others only say "
            "what is not looked for. Give an example of what is."
        )
    with np.errstate(over="ignore"):
        scaled: FloatArray = array / array.max()
    if not np.array_equal(scaled == 0, array == 0) or not np.isfinite(scaled).all():
        raise InputError(f"weights is {weights!r}: the smallest vanishes beside the largest.")
    return scaled


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def check_list(queries: Any) -> Iterable[Any]:
    """Require something that holds queries, not one of them."""
    if isinstance(queries, Query) or not isinstance(queries, Iterable):
        raise InputError(
            f"queries is {queries!r}, but must be a list of row numbers and rankfold.Query; "
            "for a single query use rank."
        )
    return queries


def check_query(
    query: object,
    n_points: int,
    n_features: int,
    alive: BoolArray | None = None,
    partial: bool = False,
) -> Query:
    """Turn whatever was asked into a Query of checked arrays.

    `check_vectors` says what ``partial`` is.
    """
    if isinstance(query, Integral) and not isinstance(query, bool):
        row = int(query)
        if 0 <= row < n_points and (
            alive is None or alive[row]
        ):  # the usual case, and nothing else can be wrong
            return Query(np.array([row], dtype=np.intp), np.empty((0, n_features)), np.array([1.0]))
        query = Query(indices=row)
    if not isinstance(query, Query):
        raise InputError(
            f"a query is {query!r}, but must be a row number or a rankfold.Query; "
            "an unseen vector is Query(vectors=...)."
        )
    indices = check_indices(query.indices, n_points, alive)
    vectors = check_vectors(query.vectors, n_features, partial)
    if not len(indices) + len(vectors):
        raise InputError("the query is empty: give points, vectors, or both.")
    return Query(indices, vectors, check_weights(query.weights, len(indices) + len(vectors)))


def check_top(top: object, n_points: int) -> int:
    """Require a positive length of the answer; None means everything."""
    return n_points if top is None else min(check_count(top, "top"), n_points)
