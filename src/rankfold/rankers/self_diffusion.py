"""Self-diffusion: affinities smoothed by the walk on themselves."""

from __future__ import annotations

from dataclasses import replace

from rankfold.check import check_count
from rankfold.rankers.diffusion import Scheme, SchemeRanker
from rankfold.rankers.flow import Flow, degree_or_one
from rankfold.rankers.graphs import GraphRecipe
from rankfold.rankers.transition import degrees, inverse, random_walk
from rankfold.types import FloatArray, Query


class SelfDiffusion(SchemeRanker):
    """Self-diffusion (Wang and Tu, CVPR 2012).

    With ``P = D^-1 W``,

        W_t = W_{t-1} P + I,    W_0 = I,    W* = W_t D^-1,

    and row q of the symmetric ``W*`` holds the scores for the query q: how often a walk of t
    steps from q comes by, in proportion to the degree. It grows without end, so the
    number of steps is a parameter of the method.

    Parameters
    ----------
    n_steps : int
        Steps of the diffusion.
    metric : {"euclidean", "cosine", "precomputed", "precomputed_sq"}
        How distances are measured, see `ExactEngine`.
    graph : {"adaptive", "gaussian"} or a graph
        What is diffused on: a name of `GRAPHS`, or a graph with settings of its own.

    Examples
    --------
    >>> from rankfold import SelfDiffusion, datasets
    >>> moons = datasets.load("moons")
    >>> ranking = SelfDiffusion().fit(moons.X).rank(ids=0, top=50)
    >>> (moons.labels[ranking.ids] == moons.labels[0]).all()
    np.True_
    """

    def __init__(
        self,
        n_steps: int = 200,
        *,
        metric: str = "euclidean",
        graph: str | GraphRecipe = "adaptive",
    ) -> None:
        self.n_steps = n_steps
        self.metric = metric
        self.graph = graph

    def _check_parameters(self) -> None:
        check_count(self.n_steps, "n_steps")

    def _prepare(self) -> None:
        self.transition_ = random_walk(self.weights_)
        self.scheme_ = Scheme("identity", "right", self.n_steps, restart=1.0)

    def flow(self, query: Query) -> Flow:
        """Return the walks whose sum the scores are: walks to a point, divided by its degree.

        ``prod w_ab / d_a`` from q to i, divided by ``d_i``, is ``prod w_ab / d_b`` divided by
        ``d_q``.
        """
        walks = Flow(self.edges, degree_or_one, (), most_steps=self.n_steps)
        entries = [
            entry._replace(amount=entry.amount / walks.at(entry.point))
            for entry in self._entries(query)
            if len(self.edges(entry.point).points)
        ]
        return replace(walks, entries=tuple(entries))

    def _read(self, scores: FloatArray) -> FloatArray:
        return scores * inverse(degrees(self.weights_))[:, None]
