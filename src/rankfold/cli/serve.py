"""``rankfold serve``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import ExitStack
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rankfold.cli.compiling import telling_of_compilation
from rankfold.cli.errors import Command, interruptible
from rankfold.cli.places import ENGINE, Place

if TYPE_CHECKING:
    from rankfold.index import Index

PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
LEVELS = ["debug", "info", "warning", "error"]


@click.command(cls=Command)
@click.argument("names", metavar="[NAME]...", nargs=-1, type=click.Path())
@ENGINE
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
    engine: str | None,
    host: str,
    port: int,
    browser: bool,
    without_key: bool,
    log_level: str,
    hosts: tuple[str, ...],
    **limits: Any,
) -> None:
    """Serve indexes: a page to look at them, and an API.

    NAME is the path of an index; with --engine, its name in a database, which any number of
    services may share. Two small examples are always there.

    The API can change indexes if the variable RANKFOLD_API_KEY holds a key of 16 characters or
    more; every request then needs it. Without a key, indexes are read-only, and the service
    listens only on this machine.
    """
    places = places_of(names, engine or None)
    with (
        interruptible("Stopped: every change that was answered is on disk."),
        ExitStack() as stack,
    ):
        check_installed()
        from rankfold.service import Settings
        from rankfold.service.listening import bind, reachable, run

        given = {name: limit for name, limit in limits.items() if limit is not None}
        settings = Settings.from_environment(**given)
        writable = settings.api_key is not None
        indexes = {
            name: stack.enter_context(place.open(write=writable)) for name, place in places.items()
        }
        place = stack.enter_context(bind(host, port))
        settings = reachable(settings, place, hosts, without_key)
        for index in indexes.values():
            ask_once(index)
        run(indexes, settings, place, log_level, partial(announce, browser))


def ask_once(index: Index) -> None:
    """Make the graph and compile what answers, so that the first client need not wait for it."""
    with telling_of_compilation(len(index)):
        anywhere = [1.0] * index.info()["features"]
        for point in index.query(vectors=anywhere, top=1):
            index.query(point, top=1)


def check_installed() -> None:
    """Require the packages of the extra before anything is opened."""
    for package in ("fastapi", "uvicorn", "prometheus_client"):
        if find_spec(package) is None:
            from rankfold.check import MissingExtraError

            raise MissingExtraError(package, "serve")


def places_of(names: Iterable[str], engine: str | None) -> dict[str, Place]:
    """Return where indexes are, by the names under which they are served.

    These are their names in a database, or the last parts of their paths.

    Examples
    --------
    >>> list(places_of(["data/digits", "faces"], None))
    ['digits', 'faces']
    """
    places: dict[str, Place] = {}
    for given in names:
        name = given if engine else Path(given).resolve().name
        if not PLAIN.fullmatch(name):
            mend = "copy it to another name" if engine else "rename its folder"
            raise click.UsageError(
                f"The index {given!r} would be served as {name!r}, but names are of letters, "
                f"digits, '.', '_' and '-'; {mend}."
            )
        if name in places:
            mend = "name it once" if engine else "rename one of the folders"
            raise click.UsageError(
                f"Both {places[name].name!r} and {given!r} would be served as {name!r}; {mend}."
            )
        places[name] = Place(given, engine)
    return places


def announce(browser: bool, address: str) -> None:
    """Say where the page is, and open it if that was asked for."""
    click.echo(f"The page is at {address} (Ctrl-C ends it).", err=True)
    if browser:
        click.launch(address)
