"""Milvus as a place for indexes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rankfold.check import DatabaseError
from rankfold.databases.contract import Filling, Table
from rankfold.databases.milvus.address import Address
from rankfold.databases.milvus.client import Client
from rankfold.databases.milvus.filling import MilvusFilling, owner, sweep, taken
from rankfold.databases.milvus.heads import Heads
from rankfold.databases.milvus.table import MilvusTable
from rankfold.storage.columns import Column


class Milvus:
    """A Milvus, by its address; nothing is kept open but tables.

    Parameters
    ----------
    address : str
        ``milvus://host:19530`` or ``milvus://user:password@host:19530/database`` for a server or
        a cluster, ``milvus:///folder/file.db`` for a file of Milvus Lite.
    """

    def __init__(self, address: str) -> None:
        self._address = Address.of(address)
        self.place = self._address.place

    def names(self) -> list[str]:
        """Return the names of all indexes."""
        if self._is_missing:
            return []
        with self._connected() as (_, heads):
            return heads.names()

    def open(self, name: str) -> Table:
        """Open an index."""
        self._check_there(name)
        return MilvusTable(self._address, name)

    def check_place(self, name: str, *, replace: bool) -> None:
        """Require that `create` may make an index of a name."""
        with self._connected() as (_, heads):
            heads.prepare()
            if heads.read(name) is not None and not replace:
                raise taken(name, self.place)

    @contextmanager
    def create(
        self, name: str, settings: dict[str, Any], columns: tuple[Column, ...], *, replace: bool
    ) -> Iterator[Filling]:
        """Begin to make an index; without `finish` in the block nothing is left of it."""
        self.check_place(name, replace=replace)
        with self._connected() as (client, heads):
            sweep(client, heads, alone=self._address.file is not None)
            filling = MilvusFilling(client, name, settings, columns, replacing=replace)
            try:
                yield filling
            finally:
                if not filling.finished:
                    filling.abandon()

    def drop(self, name: str) -> None:
        """Delete an index."""
        self._check_there(name)
        with self._connected() as (_, heads):
            state = heads.read_known(name)
            heads.mark_filling(state.generation, owner())  # so that it is deleted even after a kill
            heads.forget(name, state)
            heads.drop(state.generation)

    @property
    def _is_missing(self) -> bool:
        """Whether there is no file, which Milvus Lite would make."""
        return self._address.file is not None and not self._address.file.exists()

    def _check_there(self, name: str) -> None:
        if self._is_missing:
            raise DatabaseError(
                f"there is no index {name!r} in {self.place}, as there is no such file; build one, "
                "or see that the address is right."
            )

    @contextmanager
    def _connected(self) -> Iterator[tuple[Client, Heads]]:
        client = Client(self._address)
        try:
            yield client, Heads(client)
        finally:
            client.close()
