"""Locally constrained diffusion: two points are alike when their neighbours are."""

from __future__ import annotations

from rankfold.check import check_count, check_share
from rankfold.rankers.diffusion import Scheme, SchemeRanker
from rankfold.rankers.graphs import GraphRecipe
from rankfold.rankers.transition import random_walk, strongest


class LocallyConstrainedDiffusion(SchemeRanker):
    """Locally constrained diffusion process, LCDP (Yang, Koknar-Tezel and Latecki, CVPR 2009).

    With the walk T on the strongest edges,

        A_t = T A_{t-1} T',    A_0 = T,

    and row q of ``A_t`` holds the scores for the query q: two points are alike when walks of t
    steps from both end in neighbouring places. In the paper a point is among its own nearest
    neighbours, so that a step may stay where it is; here its share is given apart from
    the graph: ``T = laziness I + (1 - laziness) D^-1 W``. Unlike in all other methods a point need
    not be the one most like itself.

    Parameters
    ----------
    n_steps : int
        Steps of the diffusion.
    laziness : float
        Share of every step that stays; 0 for a graph that has weights on its diagonal.
    n_neighbors : int, optional
        Edges of every point that the walk takes, the strongest; those of the graph by default.
    metric : {"euclidean", "cosine", "precomputed", "precomputed_sq"}
        How distances are measured, see `ExactEngine`.
    graph : {"adaptive", "gaussian"} or a graph
        What is diffused on: a name of `GRAPHS`, or a graph with settings of its own.

    Examples
    --------
    >>> from rankfold import LocallyConstrainedDiffusion, datasets
    >>> moons = datasets.load("moons")
    >>> ranking = LocallyConstrainedDiffusion().fit(moons.X).rank(ids=0, top=50)
    >>> (moons.labels[ranking.ids] == moons.labels[0]).all()
    np.True_
    """

    def __init__(
        self,
        n_steps: int = 16,
        laziness: float = 0.3,
        *,
        n_neighbors: int | None = None,
        metric: str = "euclidean",
        graph: str | GraphRecipe = "adaptive",
    ) -> None:
        self.n_steps = n_steps
        self.laziness = laziness
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.graph = graph

    def _check_parameters(self) -> None:
        check_count(self.n_steps, "n_steps")
        check_share(self.laziness, "laziness", zero=True)
        if self.n_neighbors is not None:
            check_count(self.n_neighbors, "n_neighbors")

    def _prepare(self) -> None:
        self.transition_ = random_walk(strongest(self.weights_, self.n_neighbors), self.laziness)
        self.scheme_ = Scheme("transition", "both", self.n_steps)
