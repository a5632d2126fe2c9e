"""An explanation in a few lines of plain text."""

from __future__ import annotations

from contextlib import suppress
from textwrap import wrap

from rankfold.check import check_count
from rankfold.explaining.explanation import Explanation, Names

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
