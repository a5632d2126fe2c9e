"""Neighbours by rank in pipelines of scikit-learn, and graphs of weights as distances."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    clone,
)
from sklearn.utils.validation import check_is_fitted, validate_data

from rankfold.check import check_count
from rankfold.errors import InputError
from rankfold.evaluation import evaluate
from rankfold.neighbors import GIVEN_METRICS
from rankfold.rankers import RAN, Ranker
from rankfold.types import Dataset, Query, Ranking


class RankedNeighborsTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """A sparse graph of the nearest by RAN, in the form of scikit-learn's KNeighborsTransformer.

    The distance of a point is ``1 - score``: 0 for the point that is asked for, 1 for those
    that the graph does not connect to it. Estimators that take ``metric="precomputed"`` or
    ``"precomputed_nearest_neighbors"`` take it from there. Each row has one neighbour more than
    asked for, as they expect, since a fitted point is its own first neighbour. A vector that
    equals a fitted point is that point.

    Parameters
    ----------
    n_neighbors : int
        Neighbours in each row; not those of the graph inside RAN.
    ranker : RAN, optional
        With the metric of the data; ``RAN()`` by default, in whose scores shape and plain
        distance are fused. ``RAN(fusion="none")`` ranks by shape alone.

    Attributes
    ----------
    ranker_ : RAN
        The fitted one.

    Examples
    --------
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> from rankfold import datasets
    >>> moons = datasets.load("moons")
    >>> classifier = KNeighborsClassifier(n_neighbors=3, metric="precomputed")
    >>> pipeline = make_pipeline(RankedNeighborsTransformer(5), classifier)
    >>> pipeline.fit(moons.X[::2], moons.labels[::2]).score(moons.X[1::2], moons.labels[1::2])
    1.0
    """

    def __init__(self, n_neighbors: int = 5, ranker: RAN | None = None) -> None:
        self.n_neighbors = n_neighbors
        self.ranker = ranker

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the ranker.

        Parameters
        ----------
        X : array, shape (n_points, n_features)
            Or what else the ranker takes.
        y : ignored
        """
        check_count(self.n_neighbors, "n_neighbors")
        if self.ranker is not None and not isinstance(self.ranker, RAN):
            raise InputError(
                f"ranker is {self.ranker!r}, but must be a RAN, whose scores fall from 1 to 0.",
                "ranker",
            )
        ranker = RAN() if self.ranker is None else clone(self.ranker)
        self._checked(X, ranker, reset=True)
        self.ranker_ = ranker.fit(X)
        self._n_features_out = self.ranker_.engine_.n_points
        if self.n_neighbors >= self._n_features_out:
            raise InputError(
                f"n_neighbors={self.n_neighbors}, but n_samples={self._n_features_out} and a "
                "point is not its own neighbour; give fewer neighbours or more points.",
                "n_neighbors",
            )
        return self

    def transform(self, X: Any) -> sparse.csr_matrix:
        """Rank the fitted points for each row.

        Parameters
        ----------
        X : array, shape (n_rows, n_features)

        Returns
        -------
        graph : sparse matrix, shape (n_rows, n_points)
            Rows ascend in distance.
        """
        check_is_fitted(self)
        rows = self._checked(X, self.ranker_, reset=False)
        nearest = self.ranker_.engine_.search(rows, 1)
        queries = [
            Query(indices=int(point)) if sq_distance == 0 else Query(vectors=row)
            for row, point, sq_distance in zip(
                rows, nearest.indices[:, 0], nearest.sq_distances[:, 0], strict=True
            )
        ]
        return self._graph(
            self.ranker_.rank_many(queries, top=self.n_neighbors + 1, include_query=True)
        )

    def fit_transform(self, X: Any, y: Any = None, **ignored: Any) -> sparse.csr_matrix:
        """Fit, and rank the points for each of them.

        Parameters
        ----------
        X : array, shape (n_points, n_features)
        y : ignored
        """
        self.fit(X)
        points = range(self._n_features_out)
        return self._graph(
            self.ranker_.rank_many(points, top=self.n_neighbors + 1, include_query=True)
        )

    def _graph(self, rankings: list[Ranking]) -> sparse.csr_matrix:
        width = self.n_neighbors + 1
        columns = np.concatenate([ranking.indices for ranking in rankings])
        distances = 1 - np.concatenate([ranking.scores for ranking in rankings])
        starts = np.arange(0, len(columns) + 1, width)
        shape = (len(rankings), self._n_features_out)
        return sparse.csr_matrix((np.clip(distances, 0.0, 1.0), columns, starts), shape=shape)

    def _checked(self, X: Any, ranker: RAN, reset: bool) -> Any:
        form = "csr" if ranker.metric in GIVEN_METRICS else False
        kinds = [np.float64, np.float32]
        return validate_data(self, X, dtype=kinds, accept_sparse=form, reset=reset)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        given = self.ranker is not None and self.ranker.metric in GIVEN_METRICS
        tags.input_tags.pairwise = tags.input_tags.sparse = given
        tags.transformer_tags.preserves_dtype = []
        return tags


class RankingScorer:
    """Judges a ranker, or a pipeline that ends in one, by how it ranks: for `GridSearchCV`.

    Points of the fold that is judged are ranked for each other; those that share a label are
    relevant. The steps before the ranker are those that were fitted to the other folds. A ranker
    learns nothing from labels, so what is chosen by this are its parameters.

    Parameters
    ----------
    metric : str
        One measure of `rankfold.evaluate`, such as "ndcg@10".

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from rankfold import RAN, datasets
    >>> moons = datasets.load("moons")
    >>> grid = {"n_neighbors": [5, 60]}
    >>> search = GridSearchCV(RAN(), grid, scoring=RankingScorer("r_precision"), cv=2)
    >>> search.fit(moons.X, moons.labels).best_params_
    {'n_neighbors': 5}
    """

    def __init__(self, metric: str = "average_precision") -> None:
        self.metric = metric

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        """Return the mean of the measure over the points of a fold."""
        ranker, points = estimator, X
        if hasattr(estimator, "steps"):
            ranker = estimator[-1]
            points = estimator[:-1].transform(X) if len(estimator) > 1 else X
        if not isinstance(ranker, Ranker) or isinstance(self.metric, (list, tuple)):
            raise InputError(
                f"a ranking is judged of {type(ranker).__name__!r} by {self.metric!r}, but must be "
                "of a ranker, such as RAN, or of a pipeline that ends in one, by one measure."
            )
        data = Dataset("fold", np.asarray(points), np.asarray(y), ranker.metric)
        (row,) = evaluate({"ranker": ranker}, data, self.metric, queries="all").table()
        return float(row.mean)

    def __repr__(self) -> str:
        return f"RankingScorer({self.metric!r})"


def distances_of_weights(weights: Any) -> sparse.csr_array:
    """Turn a graph of weights, such as scanpy's connectivities, into one of distances.

    ``d_ij = sqrt(log(w_max / w_ij))``, so that ``w = w_max exp(-d^2)``: the heaviest edge has
    length zero, and weights that are zero are no edges. The order of neighbours is that of the
    weights. Where there are distances too, as in ``adata.obsp["distances"]``, take those.

    Parameters
    ----------
    weights : sparse array or matrix, shape (n_points, n_points)

    Examples
    --------
    >>> import numpy as np
    >>> weights = sparse.csr_array(np.array([[0.0, 1.0, np.exp(-4.0)], [1.0, 0.0, 0.0], [0, 0, 0]]))
    >>> distances_of_weights(weights).data
    array([0., 2., 0.])
    """
    graph = sparse.csr_array(weights, dtype=np.float64, copy=True)
    graph.sum_duplicates()
    graph.setdiag(0.0)
    graph.eliminate_zeros()
    if not (np.isfinite(graph.data).all() and (graph.data > 0).all()):
        raise InputError(
            "weights holds values that are negative, NaN or infinite, but must hold weights above "
            "zero, and nothing where there is no edge; distances are fitted as they are.",
            "weights",
        )
    if graph.nnz:
        graph.data = np.sqrt(np.log(graph.data.max()) - np.log(graph.data))
    return graph
