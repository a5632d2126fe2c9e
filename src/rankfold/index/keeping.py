"""What keeps an index: a folder or a table of a database."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from rankfold.check import MovedError
from rankfold.neighbors import VectorEngine
from rankfold.types import FloatArray, IntArray

MOST_TRIES = 5
"""How often a state is read that moves away before it was read."""

Arguments = ParamSpec("Arguments")
Returned = TypeVar("Returned")


State = tuple[dict[str, Any], dict[str, Any], list[Any], dict[str, list[Any]]]
"""All of an index without removed points: arrays, settings, ids and payload."""


class Described(Protocol):
    """Ids and payload, in the state that a thread reads."""

    @property
    def settings(self) -> dict[str, Any]:
        """What was decided when the index was built."""

    @property
    def columns(self) -> dict[str, str]:
        """Names of the payload's columns, and of what kind each is."""

    @property
    def largest_number(self) -> int | None:
        """The largest id that is a number."""

    def slots_of(self, ids: Sequence[Any]) -> IntArray:
        """Return the slot of each id."""

    def holds(self, ids: Sequence[Any]) -> list[bool]:
        """Tell of each id whether a point has it."""

    def ids_of(self, slots: Any) -> list[Any]:
        """Return the id at each slot."""

    def payload_of(self, slots: Any, columns: Sequence[str] | None = None) -> dict[str, list[Any]]:
        """Return the payload at some slots, column by column; all columns if none are named."""

    def points_of(self, slots: Any) -> tuple[list[Any], dict[str, list[Any]]]:
        """Return ids and payload at some slots."""

    def matching(self, where: str, /) -> IntArray:
        """Return the slots where a condition holds, ascending."""

    def change_payload(self, slots: Any, payload: Mapping[str, Any]) -> None:
        """Give points other values in some columns; inside of a change."""


class Keeping(Protocol):
    """Keeps points, lists and places; many threads may read, one at a time may change."""

    keeps_one_state: bool
    """Whether all threads read the same state at any time, so that rankers can follow it."""

    @property
    def store(self) -> Described:
        """Ids and payload."""

    @property
    def version(self) -> Any:
        """Which state this thread reads."""

    @property
    def round_trips(self) -> int:
        """How often this thread has waited for a database."""

    def current(self) -> AbstractContextManager[VectorEngine]:
        """Read one state, that which was committed last, and yield its engine."""

    def changing(self) -> AbstractContextManager[None]:
        """Be alone in changing."""

    def change(
        self,
        removed: Any = (),
        vectors: FloatArray | None = None,
        ids: Sequence[Any] = (),
        payload: dict[str, Any] | None = None,
    ) -> None:
        """Remove points, add others, and return once that is durable; inside of `changing`."""

    def changed_since(self, version: Any) -> IntArray | None:
        """Return the rows that have changed since a version; None where that is not known."""

    @property
    def layout(self) -> str | None:
        """The kind of the map that is kept."""

    def places(self, slots: IntArray) -> FloatArray:
        """Return the places of points; inside of `current`."""

    def info(self) -> dict[str, Any]:
        """Return what there is to know about it."""

    def state(self) -> State:
        """Return all of it without removed points."""

    def close(self) -> None:
        """Close it."""


class Kept(Protocol):
    """Something that reads what a keeper keeps."""

    _keeper: Keeping


Reader = TypeVar("Reader", bound=Kept)


def in_one_state(
    read: Callable[Concatenate[Reader, Arguments], Returned],
) -> Callable[Concatenate[Reader, Arguments], Returned]:
    """Let a method begin again where the state that it reads moves away under it.

    Some databases keep no older state than the last.
    """

    @wraps(read)
    def reading(self: Reader, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Returned:
        for _ in range(MOST_TRIES - 1):
            with suppress(MovedError):
                return read(self, *args, **kwargs)
        return read(self, *args, **kwargs)

    return reading
