"""Vectors in single precision: half the memory, and distances that stay what they were."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankfold.check import check_directions, check_matrix, check_single_precision
from rankfold.types import FloatArray

BLOCK_ROWS = 2**14
ORIGIN_SAMPLE = 1000
SMALLEST = 1e-15
"""Squared distances of data that is smaller throughout would vanish in float32."""


@dataclass(frozen=True, eq=False)
class SinglePrecision:
    """How vectors become float32: moved to an origin, or scaled to length one.

    Parameters
    ----------
    unit : bool
        Whether vectors are scaled to length one.
    origin : array, shape (n_features,), optional
        Where float64 data is moved from, since what is far from zero loses digits in
        float32. It is a point of the data, so that whole numbers stay whole numbers.
    """

    unit: bool
    origin: FloatArray | None

    @classmethod
    def of(cls, X: FloatArray, metric: str) -> tuple[SinglePrecision, FloatArray]:
        """Choose the form for a database, and return the database in it."""
        X = check_matrix(X, "X")
        if metric == "euclidean":
            check_single_precision(X, "X", SMALLEST)
        form = cls(metric == "cosine", _amid(X) if metric == "euclidean" else None)
        return form, form._convert(X, "X")

    def apply(self, vectors: FloatArray, name: str, n_features: int) -> FloatArray:
        """Check vectors and bring them into the form of the database."""
        return self._convert(check_matrix(vectors, name, n_features), name)

    def _convert(self, vectors: FloatArray, name: str) -> FloatArray:
        if not self.unit:
            check_single_precision(vectors, name)
        if self.origin is None and not self.unit:
            return np.ascontiguousarray(vectors, dtype=np.float32)
        converted = np.empty(vectors.shape, dtype=np.float32)
        for start in range(0, len(vectors), BLOCK_ROWS):
            rows = slice(start, start + BLOCK_ROWS)
            if self.origin is not None:
                converted[rows] = vectors[rows] - self.origin
            else:
                wide = check_directions(vectors[rows], name, start)
                converted[rows] = wide / np.sqrt(np.einsum("ij,ij->i", wide, wide))[:, None]
        return converted


def _amid(X: FloatArray) -> FloatArray | None:
    """Return a point in the middle of a sample of the data; None for data in float32 already."""
    if X.dtype == np.float32 or not len(X):
        return None
    sample = X[:: -(-len(X) // ORIGIN_SAMPLE)]
    to_mean = np.abs(sample - sample.mean(axis=0)).sum(axis=1)
    middle: FloatArray = sample[np.argmin(to_mean)].copy()
    return middle
