"""The values that flow through rankfold: neighbours, queries, solutions, rankings, data sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.floating[Any]]
IntArray = NDArray[np.signedinteger[Any]]
BoolArray = NDArray[np.bool_]
Weights: TypeAlias = Any
"""A sparse array, or a dense one where every pair of points has a weight."""

SolverName = Literal["direct", "cg", "region", "steps", "distance"]
Stopped = Literal["exact", "proven", "tolerance", "budget", "max_iter"]
Ended = Literal["converged", "max_iter", "collapse"]
FusionKind = Literal["none", "blend", "reciprocal_rank"]

NEGATIVE_WEIGHT = 0.0
"""What a wrong example weighs beside right ones of weight 1: the best for RAN, by measuring.

For methods that do not pin scores, to which zero says nothing, -0.5 was the best that was tried.
"""

NOBODY = -1
"""The index that fills a neighbour list which is shorter than the others."""

DEFAULT_RECALL = 0.95
"""Share of true neighbours that lists of many points have by default: with more of them, rankings
are no better (docs/measured/list_recall.md)."""


@dataclass(frozen=True, eq=False)
class Neighbors:
    """Nearest neighbours: one sorted list of neighbours per row.

    A point is never its own neighbour. Rows ascend in distance, ties go to the
    smaller index, and rows that are too short end in index -1 at distance inf.

    Parameters
    ----------
    indices : array of int, shape (n_rows, width)
        Row numbers in the database.
    sq_distances : array of float, shape (n_rows, width)
        Squared distances, as every equation of the paper uses them.
    """

    indices: IntArray
    sq_distances: FloatArray

    @property
    def width(self) -> int:
        """Length of the lists."""
        return int(self.indices.shape[1])

    def head(self, width: int) -> Neighbors:
        """Return the nearest ``width`` of every list."""
        return Neighbors(self.indices[:, :width], self.sq_distances[:, :width])

    def take(self, rows: IntArray) -> Neighbors:
        """Return the lists of these rows only."""
        return Neighbors(self.indices[rows], self.sq_distances[rows])


@dataclass(frozen=True, eq=False)
class Query:
    """What is asked for: points of the database, unseen vectors, or both, with weights.

    Parameters
    ----------
    indices : int or sequence of int, optional
        Row numbers of points of the database.
    vectors : array, shape (n_features,) or (n_vectors, n_features), optional
        Examples that are not in the database. With a precomputed metric, their
        distances to every point of the database.
    weights : sequence of float, optional
        How much each example counts, points first, then vectors. The largest is the score 1, so
        only their ratios matter. All alike by default. An example of weight zero or less
        is a negative one: zero keeps score from flowing through it where a method pins scores
        (RAN, graph transduction), less than zero pulls what is around it down. At least one
        weight must be positive.
    """

    indices: Any = None
    vectors: Any = None
    weights: Any = None

    @classmethod
    def from_feedback(
        cls, right: Sequence[int], wrong: Sequence[int], wrong_weight: float = NEGATIVE_WEIGHT
    ) -> Query:
        """Ask again after some results were marked.

        Parameters
        ----------
        right : sequence of int
            Row numbers of the first query and of results that are what was looked for.
        wrong : sequence of int
            Row numbers of results that are not.
        wrong_weight : float
            Weight of each of those; the others weigh 1. Zero, which was best for RAN, only leaves
            them out in methods that do not pin scores; give those -0.5.

        Examples
        --------
        >>> Query.from_feedback([3, 8], wrong=[5], wrong_weight=-0.5)
        Query(indices=[3, 8, 5], vectors=None, weights=[1.0, 1.0, -0.5])
        """
        weights = [1.0] * len(right) + [wrong_weight] * len(wrong)
        return cls([*right, *wrong], None, weights)


class Fused(NamedTuple):
    """How shape and distance were combined in the scores of one answer.

    Parameters
    ----------
    kind : {"blend", "reciprocal_rank"}
    weight : float
        What distance can cost: a blended score is the shape score times
        ``exp(-weight min(u, horizon))``, where u is the distance in the query's own unit. For a
        single example, the shape score of a neighbour counts as that of the nearest at most.
    horizon : float
        The distance beyond which only shape counts, in that unit.
    hubness : float
        Why the horizon is there: the mean degree of the query's nearest neighbours, beside that of
        all points. The horizon grows from 1 to 2 as they become hubs.
    """

    kind: FusionKind
    weight: float
    horizon: float
    hubness: float


Value = TypeVar("Value")


def changed(value: Value, **changes: Any) -> Value:
    """Return a solution or ranking with other attributes, which are not checked.

    `dataclasses.replace` goes through all fields, several times with every query, and takes ten
    times as long.
    """
    fresh = object.__new__(type(value))
    fresh.__dict__.update(value.__dict__, **changes)
    return fresh


@dataclass(frozen=True, eq=False)
class Solution:
    """Scores, how far they can be trusted, and why the solver stopped.

    Parameters
    ----------
    points : array of int
        The points that have a score; all others have zero, unless only the best are here.
    scores : array of float
        Theirs.
    bound : float
        No score, also of a point that is not here, is further than this from what the method
        defines: the exact solution of its linear system, or its steps without rounding. Where
        ranks were fused, this is said of the shape scores.
    n_iter : int
        Steps of the solver, or of a method that is defined by its steps; 0 for a direct one.
    converged : bool
        Whether the solver got as far as it was asked to: to its tolerance, to a proof of the best
        points, or to the end of its budget. A method defined by its steps always does.
    certified : bool
        Whether it is proven that no point outside the answer scores higher than one in it. What
        is proven are shape scores; distances are taken as they are.
    solver : {"direct", "cg", "region", "steps", "distance"}
        What found the scores; "steps" and "distance" are methods that solve no system.
    stopped : {"exact", "proven", "tolerance", "budget", "max_iter"}
        Why it ended: nothing was left to do but rounding; the best points were proven; no score
        could be off by more than the tolerance; as many points as the budget allows were given
        a score; or it gave up.
    n_touched : int
        Points that were looked at.
    complete : bool
        Whether all points whose score is not zero are here, and not only the best.
    round_trips : int
        How often a database was asked and answered on the way; 0 where all is in memory.
    n_gone : int
        Results that were left out because they are no longer in the collection.
    shape : array of float, optional
        The scores by shape alone, where distance was fused with them.
    distances : array of float, optional
        The plain distances to the query, in that case.
    fused : Fused, optional
        How they were fused.
    """

    points: IntArray
    scores: FloatArray
    bound: float
    n_iter: int = 0
    converged: bool = True
    certified: bool = False
    solver: SolverName = "steps"
    stopped: Stopped = "exact"
    n_touched: int = 0
    complete: bool = True
    round_trips: int = 0
    n_gone: int = 0
    shape: FloatArray | None = None
    distances: FloatArray | None = None
    fused: Fused | None = None

    def take(self, places: Any, **changes: Any) -> Solution:
        """Return some of the points, by their places, with other changes."""
        arrays = {name: getattr(self, name) for name in ("points", "scores", "shape", "distances")}
        taken = {name: array[places] for name, array in arrays.items() if array is not None}
        return changed(self, **(taken | changes))

    def joined(self, other: Solution) -> Solution:
        """Return these points, and after them those of another part of the same answer."""
        names = ("points", "scores", *(("shape", "distances") if self.fused else ()))
        both: dict[str, Any] = {
            name: np.concatenate([getattr(self, name), getattr(other, name)]) for name in names
        }
        return changed(self, **both)


@dataclass(frozen=True, eq=False)
class Trace:
    """The course of an alternation between graph and scores.

    Parameters
    ----------
    objective : tuple of float
        Eq. (5) with the mean gamma, Eq. (19), after every half-step: graph, scores, graph,
        scores, ... With ``gamma="own"`` the graph is not chosen to lower it.
    reach : tuple of float
        Effective number of points that share the score, ``sum(f)^2 / sum(f^2)``, after
        every alternation; of points with a positive score, where there are negative examples.
    query_degree : tuple of float
        Smallest degree of a point of the query, after every alternation.
    n_alternations : int
        The alternation whose scores were returned.
    stopped : {"converged", "max_iter", "collapse"}
        Why it ended there. "collapse" means that the query was cutting itself off
        from its neighbours, and the last healthy alternation was returned.
    """

    objective: tuple[float, ...]
    reach: tuple[float, ...]
    query_degree: tuple[float, ...]
    n_alternations: int
    stopped: Ended


@dataclass(frozen=True, eq=False)
class Ranking:
    """The answer to one query, best first.

    Parameters
    ----------
    solution : Solution
        The points of the answer in their order, their scores, and how far these can be trusted.
    trace : Trace, optional
        How graph and scores were learned, where they were learned more than once.
    """

    solution: Solution
    trace: Trace | None = None

    @property
    def indices(self) -> IntArray:
        """Row numbers of the database."""
        return self.solution.points

    @property
    def scores(self) -> FloatArray:
        """Scores of ``indices``; 0 for points that the graph does not connect to the query.

        Below 0 for points that negative examples pull down further than others pull up.
        """
        return self.solution.scores

    @property
    def shape(self) -> FloatArray:
        """Scores by shape alone; the same as ``scores`` where distance was not fused with them."""
        solution = self.solution
        return solution.scores if solution.shape is None else solution.shape

    @property
    def distances(self) -> FloatArray | None:
        """Plain distances of ``indices``, where they were fused with scores by shape."""
        return self.solution.distances

    def __len__(self) -> int:
        return len(self.indices)

    def __repr__(self) -> str:
        best = ", ".join(
            f"{point}: {score:.3g}"
            for point, score in zip(self.indices[:5], self.scores[:5], strict=True)
        )
        more = ", ..." if len(self) > 5 else ""
        return f"Ranking({len(self)} points, {{{best}{more}}}, bound={self.solution.bound:.1e})"

    @property
    def collapsed(self) -> bool:
        """Whether the alternation was stopped because the query cut itself off."""
        return self.trace is not None and self.trace.stopped == "collapse"


@dataclass(frozen=True, eq=False)
class Dataset:
    """Points with labels, as the evaluation needs them.

    Parameters
    ----------
    name : str
    X : array, shape (n_points, n_features) or (n_points, n_points)
        Vectors, or distances where ``metric`` is precomputed.
    labels : array, shape (n_points,)
        The class of each point, numbers or texts; those of the query's class are relevant. Points
        with None or NaN have no label: they are neither queries nor relevant.
    metric : str
        The metric that ``X`` is meant for.
    """

    name: str
    X: FloatArray
    labels: IntArray
    metric: str = "euclidean"

    def __repr__(self) -> str:
        shape = " x ".join(map(str, np.shape(self.X)))
        return f"Dataset({self.name!r}, {shape}, {self.metric})"


@dataclass(frozen=True, eq=False)
class SearchCollection:
    """Documents, questions that are not among them, and judgements of what answers which.

    Parameters
    ----------
    name : str
    X : array, shape (n_documents, n_features)
        Vectors of the documents.
    queries : array, shape (n_queries, n_features)
        Vectors of the questions.
    qrels : dict of dict
        ``qrels[query][document]`` is a grade, as `read_qrels` gives it; above zero is relevant.
    metric : str
        The metric that the vectors are meant for. By cosine, documents whose vectors are all zeros
        cannot be found; they are left out, and the outcome says so.
    ids, query_ids : sequence, optional
        What ``qrels`` calls the documents and the questions, compared as text; their row numbers
        by default.

    Examples
    --------
    >>> import numpy as np
    >>> from rankfold.evaluation import SearchCollection
    >>> SearchCollection("pets", np.eye(3), np.ones((1, 3)), {"0": {"2": 1}})
    SearchCollection('pets', 3 x 3, 1 queries, euclidean)
    """

    name: str
    X: FloatArray
    queries: FloatArray
    qrels: Mapping[Any, Mapping[Any, int]]
    metric: str = "euclidean"
    ids: Sequence[Any] | None = None
    query_ids: Sequence[Any] | None = None

    def __repr__(self) -> str:
        shape = " x ".join(map(str, np.shape(self.X)))
        asked = f"{len(self.queries):,} queries"
        return f"SearchCollection({self.name!r}, {shape}, {asked}, {self.metric})"
