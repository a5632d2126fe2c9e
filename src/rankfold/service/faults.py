"""Which of many points a change fails for, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from rankfold.check import InputError, StorageError, about
from rankfold.index import Index
from rankfold.service.fields import LONGEST_NAME
from rankfold.service.requests import ChangedPoint, NewPoint
from rankfold.storage.columns import KINDS, UNKNOWN

NUMBERS = {"integer", "number"}


@contextmanager
def naming_points(
    index: Index, points: Sequence[NewPoint | ChangedPoint], *, new: bool
) -> Iterator[None]:
    """Let the error of a change name the field of the first point that is wrong.

    The index says what is wrong; points are looked at one by one only when it has refused them.

    Parameters
    ----------
    index : Index
    points : sequence of NewPoint or ChangedPoint
    new : bool
        Whether they are added, so that their ids must be free.
    """
    try:
        with about("points"):
            yield
    except StorageError:
        raise
    except InputError as error:
        with index.reading():
            _check_ids(index, [point.id for point in points], "points[{}].id", new=new)
            known = index.info()
            for place, point in enumerate(points):
                with about(f"points[{place}]"):
                    _check_vector(point.vector, known)
                    _check_payload(point.payload, known["columns"])
        raise error


@contextmanager
def naming_ids(index: Index, ids: Sequence[Any]) -> Iterator[None]:
    """Let the error of a change name the first id that is wrong."""
    try:
        with about("ids"):
            yield
    except StorageError:
        raise
    except InputError as error:
        with index.reading():
            _check_ids(index, ids, "ids[{}]", new=False)
        raise error


def _check_ids(index: Index, ids: Sequence[Any], field: str, *, new: bool) -> None:
    seen, held = set(), index.holds(list(ids))
    for place, name in enumerate(ids):
        if name is None:
            continue
        with about(field.format(place)):
            if name in seen:
                raise InputError(f"the id {name!r} is given more than once; name a point once.")
            if new and held[place]:
                raise InputError(f"the id {name!r} is in use already; remove or update this point.")
            if not new and not held[place]:
                raise InputError(f"there is no point with the id {name!r}.")
        seen.add(name)


def _check_vector(vector: Sequence[float] | None, known: Mapping[str, Any]) -> None:
    if vector is not None and len(vector) != known["features"]:
        raise InputError(
            f"the vector has {len(vector)} numbers, but those of the index have "
            f"{known['features']}.",
            "vector",
        )
    if vector is not None and known["metric"] == "cosine" and not any(vector):
        raise InputError(
            "the vector is all zeros, which has no direction; leave the point out.", "vector"
        )


def _check_payload(payload: Mapping[str, Any], columns: Mapping[str, str]) -> None:
    for name, value in payload.items():
        with about(f"payload.{name[:LONGEST_NAME]}"):
            if name not in columns:
                raise InputError(
                    f"the index has no column {name!r}; it has {', '.join(columns) or 'none'}."
                )
            if value is None or columns[name] == UNKNOWN:
                continue
            kind = KINDS[type(value)]
            if kind != columns[name] and {kind, columns[name]} != NUMBERS:
                raise InputError(
                    f"column {name!r} holds {columns[name]} values, but this one is {kind}."
                )
