"""Methods that are a number of diffusion steps: Donoser and Bischof's family and its members."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from rankfold.check import check_choice, check_count, check_share
from rankfold.graph import GraphRecipe
from rankfold.graph.symmetric import degrees, inverse, random_walk, strongest, symmetric_walk
from rankfold.parallel import check_stopped
from rankfold.rankers.base import Unseen
from rankfold.rankers.flow import Flow, degree_or_one
from rankfold.rankers.ordering import FusionLike, joined, one_sided
from rankfold.rankers.walks import SeededRanker
from rankfold.solvers.system import EPS, Wanted, longest_row
from rankfold.types import FloatArray, Query, Solution, Trace, Weights

BLOCK_BYTES = 2**28
"""Size of the walks that are held at once while a block of queries is spread."""

STARTS = ("identity", "weights", "walk", "transition")
UPDATES = ("left", "right", "both")

Start = Literal["identity", "weights", "walk", "transition"]
Update = Literal["left", "right", "both"]


@dataclass(frozen=True)
class Scheme:
    """How an N x N matrix of affinities A is diffused, and read.

    With the transition T, one step is

        A <- alpha T A + restart I       update = "left"
        A <- alpha A T + restart I       update = "right"
        A <- alpha T A T' + restart I    update = "both"

    (Donoser and Bischof, "Diffusion Processes for Retrieval Revisited", CVPR 2013). The scores
    of a query are a row of A, or a column, so A itself is never needed. With
    ``A <- alpha L A R + c I``, the column ``A_t y`` is ``g_t`` of

        v_i = R^i y,    g_0 = A_0 v_t,    g_{s+1} = alpha L g_s + c v_{t-1-s}.

    A row is the same with ``L'`` and ``R'`` changing places. Time and memory per query are those
    of 2t products with T.

    Parameters
    ----------
    start : A_0
        "identity"; "weights", W; "walk", D^-1 W; "transition", T.
    update : {"left", "right", "both"}
    n_steps : int
    alpha, restart : float
    read : {"row", "column"}

    Examples
    --------
    >>> import numpy as np
    >>> T = np.array([[0.0, 1.0], [0.5, 0.0]])
    >>> Scheme("identity", "both", n_steps=1, restart=1.0)(T, T, np.eye(2))
    array([[2.  , 0.  ],
           [0.  , 1.25]])
    """

    start: Start
    update: Update
    n_steps: int
    alpha: float = 1.0
    restart: float = 0.0
    read: Literal["row", "column"] = "row"

    def __call__(self, weights: Weights, transition: Weights, seeds: FloatArray) -> FloatArray:
        """Return the scores for every column of seeds."""
        scores = np.empty_like(seeds)
        step = max(1, BLOCK_BYTES // (8 * len(seeds) * (self.n_steps + 2)))
        for begin in range(0, seeds.shape[1], step):
            columns = slice(begin, begin + step)
            scores[:, columns] = self._spread(weights, transition, seeds[:, columns])
        return scores

    def _spread(self, weights: Weights, transition: Weights, seeds: FloatArray) -> FloatArray:
        left = transition if self.update in ("left", "both") else None
        right = {"left": None, "right": transition, "both": transition.T}[self.update]
        start = self._start(weights, transition)
        if self.read == "row":
            left, right = (None if step is None else step.T for step in (right, left))
            start = None if start is None else start.T
        walks = [seeds]
        for _ in range(self.n_steps):
            check_stopped()
            walks.append(walks[-1] if right is None else right @ walks[-1])
        scores = walks.pop() if start is None else start @ walks.pop()
        while walks:
            check_stopped()
            spread = scores if left is None else left @ scores
            scores = self.alpha * spread + self.restart * walks.pop()
        return scores

    def _start(self, weights: Weights, transition: Weights) -> Weights | None:
        if self.start == "walk":
            return random_walk(weights)
        return {"identity": None, "weights": weights, "transition": transition}[self.start]


class SchemeRanker(SeededRanker):
    """Base of the methods that are a number of steps of a scheme.

    There is no system to solve: the steps are the method. All terms are positive, so rounding
    changes each score by at most a few units in its last place per step and neighbour, which
    is the bound. Negative examples are spread apart, and subtracted.
    """

    scheme_: Scheme
    transition_: Weights

    def _solve(
        self,
        queries: Sequence[Query],
        wanted: Sequence[Wanted],
        unseen: Unseen,
    ) -> Iterator[tuple[Solution, Trace | None]]:
        parts = one_sided(queries)
        seeds = np.zeros((self.engine_.n_points, len(parts)))
        for column, (points, values) in enumerate(self._seeds(parts)):
            seeds[points, column] = values
        for solution in joined(queries, self._spread(seeds)):
            yield solution, None

    def _spread(self, seeds: FloatArray) -> Iterator[Solution]:
        scores = self._read(self.scheme_(self.weights_, self.transition_, seeds))
        steps = 2 * self.scheme_.n_steps + 2
        terms = longest_row(self.weights_) + longest_row(self.transition_) + 8
        largest = np.abs(scores).max(axis=0, initial=0.0)
        bounds, points = steps * terms * EPS * largest, np.arange(len(scores))
        for column, bound in enumerate(bounds):
            found, n_steps = scores[:, column], self.scheme_.n_steps
            yield Solution(points, found, float(bound), n_steps, n_touched=len(points))

    def _read(self, scores: FloatArray) -> FloatArray:
        return scores


class Diffusion(SchemeRanker):
    """Any start, transition and update of Donoser and Bischof's family.

    The named methods are settings of it with their own words; this one is for the rest.

    Parameters
    ----------
    metric : {"euclidean", "cosine", "precomputed", "precomputed_sq"}
        How distances are measured, see `ExactEngine`.
    graph : {"adaptive", "gaussian"} or a graph
        What is diffused on: a name of `GRAPHS`, or a graph with settings of its own.
    start : {"identity", "weights", "walk", "transition"}
        What the steps begin with: I, W, ``D^-1 W``, or the transition T.
    transition : {"walk", "symmetric"}
        ``D^-1 W`` or ``D^-1/2 W D^-1/2``.
    update : {"left", "right", "both"}
        ``T A``, ``A T`` or ``T A T'``.
    n_steps : int
        Steps of the diffusion.
    alpha : float
        Weight of the graph term.
    restart : float
        Multiple of the identity that every step adds.
    read : {"row", "column"}
        Which of them holds the scores of a query.
    n_neighbors : int, optional
        A walk takes only so many edges of every point, the strongest.
    laziness : float
        Share of every step of a walk that stays where it is.
    fusion : float, "auto", "reciprocal_rank" or "none"
        How plain distance shares in the order; not at all by default, see `RAN`.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0], [9.0], [10.0]])
    >>> walk = Diffusion(start="identity", update="left", n_steps=3, read="column")
    >>> walk.fit(X).rank(0).scores.round(3)
    array([0.179, 0.172, 0.167, 0.135, 0.126])
    """

    def __init__(
        self,
        *,
        metric: str = "euclidean",
        graph: str | GraphRecipe = "adaptive",
        start: Start = "weights",
        transition: Literal["walk", "symmetric"] = "walk",
        update: Update = "both",
        n_steps: int = 5,
        alpha: float = 1.0,
        restart: float = 0.0,
        read: Literal["row", "column"] = "row",
        n_neighbors: int | None = None,
        laziness: float = 0.0,
        fusion: FusionLike = "none",
    ) -> None:
        self.metric = metric
        self.graph = graph
        self.start = start
        self.transition = transition
        self.update = update
        self.n_steps = n_steps
        self.alpha = alpha
        self.restart = restart
        self.read = read
        self.n_neighbors = n_neighbors
        self.laziness = laziness
        self.fusion = fusion

    def _check_parameters(self) -> None:
        check_choice(self.start, "start", STARTS)
        check_choice(self.transition, "transition", ("walk", "symmetric"))
        check_choice(self.update, "update", UPDATES)
        check_count(self.n_steps, "n_steps")
        check_share(self.alpha, "alpha", one=True)
        check_share(self.restart, "restart", zero=True, one=True)
        check_choice(self.read, "read", ("row", "column"))
        if self.n_neighbors is not None:
            check_count(self.n_neighbors, "n_neighbors")
        check_share(self.laziness, "laziness", zero=True)

    def _prepare(self) -> None:
        self.scheme_ = Scheme(
            self.start, self.update, self.n_steps, self.alpha, self.restart, self.read
        )
        if self.transition == "symmetric":
            self.transition_ = symmetric_walk(self.weights_)
        else:
            kept = strongest(self.weights_, self.n_neighbors)
            self.transition_ = random_walk(kept, self.laziness)


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
    fusion : float, "auto", "reciprocal_rank" or "none"
        How plain distance shares in the order; not at all by default, see `RAN`.

    Examples
    --------
    >>> from rankfold import SelfDiffusion, datasets
    >>> moons = datasets.load("moons")
    >>> ranking = SelfDiffusion().fit(moons.X).rank(0, top=50)
    >>> (moons.labels[ranking.indices] == moons.labels[0]).all()
    np.True_
    """

    def __init__(
        self,
        n_steps: int = 200,
        *,
        metric: str = "euclidean",
        graph: str | GraphRecipe = "adaptive",
        fusion: FusionLike = "none",
    ) -> None:
        self.n_steps = n_steps
        self.metric = metric
        self.graph = graph
        self.fusion = fusion

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
    fusion : float, "auto", "reciprocal_rank" or "none"
        How plain distance shares in the order; not at all by default, see `RAN`.

    Examples
    --------
    >>> from rankfold import LocallyConstrainedDiffusion, datasets
    >>> moons = datasets.load("moons")
    >>> ranking = LocallyConstrainedDiffusion().fit(moons.X).rank(0, top=50)
    >>> (moons.labels[ranking.indices] == moons.labels[0]).all()
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
        fusion: FusionLike = "none",
    ) -> None:
        self.n_steps = n_steps
        self.laziness = laziness
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.graph = graph
        self.fusion = fusion

    def _check_parameters(self) -> None:
        check_count(self.n_steps, "n_steps")
        check_share(self.laziness, "laziness", zero=True)
        if self.n_neighbors is not None:
            check_count(self.n_neighbors, "n_neighbors")

    def _prepare(self) -> None:
        self.transition_ = random_walk(strongest(self.weights_, self.n_neighbors), self.laziness)
        self.scheme_ = Scheme("transition", "both", self.n_steps)


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
    fusion : float, "auto", "reciprocal_rank" or "none"
        How plain distance shares in the order; not at all by default, see `RAN`.

    Examples
    --------
    >>> from rankfold import TensorProductDiffusion, datasets
    >>> moons = datasets.load("moons")
    >>> ranking = TensorProductDiffusion().fit(moons.X).rank(0, top=50)
    >>> (moons.labels[ranking.indices] == moons.labels[0]).all()
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
        fusion: FusionLike = "none",
    ) -> None:
        self.n_steps = n_steps
        self.laziness = laziness
        self.alpha = alpha
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.graph = graph
        self.fusion = fusion

    def _check_parameters(self) -> None:
        check_count(self.n_steps, "n_steps")
        check_share(self.laziness, "laziness", zero=True)
        check_share(self.alpha, "alpha", one=True)
        if self.n_neighbors is not None:
            check_count(self.n_neighbors, "n_neighbors")

    def _prepare(self) -> None:
        self.transition_ = random_walk(strongest(self.weights_, self.n_neighbors), self.laziness)
        self.scheme_ = Scheme("identity", "both", self.n_steps, self.alpha, restart=1.0)
