"""Why a point has its place, as plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from rankfold.types import Fused

PathState = Literal["found", "illustration", "no graph", "unreached", "apart", "gave up"]

Names = Mapping[int, str] | Sequence[str]
"""What points are called, by row number."""


@dataclass(frozen=True)
class Step:
    """One edge of a path, away from the query.

    Parameters
    ----------
    start : int or None
        Row number; None for an unseen vector of the query.
    end : int
        Row number of the point that it leads to.
    weight : float
        Weight of the edge in the graph.
    factor : float
        What the edge multiplies the flow by, see `rankfold.rankers.flow.Flow`.
    score : float
        Score of ``end``.
    """

    start: int | None
    end: int
    weight: float
    factor: float
    score: float


@dataclass(frozen=True)
class Path:
    """The strongest path from the query to the point.

    Parameters
    ----------
    example : int
        The example of the query at which it begins.
    start_score : float or None
        Score of that example; None for an unseen vector that has none.
    steps : tuple of Step
        From the query to the point.
    carried : float
        What this one path adds to the score: what flows out of the example, times all factors.
    share : float or None
        ``carried`` as a share of the score; None where the path only illustrates it.
    """

    example: int
    start_score: float | None
    steps: tuple[Step, ...]
    carried: float
    share: float | None


@dataclass(frozen=True)
class Example:
    """One example of the query, and its part in the score.

    Parameters
    ----------
    point : int or None
        Row number; None for an unseen vector.
    weight : float
        Its weight beside the largest, which is 1.
    amount : float
        What it adds to the score; for plain distance, to minus the squared distance.
    share : float or None
        The same as a share of the whole; may be negative. None where there is nothing to share.
    """

    point: int | None
    weight: float
    amount: float
    share: float | None


@dataclass(frozen=True)
class Explanation:
    """Why a point has its place in the answer to a query.

    Parameters
    ----------
    method : str
        Name of the class of the ranker.
    point : int
        Row number of the point.
    n_ranked : int
        Points that were ranked: all but those of the query.
    distance : float
        Plain distance to the query: the root of the mean squared distance to its positive examples.
    distance_rank, score_rank : int
        Its place by plain distance, and by the method; 1 is the best. Negative examples push
        away in both, as in `Euclidean`.
    score : float
        Score of the point.
    shape : float
        Its score by shape alone: path and examples add up to this.
    fused : Fused or None
        How ``shape`` became ``score``, where distance was fused with it.
    examples : tuple of Example
        What each example of the query adds, in their order.
    path : Path or None
        The strongest one; None where ``path_state`` says why.
    path_state : str
        "found"; "illustration", where the score is not a sum over paths; and without a
        path: "no graph"; "unreached", where the score is zero; "apart", where the graph has no
        path; "gave up", after looking at ``n_visited`` points.
    n_visited : int
        Points that the search for the path looked at.
    first_graph : bool
        True where the score comes from a graph that was learned further, for this query, and
        path, amounts and shares are those of the first graph.
    """

    method: str
    point: int
    n_ranked: int
    distance: float
    distance_rank: int
    score: float
    score_rank: int
    shape: float
    fused: Fused | None
    examples: tuple[Example, ...]
    path: Path | None
    path_state: PathState
    n_visited: int = 0
    first_graph: bool = False

    @property
    def shift(self) -> int:
        """Places by which the method moved the point up from its place by plain distance."""
        return self.distance_rank - self.score_rank

    def to_dict(self) -> dict[str, Any]:
        """Return everything as dicts, lists, numbers and strings, ready for JSON."""
        content = {**asdict(self), "shift": self.shift}
        content["fused"] = None if self.fused is None else self.fused._asdict()
        content["examples"] = list(content["examples"])
        if content["path"] is not None:
            content["path"]["steps"] = list(content["path"]["steps"])
        return content

    def to_text(self, names: Names | None = None, width: int = 78) -> str:
        """Return a few lines of plain text.

        Parameters
        ----------
        names : mapping or sequence of str, optional
            What points are called; those without a name by their row number.
        width : int
            Longest line, 60 at least; longer names are cut.
        """
        from rankfold.explaining.text import write_text

        return write_text(self, names, width)
