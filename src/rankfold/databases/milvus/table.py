"""An index in Milvus that is open."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from rankfold.check import DatabaseError
from rankfold.databases.contract import Session, Writing
from rankfold.databases.milvus.address import Address
from rankfold.databases.milvus.client import Client
from rankfold.databases.milvus.heads import Heads, Settled, State
from rankfold.databases.milvus.session import MilvusSession
from rankfold.databases.milvus.writing import MilvusWriting

_writers: dict[tuple[str, str], Lock] = {}
"""Who writes in this process; Milvus has no locks, and none across processes is to be had."""


class MilvusTable:
    """An index by its name.

    Readers see one state for as long as a session lasts, up to ten minutes, whatever others commit;
    a session whose rows were written twice meanwhile gets `MovedError` and has to begin anew.
    A change is there as a whole or not at all, also when the writer is killed.

    One process may write at a time. Milvus Lite sees to that: one process at a time has its file.
    For a server it is up to the user, as Milvus has no locks: of two writers at the same time
    one fails almost always, but what it wrote until then may get into the change of the other.
    """

    def __init__(self, address: Address, name: str) -> None:
        self.place = f"{address.place} {name}"
        self._name = name
        self._client = Client(address)
        self._heads = Heads(self._client)
        self._settled: dict[str, Settled] = {}
        try:
            state = self._heads.read_known(name)
            self._check_collections(state)
            self._settled_of(state)
        except BaseException:
            self._client.close()
            raise

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """Begin a session."""
        state = self._state()
        yield MilvusSession(self._client, state, self._settled_of(state).head(state))

    @contextmanager
    def writing(self) -> Iterator[Writing]:
        """Begin a session that may change the table, once nobody else in this process does."""
        with _writers.setdefault((self._client.place, self._name), Lock()):
            state = self._state()
            head = self._settled_of(state).head(state)
            session = MilvusWriting(self._client, self._name, state, head)
            session.recover()
            yield session

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def _state(self) -> State:
        state = self._heads.read(self._name)
        if state is None:
            raise DatabaseError(f"{self.place} was dropped since it was opened.")
        return state

    def _settled_of(self, state: State) -> Settled:
        settled = self._settled.get(state.generation)
        if settled is None:
            settled = self._heads.read_settled(self._name, state)
            self._settled = {state.generation: settled}
        return settled

    def _check_collections(self, state: State) -> None:
        there = self._client.collections()
        for kind in ("rows", "records", "vectors"):
            if state.collection(kind) not in there:
                raise DatabaseError(
                    f"{self.place} lacks its collection {state.collection(kind)!r}: somebody "
                    "dropped it; restore it from a copy, or drop the index and build it again."
                )
