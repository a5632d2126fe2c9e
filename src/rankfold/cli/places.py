"""What commands are about: an index in a folder, or a collection of a database."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rankfold.databases import Collection
    from rankfold.index import Index

NAME = click.argument("name", type=click.Path())
OUTPUT = click.option(
    "-o",
    "--output",
    "name",
    required=True,
    type=click.Path(),
    metavar="NAME",
    help="The folder to make.",
)
TABLE = click.option(
    "--table",
    metavar="TABLE",
    help="A table or collection that was attached, where NAME is the address of its database.",
)


@dataclass(frozen=True)
class Place:
    """The path of an index."""

    name: str

    def __str__(self) -> str:
        return str(Path(self.name))

    def open(self, write: bool = False) -> Index:
        """Open the index."""
        from rankfold.index import Index

        return Index.open(self.name, write=write)

    def check_free(self, replace: bool) -> None:
        """Require that an index can be made here, before work is done for it."""
        from rankfold.storage import Store

        Store.check_place(self.name, replace=replace)

    def verify(self) -> None:
        """Look for damage that opening does not see."""
        from rankfold.storage import Store

        with Store.open(self.name) as store:
            store.verify()


def placed(name: Callable[..., Any] = NAME) -> Callable[..., Any]:
    """Add the path of an index, which a command gets as ``place``."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def called(*args: Any, name: str, **options: Any) -> Any:
            return command(*args, place=Place(name), **options)

        named: Callable[..., Any] = name(called)
        return named

    return add


def open_ranked(name: str, table: str | None, write: bool = False) -> Index | Collection:
    """Open what answers queries: a collection where a table is named, else an index."""
    if table is None and "://" not in name:
        return Place(name).open(write)
    if table is None:
        raise click.UsageError("NAME is the address of a database; name a table with --table.")
    from rankfold.databases import Collection

    return Collection.open(name, table)
