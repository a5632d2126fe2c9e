"""Why a point has its place: plain values, and a few lines of text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from textwrap import wrap
from typing import Any, Literal

from rankfold.check import check_count
from rankfold.types import Fused

LONGEST_PATH = 12
"""Steps of a path that are written out; of longer ones the middle is left out."""

MOST_EXAMPLES = 8
"""Examples that are written out, those with the largest shares."""

BAR, ROOM = 20, 44
"""Characters of the longest bar, and of all that stands beside a name."""

WITHOUT_PATH = {
    "no graph": "There is no graph: the place is by the distance to the query.",
    "unreached": "The query does not reach it along the graph: the place is by plain distance.",
    "apart": "The first graph has no path to it; a later one does.",
}

PathState = Literal["found", "illustration", "no graph", "unreached", "apart", "gave up"]

Names = Mapping[int, str] | Sequence[str]
"""What points are called, by row number."""


def name_of(names: Names | None, point: int | None, longest: int) -> str:
    """Return what a point is called, in so many characters at most."""
    if point is None:
        return "the query's vector"[:longest]
    name = f"point {point}"
    if names is not None:
        with suppress(LookupError):
            name = str(names[point])
    if len(name) <= longest:
        return name
    end = (longest - 1) // 2  # names often differ at their end
    return f"{name[: longest - 1 - end]}…{name[len(name) - end :]}"


def share_text(share: float | None) -> str:
    """Return a share in per cent, with as many digits as it takes to be read."""
    if share is None:
        return "-"
    if 0 < abs(share) < 0.0001:
        return "under 0.01 %"
    digits = 0 if abs(share) >= 0.9995 else 1 if abs(share) >= 0.01 else 2
    return f"{100 * share:.{digits}f} %"


def moved(explanation: Explanation) -> str:
    """Say how far the method moved the point."""
    shift = explanation.shift
    if not shift:
        return "the same place"
    places = "place" if abs(shift) == 1 else "places"
    return f"{abs(shift)} {places} {'up' if shift > 0 else 'down'}"


def write_text(explanation: Explanation, names: Names | None, width: int) -> str:
    """Return lines of at most ``width`` characters."""
    width = check_count(width, "width", least=60)
    ways = [
        (
            explanation.score_rank,
            explanation.method[: width - 38],
            f"score {explanation.score:.3g}",
        ),
        (explanation.distance_rank, "plain distance", f"distance {explanation.distance:.3g}"),
    ]
    digits = len(str(max(explanation.score_rank, explanation.distance_rank)))
    method = max(len(way) for _, way, _ in ways)
    lines = [f"Why is {name_of(names, explanation.point, width - 14)} here?"]
    lines += [
        f"  place {place:>{digits}}  by {way:<{method}}  {value}" for place, way, value in ways
    ]
    lines.append(f"  of {explanation.n_ranked} points: {moved(explanation)}")
    lines += wrap(_fusion_text(explanation), width)
    lines += _path_lines(explanation, names, width)
    if len(explanation.examples) > 1:
        lines += _example_lines(explanation, names, width - ROOM)
    if explanation.first_graph:
        lines += wrap("The score is of the last graph; path and shares are of the first.", width)
    return "\n".join(lines)


def _fusion_text(explanation: Explanation) -> str:
    """Say how the score came from shape and distance; nothing where it is of one alone."""
    fused, shape = explanation.fused, explanation.shape
    if fused is None or not shape > 0:
        return ""
    if fused.kind == "reciprocal_rank":
        return f"The score adds up reciprocal ranks by shape ({shape:.3g}) and by distance."
    return (
        f"Score {explanation.score:.3g} = shape {shape:.3g} x closeness "
        f"{explanation.score / shape:.3g}; weight of distance {fused.weight:g}, up to "
        f"{fused.horizon:.2g} times the spread of the query's neighbours."
    )


def _path_lines(explanation: Explanation, names: Names | None, width: int) -> list[str]:
    path, room = explanation.path, width - ROOM
    if path is None and explanation.path_state == "gave up":
        return [f"No path was found within {explanation.n_visited} points."]
    if path is None:
        return wrap(WITHOUT_PATH[explanation.path_state], width)
    steps = "1 step" if len(path.steps) == 1 else f"{len(path.steps)} steps"
    whole = "score" if explanation.fused is None else "shape score"
    says = f"it alone brings {share_text(path.share)} of the {whole}"
    if path.share is None:
        says = "an illustration, since the score is no sum over paths"
    lines = wrap(f"Strongest path, {steps}; {says}:", width)
    if len(path.steps) == 1:
        lines += [
            f"  {line}" for line in wrap(_neighbors_text(path.steps[0], names, room), width - 2)
        ]
    called = [name_of(names, step.end, room) for step in path.steps]
    first = name_of(names, path.steps[0].start, room)
    column = max(len(name) for name in [first, *called])
    lines.append(f"  {'':<{column}}   weight  passes on     score")
    known = "" if path.start_score is None else f"{path.start_score:>8.3g}"
    lines.append(f"  {first:<{column}}  {'':7}  {'':9}  {known}".rstrip())
    rows = [
        f"  {name:<{column}}  {step.weight:>7.3g}  {step.factor:>9.3g}  {step.score:>8.3g}"
        for name, step in zip(called, path.steps, strict=True)
    ]
    if len(rows) > LONGEST_PATH:
        half = LONGEST_PATH // 2
        rows[half:-half] = [f"  … {len(rows) - 2 * half} more"]
    return lines + rows


def _neighbors_text(step: Step, names: Names | None, room: int) -> str:
    """Say whose neighbour is whose."""
    start, end = (name_of(names, point, room) for point in (step.start, step.end))
    if step.end_place is None and step.start_place is None:
        return f"{end} and {start} are joined in the graph."
    if step.start_place is None:
        other = "" if step.start is None else f"; {start} is not among those of {end}"
        return f"{end} is number {step.end_place} among the nearest of {start}{other}."
    if step.end_place is None:
        return (
            f"{start} is number {step.start_place} among the nearest of {end}; {end} is not among "
            f"those of {start}."
        )
    return (
        f"{end} is number {step.end_place} among the nearest of {start}, and {start} number "
        f"{step.start_place} among those of {end}."
    )


def _example_lines(explanation: Explanation, names: Names | None, room: int) -> list[str]:
    whole = "score" if explanation.fused is None else "shape score"
    whole = "distance" if explanation.path_state == "no graph" else whole
    examples = sorted(explanation.examples, key=lambda example: -abs(example.share or 0.0))
    shown = examples[:MOST_EXAMPLES]
    called = [name_of(names, example.point, room) for example in shown]
    column = max(len(name) for name in called)
    lines = [f"What each example adds to the {whole}:"]
    for name, example in zip(called, shown, strict=True):
        bar = "#" * round(BAR * min(1.0, abs(example.share or 0.0)))
        lines.append(f"  {name:<{column}}  {share_text(example.share):>8}  {bar}".rstrip())
    if len(examples) > len(shown):
        lines.append(f"  … {len(examples) - len(shown)} more")
    return lines


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
    end_place, start_place : int or None
        Place of ``end`` among the nearest neighbours of ``start``, and of ``start`` among those of
        ``end``; 1 is the nearest. None where it is not one of them. An edge needs one of both.
    """

    start: int | None
    end: int
    weight: float
    factor: float
    score: float
    end_place: int | None = None
    start_place: int | None = None


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
        away in both, as in `Distance`.
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
        return write_text(self, names, width)
