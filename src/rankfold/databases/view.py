"""Ids and payload of a table, in the words of a store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from rankfold.check import InputError
from rankfold.databases.contract import Writing
from rankfold.databases.payload import check_widening, table_values
from rankfold.databases.sessions import Sessions
from rankfold.storage.columns import checked_payload, widened
from rankfold.storage.ids import checked_ids, checked_slots, few, held_among
from rankfold.types import IntArray


class TableView:
    """What can be asked of the points of a table, in the state that a thread reads.

    Parameters
    ----------
    sessions : Sessions
    """

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of the table."""
        with self._sessions.current() as session:
            return session.head.settings

    @property
    def columns(self) -> dict[str, str]:
        """Names of the payload's columns, and of what kind each is."""
        with self._sessions.current() as session:
            return {column.name: column.kind for column in session.head.columns}

    @property
    def largest_number(self) -> int | None:
        """The largest id that is a number."""
        with self._sessions.current() as session:
            return session.largest_number()

    def slots_of(self, ids: Any) -> IntArray:
        """Return the slot of each id."""
        checked = checked_ids(ids)
        with self._sessions.current() as session:
            slots = session.find(checked)
        if (slots < 0).any():
            unknown = [one for one, slot in zip(checked, slots, strict=True) if slot < 0]
            raise InputError(
                f"there are no points with the ids {few(unknown)}; ids are taken to the letter."
            )
        return slots

    def holds(self, ids: Sequence[Any]) -> list[bool]:
        """Tell of each id whether a point has it."""
        with self._sessions.current() as session:
            return held_among(ids, lambda some: session.find(some) >= 0)

    def ids_of(self, slots: Any) -> list[Any]:
        """Return the id at each slot."""
        with self._sessions.current() as session:
            return session.points(_checked(slots), ())[0]

    def payload_of(self, slots: Any, columns: Sequence[str] | None = None) -> dict[str, list[Any]]:
        """Return the payload at some slots, column by column; all columns if none are named."""
        with self._sessions.current() as session:
            known = {column.name: column for column in session.head.columns}
            unknown = [name for name in columns or () if name not in known]
            if unknown:
                raise InputError(
                    f"there is no column {unknown[0]!r}; known are {', '.join(known) or 'none'}."
                )
            chosen = [known[name] for name in (known if columns is None else columns)]
            return session.points(_checked(slots), chosen)[1] if chosen else {}

    def points_of(self, slots: Any) -> tuple[list[Any], dict[str, list[Any]]]:
        """Return ids and payload at some slots, in one exchange."""
        with self._sessions.current() as session:
            return session.points(_checked(slots), session.head.columns)

    def matching(self, where: str) -> IntArray:
        """Return the slots where a condition holds, ascending."""
        with self._sessions.current() as session:
            return session.matching(where)

    def change_payload(self, slots: IntArray, payload: Mapping[str, Any]) -> None:
        """Give points other values in some columns; inside of a change."""
        values = checked_payload(payload, len(slots))
        session = cast(Writing, self._sessions.held)
        columns = widened(session.head.columns, values)
        check_widening(session, columns)
        changed = [column for column in columns if column.name in values]
        if len(slots) and changed:
            session.change_payload(slots, table_values(changed, values, len(slots)), columns)


def _checked(slots: Any) -> IntArray:
    return np.array(checked_slots(slots, "slots"), dtype=np.int64)
