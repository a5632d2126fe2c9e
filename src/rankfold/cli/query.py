"""``rankfold query`` and ``rankfold find``: ask an index by examples, and by words."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from pathlib import Path
from time import perf_counter
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

import click

from rankfold.cli.errors import Command
from rankfold.cli.inputs import check_width, find_ids, images_of
from rankfold.cli.options import (
    BUDGET,
    FUSION,
    METHOD,
    NAME,
    SETTINGS,
    TABLE,
    Target,
    comma_separated,
    open_ranked,
)
from rankfold.cli.output import ExplainedResults, write_csv, write_json, write_table
from rankfold.methods import METHODS

if TYPE_CHECKING:
    from rankfold.databases import Collection
    from rankfold.index import Index, Reason, Results

SELDOM_USED = (
    "pandas",
    "scipy.stats",
    "scipy.spatial",
    "scipy.special",
    "numpy.f2py",
    "numpy.testing",
    "psutil",
    "pycparser",
    "yaml",
)
"""What scikit-learn, SciPy, joblib, cffi and numba import at their start and a query does not need;
together they take longer than it."""

EXAMPLES = """\b
Examples:
  rankfold query digits --id 170
  rankfold query digits --id 170 --not 326 --where "digit = 8" --explain
  rankfold query digits --vector new.npy --top 100 --format csv
  rankfold query notes --text "undo in an image editor"
  rankfold query notes --text "undo in an image editor" --words "undo editor"
  rankfold query digits --id 170 --budget proven
  rankfold query digits --id 170 --fusion none
  rankfold query postgresql://user@host/shop --table docs --id 170 --where "price < 10"
"""

FIND_EXAMPLES = """\b
Examples:
  rankfold find notes chess
  rankfold find notes '"end game"' open* --column title --top 20
"""

UNTOLD_SECONDS = 2
"""A search that takes no longer is made without a word."""

TIMED_POINTS = 1000
"""Points that are compared to learn how long it takes to compare all."""

FORMATS = {"table": write_table, "json": write_json, "csv": write_csv}

FORMAT = click.option(
    "--format",
    "form",
    type=click.Choice([*FORMATS]),
    default="table",
    show_default=True,
    help="How the results are written to standard output.",
)

COLUMNS = click.option(
    "--columns",
    type=comma_separated,
    metavar="NAMES",
    help="Columns of the payload that a table or csv shows, comma-separated; '' shows none.",
)


class LazyFinder(MetaPathFinder):
    """Finds modules of some names as usual, but has them run when an attribute is asked for."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return how a module is loaded; None for all that other finders find."""
        if name not in SELDOM_USED:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec


@contextmanager
def lazy_imports() -> Iterator[None]:
    """Let what is seldom used wait for its first use, where it is imported inside of the block."""
    finder = LazyFinder()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


@click.command(cls=Command, epilog=EXAMPLES)
@NAME
@TABLE
@click.option("--id", "ids", multiple=True, metavar="ID", help="A point to rank by.")
@click.option(
    "--vector",
    "vectors",
    multiple=True,
    metavar="FILE",
    help="Vectors to rank by: a file or picture; - reads numbers from standard input.",
)
@click.option(
    "--text",
    "texts",
    multiple=True,
    metavar="TEXT",
    help="A text to rank by, where the index has an embedder.",
)
@click.option(
    "--embedder", metavar="NAME", help="What makes vectors of texts for a table: wordllama, ..."
)
@click.option(
    "--words",
    metavar="WORDS",
    help="Words to look for in the payload as well; lists by words, distance and shape are fused.",
)
@click.option(
    "--weight",
    "weights",
    multiple=True,
    type=float,
    help="Of each example: ids first, then vectors, then texts.",
)
@click.option("--not", "negative", multiple=True, metavar="ID", help="A point unlike the results.")
@click.option(
    "--not-vector", "negative_vectors", multiple=True, metavar="FILE", help="Vectors unlike them."
)
@click.option(
    "--where",
    metavar="CONDITION",
    help="On payload, such as 'price < 10 and not sold'; of a collection, in the language of its "
    "database.",
)
@click.option("--top", type=int, default=10, show_default=True, help="How many results.")
@click.option("--offset", type=int, default=0, show_default=True, help="Results to skip before.")
@click.option(
    "--diversity",
    type=float,
    default=0.0,
    show_default=True,
    help="From 0, as ranked, to 1, as unlike each other as can be (MMR).",
)
@click.option("--min-score", type=float, metavar="SCORE", help="The least score of a result.")
@click.option(
    "--group-by", metavar="COLUMN", help="Give few results that share a value of this column."
)
@click.option(
    "--per-group", type=int, default=1, show_default=True, help="How many, with --group-by."
)
@METHOD
@SETTINGS
@BUDGET
@FUSION
@click.option("--include-query", is_flag=True, help="Let the query's own points be results.")
@click.option("--explain", is_flag=True, help="Say of every result why it is here.")
@click.option("--explain-id", metavar="ID", help="Say of this point why it is where it is.")
@click.option(
    "--picture",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Draw why the point of --explain-id, else the first result, is here (.png).",
)
@FORMAT
@COLUMNS
@click.option("--yes", is_flag=True, help="Do not ask before a long search.")
@lazy_imports()
def query(
    name: str,
    table: str | None,
    ids: tuple[str, ...],
    vectors: tuple[str, ...],
    texts: tuple[str, ...],
    embedder: str | None,
    words: str | None,
    min_score: float | None,
    group_by: str | None,
    per_group: int,
    negative: tuple[str, ...],
    negative_vectors: tuple[str, ...],
    weights: tuple[float, ...],
    settings: tuple[tuple[str, Any], ...],
    budget: int | Literal["auto", "proven"] | None,
    fusion: float | Literal["auto", "none", "reciprocal_rank"] | None,
    explain: bool,
    explain_id: str | None,
    picture: Path | None,
    form: str,
    columns: list[str] | None,
    yes: bool,
    **asked: Any,
) -> None:
    """Rank the points of an index, or of an attached collection, by their likeness to a query.

    The examples of one query are given by --id, --vector and --text, each as often as needed;
    what is not looked for, by --not and --not-vector.
    """
    if not ids and not vectors and not texts:
        raise click.UsageError(
            "Give a point with --id, vectors with --vector, or a text with --text; words alone "
            "are looked for by: rankfold find."
        )
    twice = [one for one in (*ids, *negative) if (*ids, *negative).count(one) > 1]
    if twice:
        raise click.UsageError(
            f"{twice[0]!r} is an example more than once, among --id and --not; name it once, and "
            "give it a larger --weight to make it count more."
        )
    if group_by is None and per_group != 1:
        raise click.UsageError("--per-group is of the groups of --group-by; give both.")
    more: dict[str, Any] = {"text": texts or None, "words": words, "min_score": min_score}
    more |= {} if group_by is None else {"group_by": group_by, "per_group": per_group}
    asked |= {name: value for name, value in more.items() if value is not None}
    if table is None and embedder is not None:
        raise click.UsageError("--embedder is for a table; an index knows its own.")
    if form == "csv" and (explain or explain_id is not None):
        raise click.UsageError("csv has no place for explanations; take table or json.")
    check_columns(form, columns)
    if picture is not None:
        check_picture(picture)
    parameters = dict(settings)
    check_parameters(asked["method"], parameters)
    if budget is not None:
        parameters["budget"] = None if budget == "proven" else budget
        check_able(asked["method"], "budget")
    if fusion is not None:
        parameters["fusion"] = fusion
        check_able(asked["method"], "fusion")
    with open_ranked(name, table, embedder=embedder) as index, index.reading():
        if table is None and "n_neighbors" in parameters:
            announce_search(index.info(), parameters, yes)
        wanted, unwanted = find_ids(index, ids), find_ids(index, negative)
        results = index.query(
            wanted,
            read_all(index, vectors),
            weights or None,
            negative=unwanted,
            negative_vectors=read_all(index, negative_vectors),
            **asked,
            **parameters,
        )
        reasons = extra = None
        if explain:
            reasons = [None if is_example(results, p) else results.explain(p) for p in results]
        if explain_id is not None:
            extra = explain_point(results, *find_ids(index, [explain_id]))
        if picture is not None:
            draw(results, extra, picture)
        click.echo(FORMATS[form](ExplainedResults(results, reasons, extra, columns)), nl=False)


@click.command(cls=Command, epilog=FIND_EXAMPLES)
@NAME
@click.argument("words", nargs=-1, required=True)
@click.option(
    "--column", "searched", multiple=True, metavar="NAME", help="Where to look; else in all texts."
)
@click.option("--where", metavar="CONDITION", help="On payload, such as 'price < 10'.")
@click.option("--top", type=int, default=10, show_default=True, help="How many results.")
@click.option("--offset", type=int, default=0, show_default=True, help="Results to skip before.")
@FORMAT
@COLUMNS
@lazy_imports()
def find(
    name: str,
    words: tuple[str, ...],
    searched: tuple[str, ...],
    form: str,
    columns: list[str] | None,
    **asked: Any,
) -> None:
    """Find points of an index by words in the texts of their payload.

    Points that hold any of WORDS come best first. Quotes inside of a word make a phrase, and che*
    stands for all words that begin so.
    """
    check_columns(form, columns)
    with Target(name).open() as index:
        matches = index.find(" ".join(words), searched or None, **asked)
    click.echo(FORMATS[form](ExplainedResults(matches, chosen=columns)), nl=False)


def check_columns(form: str, columns: list[str] | None) -> None:
    """Require a format that can leave columns out."""
    if form == "json" and columns is not None:
        raise click.UsageError("--columns is for table and csv; json has the whole payload.")


def announce_search(known: dict[str, Any], parameters: dict[str, Any], yes: bool) -> None:
    """Say that lists are too short for a query, and on a terminal ask before all are searched."""
    asked, n_points = parameters.get("n_neighbors"), known["points"]
    if type(asked) is not int or min(asked, n_points) <= known["n_neighbors"]:
        return
    if min(asked + 1, n_points - 1) <= known["list_width"]:
        return
    seconds = search_seconds(n_points, known["features"])
    if seconds < UNTOLD_SECONDS:
        return
    click.echo(
        f"The lists of this index hold {known['list_width']} neighbours, too few for "
        f"n_neighbors={asked}: all {n_points:,} points are compared again, for this query alone. "
        f"That takes about {seconds:.0f} s. An index built with --neighbors {asked} answers at "
        "once.",
        err=True,
    )
    if not yes and sys.stdin.isatty() and sys.stderr.isatty():
        click.confirm("Go on?", abort=True, err=True)


def search_seconds(n_points: int, n_features: int) -> float:
    """Estimate how long it takes to compare all points, from some of them on this machine."""
    import numpy as np

    some = np.ones((TIMED_POINTS, n_features), dtype=np.float32)
    started = perf_counter()
    np.partition(some @ some.T, TIMED_POINTS // 2, axis=1)
    return (perf_counter() - started) * (n_points / TIMED_POINTS) ** 2


def check_parameters(method: str, parameters: dict[str, Any]) -> None:
    """Require names of parameters of a method; others could be those of the query itself."""
    from rankfold.errors import InputError
    from rankfold.index.executor import check_names

    for name in ("budget", "fusion"):
        if name in parameters:
            raise click.UsageError(f"--set: {name} has an option of its own; give --{name}.")
    try:
        check_names(method, parameters)
    except InputError as error:
        raise click.UsageError(f"--set: {error}") from error


def check_able(method: str, name: str) -> None:
    """Require a method that has a parameter, which is an option of its own."""
    from inspect import signature

    from rankfold.rankers import RANKERS

    able = [one for one in METHODS if name in signature(RANKERS[one]).parameters]
    if method not in able:
        raise click.UsageError(
            f"--{name}: method {method!r} has none; give one of {', '.join(able)}, or leave "
            f"--{name} out."
        )


def check_picture(path: Path) -> None:
    """Require that a picture can be drawn before any work is done for it."""
    from rankfold.drawing import require_matplotlib
    from rankfold.files import check_parent

    require_matplotlib()
    if path.suffix.lower() != ".png":
        raise click.UsageError(
            f"--picture: {str(path)!r} ends in {path.suffix!r}, but pictures are .png files."
        )
    check_parent(path)


def read_all(index: Index | Collection, files: tuple[str, ...]) -> Any:
    """Read the vectors of a query from all files, as the index reads them."""
    if not files:
        return None
    import numpy as np

    from rankfold.inputs import read_vectors

    found = []
    for file in files:
        vectors = read_vectors(file, **images_of(index, Path(file)))
        check_width(vectors, file, index)
        found.append(vectors)
    return list(np.concatenate(found))


def explain_point(results: Results, point: Any) -> Reason:
    """Explain a point that was asked about."""
    if is_example(results, point):
        raise click.UsageError(
            f"--explain-id: {point!r} is an example of the query, which has no place to explain."
        )
    return results.explain(point)


def is_example(results: Results, point: Any) -> bool:
    """Tell whether a point was named in the query."""
    return point in results.query.ids or point in results.query.negative


def draw(results: Results, chosen: Reason | None, path: Path) -> None:
    """Draw why a point is here: the chosen one, else the first result that can be explained."""
    from rankfold.errors import InputError

    best = next((point for point in results if not is_example(results, point)), None)
    if chosen is None and best is None:
        raise InputError("there is no result to draw; ask for more, or for another condition.")
    reason = chosen or results.explain(best)
    reason.draw(path)
    click.echo(f"Picture: {path}", err=True)
