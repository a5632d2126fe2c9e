"""RAN's graph, for any method."""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from rankfold.graph import adaptive_weights, affinity_matrix, interpolating
from rankfold.neighbors import Engine
from rankfold.rankers.candidates import candidate_lists
from rankfold.rankers.closed_form import ClosedForm
from rankfold.types import FloatArray


class AdaptiveGraph(BaseEstimator):
    """RAN's closed-form graph, ``W = (S + S') / 2``.

    ``s_ij = (d_{i,k+1} - d_ij) / (k d_{i,k+1} - sum_{j<=k} d_ij)`` for the k nearest, Eq. (14)
    with Eq. (18): exactly k neighbours, no bandwidth, the same in every unit of distance.

    Parameters
    ----------
    n_neighbors : int or "auto"
        "auto" chooses 5 on clean manifolds and 20 in diffuse data; ``n_neighbors_`` says which.

    Examples
    --------
    >>> import numpy as np
    >>> from rankfold import ExactEngine
    >>> engine = ExactEngine(np.array([[0.0], [1.0], [2.5], [4.5]]))
    >>> AdaptiveGraph(n_neighbors=1).build(engine).toarray()
    array([[0. , 1. , 0. , 0. ],
           [1. , 0. , 0.5, 0. ],
           [0. , 0.5, 0. , 0.5],
           [0. , 0. , 0.5, 0. ]])
    """

    def __init__(self, n_neighbors: int | Literal["auto"] = "auto") -> None:
        self.n_neighbors = n_neighbors

    def build(self, engine: Engine) -> sparse.csr_array:
        """Return the symmetric weights of the points of the database."""
        lists, self.n_neighbors_ = candidate_lists(engine, self.n_neighbors, 2)
        return ClosedForm.of(lists, self.n_neighbors_).symmetric()

    def attach(self, engine: Engine, vectors: FloatArray) -> sparse.csr_array:
        """Return ``(s_j / 2) d_{k+1} / d_j``: vectors choose neighbours, nobody chooses them."""
        lists = engine.search(vectors, self.n_neighbors_ + 1)
        weights, _, reach = adaptive_weights(lists.sq_distances, self.n_neighbors_)
        nearest = lists.head(self.n_neighbors_)
        relative = nearest.sq_distances / np.where(reach > 0, reach, 1.0)[:, None]
        return affinity_matrix(
            nearest.indices, interpolating(weights, relative) / 2, engine.n_points
        )
