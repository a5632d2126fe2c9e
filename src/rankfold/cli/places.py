"""Where an index is: a folder, or a name in a database."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rankfold.databases.contract import Database
    from rankfold.index import Index

NAME = click.argument("name", type=click.Path())
OUTPUT = click.option(
    "-o",
    "--output",
    "name",
    required=True,
    type=click.Path(),
    metavar="NAME",
    help="The folder to make; with --engine, the name in the database.",
)
ENGINE = click.option(
    "--engine",
    envvar="RANKFOLD_ENGINE",
    show_envvar=True,
    metavar="ADDRESS",
    help="The database of the index, such as postgresql://user@host/database or "
    "milvus://host:19530; '' is a folder. A password is safer in the variable, in PGPASSWORD or "
    "in ~/.pgpass: others can see the command line.",
)


@dataclass(frozen=True)
class Place:
    """Where an index is, or will be.

    Parameters
    ----------
    name : str
        A path; the name of the index, in a database.
    engine : str or None
        The address of the database; None for a folder.
    """

    name: str
    engine: str | None = None

    def __str__(self) -> str:
        return self.name if self.engine else str(Path(self.name))

    def open(self, write: bool = False) -> Index:
        """Open the index."""
        from rankfold.index import Index

        return Index.open(self.name, write=write, engine=self.engine)

    def check_free(self, replace: bool) -> None:
        """Require that an index can be made here, before work is done for it."""
        from rankfold.storage import Store

        if self.engine is None:
            Store.check_place(self.name, replace=replace)
        else:
            self.database().check_place(self.name, replace=replace)

    def verify(self) -> None:
        """Look for damage that opening does not see."""
        from rankfold.databases.checking import verify
        from rankfold.storage import Store

        if self.engine is None:
            with Store.open(self.name) as store:
                store.verify()
        else:
            verify(self.database().open(self.name))

    def database(self) -> Database:
        """Return the database."""
        if self.engine is None:
            raise click.UsageError("Give a database with --engine, or in RANKFOLD_ENGINE.")
        from rankfold.databases.addresses import database_of

        return database_of(self.engine)

    def require_folder(self, why: str) -> None:
        """Refuse a database, where a command is for folders alone."""
        if self.engine is not None:
            raise click.ClickException(f"{self.name!r} is in a database, not in a folder; {why}")


def placed(name: Callable[..., Any] = NAME) -> Callable[..., Any]:
    """Add the name of an index and its database, which a command gets as ``place``."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def called(*args: Any, name: str, engine: str | None, **options: Any) -> Any:
            return command(*args, place=Place(name, engine or None), **options)

        named: Callable[..., Any] = name(ENGINE(called))
        return named

    return add
