"""Options of several commands, and the index or collection that a command is about."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from rankfold.methods import METHODS

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
class Target:
    """The path of an index."""

    name: str

    def __post_init__(self) -> None:
        if "://" in self.name:
            raise click.UsageError(
                f"{self.name!r} is the address of a database, but this takes the path of an index."
            )

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


def targeted(name: Callable[..., Any] = NAME) -> Callable[..., Any]:
    """Add the path of an index, which a command gets as ``place``."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def called(*args: Any, name: str, **options: Any) -> Any:
            return command(*args, place=Target(name), **options)

        named: Callable[..., Any] = name(called)
        return named

    return add


def open_ranked(
    name: str, table: str | None, write: bool = False, embedder: str | None = None
) -> Index | Collection:
    """Open what answers queries: a collection where a table is named, else an index."""
    if ("://" in name) != (table is not None):
        raise click.UsageError(
            f"{name!r} is the address of a database; name a table with --table."
            if table is None
            else f"--table is for the address of a database, but {name!r} is the path of an index."
        )
    if table is None:
        return Target(name).open(write)
    from rankfold.databases import Collection
    from rankfold.errors import InputError

    try:
        return Collection.open(name, table, embedder=embedder)
    except InputError as error:
        if error.argument in ("address", "table"):
            raise click.UsageError(str(error)) from error
        raise


FILE = click.argument("file", type=click.Path(path_type=Path))
LAYOUT = click.option(
    "--layout",
    type=click.Choice(["auto", "graph", "shape", "pca", "none"]),
    default="auto",
    show_default=True,
    help="How the map is drawn; auto is graph up to 200,000 points if the extra map is installed.",
)


def comma_separated(text: str) -> list[str]:
    """Return the words between commas.

    Examples
    --------
    >>> comma_separated("x, y"), comma_separated("")
    (['x', 'y'], [])
    """
    return [word.strip() for word in text.split(",") if word.strip()]


def size(text: str) -> tuple[int, int]:
    """Return width and height.

    Examples
    --------
    >>> size("32x24")
    (32, 24)
    """
    found = re.fullmatch(r"(\d{1,9})x(\d{1,9})", text)
    if found is None:
        raise click.BadParameter(f"{text!r} is not a width and a height, such as 32x32.")
    return int(found[1]), int(found[2])


def count_or_auto(text: str) -> int | Literal["auto"]:
    """Return a whole number from 1, or "auto".

    Examples
    --------
    >>> count_or_auto("10"), count_or_auto("auto")
    (10, 'auto')
    """
    if text == "auto":
        return "auto"
    if text.isdecimal() and int(text) >= 1:
        return int(text)
    raise click.BadParameter(f"{text!r} is neither a whole number from 1 nor 'auto'.")


def budget(text: str) -> int | Literal["auto", "proven"]:
    """Return a number of points, "auto" or "proven".

    Examples
    --------
    >>> budget("10000"), budget("proven")
    (10000, 'proven')
    """
    if text == "auto":
        return "auto"
    if text == "proven":
        return "proven"
    if text.isdecimal() and int(text) >= 1:
        return int(text)
    raise click.BadParameter(
        f"{text!r} is no budget; give 'auto', a whole number of points from 1, or 'proven' to go "
        "on until the best are proven."
    )


def fusion(text: str) -> float | Literal["auto", "none", "reciprocal_rank"]:
    """Return the weight of distance, "auto", "none" or "reciprocal_rank".

    Examples
    --------
    >>> fusion("2.5"), fusion("none")
    (2.5, 'none')
    """
    from rankfold.check import HEAVIEST_DISTANCE

    if text == "auto":
        return "auto"
    if text == "none":
        return "none"
    if text == "reciprocal_rank":
        return "reciprocal_rank"
    with suppress(ValueError):
        if 0 <= (weight := float(text)) <= HEAVIEST_DISTANCE:
            return weight
    raise click.BadParameter(
        f"{text!r} is no fusion; give 'auto', 'none' for shape alone, 'reciprocal_rank', or a "
        f"weight of distance from 0 to {HEAVIEST_DISTANCE:g}."
    )


def setting(text: str) -> tuple[str, Any]:
    """Return a name and its value; what is no value of JSON is text.

    Examples
    --------
    >>> setting("smoothness=10"), setting("gamma=own")
    (('smoothness', 10), ('gamma', 'own'))
    """
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise click.BadParameter(f"{text!r} is not a name and a value, such as smoothness=10.")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


NEIGHBORS = click.option(
    "--neighbors",
    "n_neighbors",
    type=count_or_auto,
    metavar="NUMBER",
    default="auto",
    show_default=True,
    help="Neighbours in the graph; auto looks at the data.",
)
RECALL = click.option(
    "--recall",
    type=click.FloatRange(0, 1, min_open=True),
    default=0.95,
    show_default=True,
    help="Share of true neighbours that the lists of many points must hold.",
)
METHOD = click.option(
    "--method",
    type=click.Choice(METHODS),
    metavar="NAME",
    default="ran",
    show_default=True,
    help=f"How to rank: {', '.join(METHODS)}.",
)
SETTINGS = click.option(
    "--set",
    "settings",
    multiple=True,
    type=setting,
    metavar="NAME=VALUE",
    help="A parameter of the method, such as smoothness=10.",
)
BUDGET = click.option(
    "--budget",
    type=budget,
    metavar="auto|NUMBER|proven",
    help="How many of more than 5,000 points may get a score: auto is 1,000, or 20 for each "
    "result; proven goes on until the best are proven.",
)
FUSION = click.option(
    "--fusion",
    type=fusion,
    metavar="auto|none|reciprocal_rank|NUMBER",
    help="How plain distance shares in the score: auto, the default of ran, keeps near points "
    "ahead; none, that of the others, is shape alone; a number is the weight of distance.",
)
