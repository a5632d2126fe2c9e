"""Diffusion on the tensor product of the graph with itself."""

from __future__ import annotations

from rankfold.check import check_count, check_share
from rankfold.rankers.diffusion import Scheme, SchemeRanker
from rankfold.rankers.graphs import GraphRecipe
from rankfold.rankers.transition import random_walk, strongest


class TensorProductDiffusion(SchemeRanker):
    """Tensor-product-graph diffusion (Yang, Prasad and Latecki, PAMI 2013).

    With the walk T on the strongest edges,

        Q_t = alpha T Q_{t-1} T' + I,    Q_0 = I,

    is the sum of the first steps of a walk on pairs of points, ``vec Q = sum_t (T x T)^t vec I``;
    row q of the symmetric ``Q_t`` holds the scores for the query q. Two points are alike when
    walks from both meet. The paper makes the sum converge by rows of T that sum to less than
    one; alpha below 1 does the same here, and alpha = 1 counts every step alike. A walk on the
    nearest neighbours, each point its own first, did best in the comparison of Donoser
    and Bischof (CVPR 2013).

    Parameters
    ----------
    n_steps : int
        Steps of the diffusion.
    laziness : float
        Share of every step that stays, ``T = laziness I + (1 - laziness) D^-1 W``; 0 for a
        graph that has weights on its diagonal.
    alpha : float
        Weight of the graph term, at most 1.
    n_neighbors : int, optional
        Edges of every point that the walk takes, the strongest; those of the graph by default.
    metric : {"euclidean", "cosine", "precomputed", "precomputed_sq"}
        How distances are measured, see `ExactEngine`.
    graph : {"adaptive", "gaussian"} or a graph
        What is diffused on: a name of `GRAPHS`, or a graph with settings of its own.

    Examples
    --------
    >>> from rankfold import TensorProductDiffusion, datasets
    >>> moons = datasets.load("moons")
    >>> ranking = TensorProductDiffusion().fit(moons.X).rank(ids=0, top=50)
    >>> (moons.labels[ranking.ids] == moons.labels[0]).all()
    np.True_
    """

    def __init__(
        self,
        n_steps: int = 100,
        laziness: float = 0.2,
        *,
        alpha: float = 1.0,
        n_neighbors: int | None = None,
        metric: str = "euclidean",
        graph: str | GraphRecipe = "adaptive",
    ) -> None:
        self.n_steps = n_steps
        self.laziness = laziness
        self.alpha = alpha
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.graph = graph

    def _check_parameters(self) -> None:
        check_count(self.n_steps, "n_steps")
        check_share(self.laziness, "laziness", zero=True)
        check_share(self.alpha, "alpha", one=True)
        if self.n_neighbors is not None:
            check_count(self.n_neighbors, "n_neighbors")

    def _prepare(self) -> None:
        self.transition_ = random_walk(strongest(self.weights_, self.n_neighbors), self.laziness)
        self.scheme_ = Scheme("identity", "both", self.n_steps, self.alpha, restart=1.0)
