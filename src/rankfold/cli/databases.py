"""``rankfold attach``, ``refresh`` and ``detach``: a graph beside a collection of a database."""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from rankfold.cli.errors import Command, interruptible
from rankfold.cli.options import NEIGHBORS, RECALL, TABLE, open_ranked
from rankfold.cli.output import counted, pairs

STOPPED = "Stopped: your data is as it was; the same command can be given again."
ADDRESS = click.argument("address")
REQUIRED = click.option(
    "--table", required=True, metavar="TABLE", help="The table or collection; schema.table, too."
)
SECRETS = """\b
A password is safer in PGPASSWORD or ~/.pgpass: others can see the command line.
"""


@click.command(cls=Command, epilog=SECRETS)
@ADDRESS
@REQUIRED
@click.option("--vector", metavar="COLUMN", help="The vectors, where there are several columns.")
@click.option("--key", metavar="COLUMN", help="The key; the primary key by default.")
@click.option(
    "--metric",
    type=click.Choice(["euclidean", "cosine"]),
    help="That of the collection if it has one, else euclidean.",
)
@NEIGHBORS
@RECALL
@click.option("--replace", is_flag=True, help="Replace the graph that is there.")
@click.option(
    "--scheduler", metavar="ADDRESS", help="A Dask scheduler, whose workers find the neighbours."
)
@click.option("--scratch", metavar="FOLDER", help="A folder that its workers share with this one.")
@click.option(
    "--as-vector", metavar="COLUMN", help="Write the shape as a second vector of every point, too."
)
@click.option(
    "--components", type=click.IntRange(1), default=256, show_default=True, help="Its length."
)
@click.option("--dry-run", is_flag=True, help="Say what would be written, and how large it is.")
def attach(
    address: str,
    table: str,
    vector: str | None,
    key: str | None,
    metric: Any,
    n_neighbors: Any,
    as_vector: str | None,
    components: int,
    dry_run: bool,
    **how: Any,
) -> None:
    """Build the graph of a collection, and store it there.

    ADDRESS is that of a vector database, such as postgresql://user@host/database. Nothing that is
    there is changed; --as-vector adds a column to your table.
    """
    with interruptible(STOPPED):
        from rankfold.databases import Collection

        columns: dict[str, Any] = {"vector": vector, "key": key, "metric": metric}
        if dry_run:
            found = Collection.estimate(address, table, n_neighbors=n_neighbors, **columns)
            click.echo(pairs(found))
            return
        shown = sys.stderr.isatty()
        options = {**columns, **how, "n_neighbors": n_neighbors, "progress": shown}
        with Collection.attach(address, table, **options) as made:
            known = made.info()
            points, edges = counted(known["points"], "point"), counted(known["edges"], "edge")
            click.echo(f"{table}: {points}, {known['n_neighbors']} neighbours, {edges}")
            if as_vector is not None:
                made.write_shape(as_vector, components, progress=shown)
                click.echo(f"{table}: shape vectors in {as_vector}")


@click.command(cls=Command)
@ADDRESS
@REQUIRED
@RECALL
def refresh(address: str, table: str, recall: float) -> None:
    """Let the graph of a collection follow what has changed there."""
    with interruptible(STOPPED):
        from rankfold.databases import Collection

        with Collection.open(address, table) as opened:
            done = opened.refresh(recall=recall, progress=sys.stderr.isatty())
        click.echo(f"{table}: {', '.join(f'{count} {what}' for what, count in done.items())}")


@click.command(cls=Command)
@ADDRESS
@REQUIRED
def detach(address: str, table: str) -> None:
    """Remove the graph of a collection without a trace."""
    from rankfold.databases.collection import connect

    database = connect(address, table)
    try:
        database.detach()
    finally:
        database.close()
    click.echo(f"{table}: detached")


@click.command(cls=Command)
@click.argument("name")
@TABLE
@click.option(
    "--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True
)
def info(name: str, table: str | None, form: str) -> None:
    """Say what an index or an attached collection holds."""
    with open_ranked(name, table) as opened:
        known = opened.info()
    click.echo(json.dumps(known, indent=2, ensure_ascii=False) if form == "json" else pairs(known))
