"""Draw an explanation: two places, the path on the data, scores along it, shares of examples."""

from __future__ import annotations

from pathlib import Path as FilePath
from typing import Any

from rankfold.check import InputError, check_matrix
from rankfold.drawing import new_page, save_png
from rankfold.explaining.course import draw_course
from rankfold.explaining.explanation import Explanation, Names
from rankfold.explaining.map import draw_map
from rankfold.explaining.panels import Panel, draw_places, draw_shares
from rankfold.explaining.text import moved, name_of
from rankfold.types import FloatArray

WIDTH, MARGIN, TOP, GAP = 1760, 72, 216, 88
MAP_WIDTH, MAP_HEIGHT, PLACES, COURSE, BAR, HEADING = 900, 560, 246, 520, 40, 64


def draw_explanation(
    explanation: Explanation,
    path: str | FilePath,
    X2: Any = None,
    names: Names | None = None,
    vectors2: Any = None,
) -> None:
    """Write a PNG: how far the point moved, the path that led there, and who sent it.

    Parameters
    ----------
    explanation : Explanation
    path : str or Path
        The file; it is either written completely or left as it was.
    X2 : array, shape (n_points, 2), optional
        Coordinates of all points in the plane; the path is then drawn over them.
    names : mapping or sequence of str, optional
        What points are called.
    vectors2 : array, shape (n_vectors, 2), optional
        Coordinates of the unseen vectors of the query, for the same picture.
    """
    several = len(explanation.examples) > 1
    shares = HEADING + BAR * min(5, len(explanation.examples)) + 24 if several else 0
    on_map = X2 is not None
    body = max(MAP_HEIGHT + shares, PLACES + COURSE) if on_map else PLACES + COURSE + shares
    title = f"Why is {name_of(names, explanation.point, 48)} here?"
    height = TOP + body + MARGIN // 2
    figure, page = new_page(WIDTH, height, title, _subtitle(explanation), MARGIN)
    left, shares_top = MARGIN, TOP + body - shares
    if on_map:
        panel = Panel(figure, page, MARGIN, TOP, MAP_WIDTH, body - shares)
        places = _check_places(X2, "X2", explanation.point + 1)
        n_unseen = sum(example.point is None for example in explanation.examples)
        unseen = None if vectors2 is None else _check_places(vectors2, "vectors2", n_unseen)
        draw_map(panel, explanation, names, places, unseen)
        left += MAP_WIDTH + GAP
    width = WIDTH - MARGIN - left
    draw_places(Panel(figure, page, left, TOP, width, PLACES), explanation)
    course = body - PLACES - (0 if on_map else shares)
    draw_course(Panel(figure, page, left, TOP + PLACES, width, course), explanation, names)
    if several:
        across = MAP_WIDTH if on_map else width
        panel = Panel(figure, page, MARGIN, shares_top, across, shares)
        draw_shares(panel, explanation, names, HEADING, BAR)
    save_png(figure, FilePath(path))


def _subtitle(explanation: Explanation) -> str:
    place = f"{explanation.method}: place {explanation.score_rank} of {explanation.n_ranked}"
    if not explanation.shift:
        return f"{place}, the same as by plain distance"
    return f"{place}, {moved(explanation)} from plain distance"


def _check_places(X2: Any, name: str, least: int) -> FloatArray:
    places = check_matrix(X2, name)
    if places.shape[1] != 2 or len(places) < least:
        raise InputError(
            f"{name} has shape {places.shape}, but must have a row of two coordinates for "
            f"every point, {least} at least."
        )
    return places
