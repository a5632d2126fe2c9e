"""``rankfold serve``: serve indexes and collections over HTTP."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import ExitStack
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rankfold.cli.errors import Command, interruptible
from rankfold.cli.options import open_ranked

if TYPE_CHECKING:
    from rankfold.databases import Collection
    from rankfold.index import Index

PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
LEVELS = ["debug", "info", "warning", "error"]


@click.command(cls=Command)
@click.argument("names", metavar="[NAME]...", nargs=-1, type=click.Path())
@click.option(
    "--table",
    "tables",
    metavar="TABLE",
    multiple=True,
    help="A table that was attached; NAME is then the address of its database.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=8765,
    show_default=True,
    help="Port to listen on; 0 picks a free one.",
)
@click.option("--browser", is_flag=True, help="Open the page in a browser.")
@click.option(
    "--without-key", is_flag=True, help="Let others on the network read, without any key."
)
@click.option(
    "--allow-host",
    "hosts",
    metavar="NAME",
    multiple=True,
    help="A name, such as example.org, under which the service may be asked for.",
)
@click.option(
    "--cors",
    "origins",
    metavar="ORIGIN",
    multiple=True,
    help="Pages from elsewhere that may use the API, such as https://example.org.",
)
@click.option("--log-level", type=click.Choice(LEVELS), default="info", show_default=True)
@click.option(
    "--timeout",
    type=click.FloatRange(0, 86_400, min_open=True),
    help="Seconds that a request may take.",
)
@click.option(
    "--body-limit",
    "body_bytes",
    type=click.IntRange(1),
    help="Bytes that a request may have.",
)
def serve(
    names: tuple[str, ...],
    tables: tuple[str, ...],
    host: str,
    port: int,
    browser: bool,
    without_key: bool,
    log_level: str,
    hosts: tuple[str, ...],
    **limits: Any,
) -> None:
    """Serve indexes: a page to look at them, and an API.

    NAME is the path of an index; with --table, the address of a database with collections that
    were attached, which any number of services may serve. Two small examples are always there.

    The API can change indexes if the variable RANKFOLD_API_KEY holds a key of 16 characters or
    more; every request then needs it. Without a key, indexes are read-only, and the service
    listens only on this machine.
    """
    places = places_of(names, tables)
    with (
        interruptible("Stopped: every change that was answered is on disk."),
        ExitStack() as stack,
    ):
        check_installed()
        from rankfold.service import Settings
        from rankfold.service.server import bind, reachable, run

        given = {name: limit for name, limit in limits.items() if limit is not None}
        settings = Settings.from_environment(**given)
        writable = settings.api_key is not None
        indexes: dict[str, Index | Collection] = {}
        for name, opened in places.items():
            indexes[name] = open_ranked(*opened, write=writable)
            stack.callback(indexes[name].close)
        place = stack.enter_context(bind(host, port))
        settings = reachable(settings, place, hosts, without_key)
        for index in indexes.values():
            ask_once(index)
        run(indexes, settings, place, log_level, partial(announce, browser))


def ask_once(index: Index | Collection) -> None:
    """Make the graph and compile what answers, so that the first client need not wait for it."""
    anywhere = [1.0] * index.info()["features"]
    for point in index.query(vectors=anywhere, top=1):
        index.query(point, top=1)


def check_installed() -> None:
    """Require the packages of the extra before anything is opened."""
    for package in ("fastapi", "uvicorn", "prometheus_client"):
        if find_spec(package) is None:
            from rankfold.errors import MissingExtraError

            raise MissingExtraError(package, "serve")


def places_of(names: Iterable[str], tables: Iterable[str]) -> dict[str, tuple[str, str | None]]:
    """Return paths, or addresses and tables, by the names under which they are served.

    These are the last parts of their paths, or the names of tables.

    Examples
    --------
    >>> list(places_of(["data/digits", "faces"], []))
    ['digits', 'faces']
    >>> places_of(["postgresql://host/shop"], ["docs"])
    {'docs': ('postgresql://host/shop', 'docs')}
    """
    addresses = [name for name in names if "://" in name]
    if len(addresses) > 1 or bool(addresses) != bool(list(tables)):
        raise click.UsageError(
            "Collections are served by one address and --table for each of them."
        )
    given: list[tuple[str, str, str | None]] = [
        (Path(name).resolve().name, name, None) for name in names if "://" not in name
    ]
    given += [(table, addresses[0], table) for table in tables]
    places: dict[str, tuple[str, str | None]] = {}
    for name, path, table in given:
        what = table or path
        if not PLAIN.fullmatch(name):
            raise click.UsageError(
                f"The index {what!r} would be served as {name!r}, but names are of letters, "
                "digits, '.', '_' and '-'; rename its folder."
            )
        if name in places:
            raise click.UsageError(
                f"Both {places[name][0]!r} and {what!r} would be served as {name!r}; rename one of "
                "the folders."
            )
        places[name] = (path, table)
    return places


def announce(browser: bool, address: str) -> None:
    """Say where the page is, and open it if that was asked for."""
    click.echo(f"The page is at {address} (Ctrl-C ends it).", err=True)
    if browser:
        click.launch(address)
