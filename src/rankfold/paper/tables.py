"""The printed tables, checked before anything runs, our figures beside them, and their report."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from importlib.resources import files
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from rankfold.check import check_choice, check_count, check_positive
from rankfold.datasets import DATASETS
from rankfold.drawing import png_bytes
from rankfold.errors import InputError
from rankfold.evaluation import evaluate
from rankfold.graph import AdaptiveGraph, GaussianGraph
from rankfold.rankers import (
    RAN,
    Diffusion,
    Distance,
    GraphTransduction,
    LocallyConstrainedDiffusion,
    ManifoldRanking,
    PersonalizedPageRank,
    Ranker,
    SelfDiffusion,
    TensorProductDiffusion,
)
from rankfold.types import Dataset

if TYPE_CHECKING:
    import matplotlib.figure

Piece = Callable[[], Any]
"""What another process can do: a function with its arguments, ``functools.partial``."""

Pieces = dict[tuple[str, ...], Piece]
"""Work by its name."""

Datasets = Mapping[str, Dataset]
"""The data sets that a run keeps to."""

Measurements = Mapping[tuple[str, ...], Any]
"""What came of every piece of work, by its name."""

Status = Literal["exact", "within 0.1", "differs"]

STATUSES: tuple[Status, ...] = ("exact", "within 0.1", "differs")

METRICS = ("precision", "recall")

CLASSES: dict[str, type[Any]] = {
    made.__name__: made
    for made in (
        RAN,
        AdaptiveGraph,
        Diffusion,
        Distance,
        GaussianGraph,
        GraphTransduction,
        LocallyConstrainedDiffusion,
        ManifoldRanking,
        PersonalizedPageRank,
        SelfDiffusion,
        TensorProductDiffusion,
    )
}
"""The only classes that a table can name."""

ROUNDING = 1e-9
"""Of a mean over queries, in per cent."""


class Measured(NamedTuple):
    """Means over all queries, in per cent."""

    precision: float
    recall: float


def measure(ranker: Ranker, dataset: Dataset, cutoff: int, metric: str | None = None) -> Measured:
    """Measure as the paper does: every point a query, which counts as found and as relevant.

    Parameters
    ----------
    ranker : Ranker
    dataset : Dataset
    cutoff : int
    metric : str, optional
        Instead of that of the data set.
    """
    names = (f"precision@{cutoff}", f"recall@{cutoff}")
    data = replace(dataset, metric=metric or dataset.metric)
    found = evaluate({"it": ranker}, data, names, include_query=True)
    if not found.complete:
        raise KeyboardInterrupt
    return Measured(*(100 * found.mean("it", name) for name in names))


@dataclass(frozen=True)
class Grid:
    """A table of texts.

    The first ``n_words`` columns are words, the others numbers; the last may hold code.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    n_words: int = 1
    title: str = ""
    code: bool = False


@dataclass(frozen=True, eq=False)
class Picture:
    """A figure under the name of its files, with what it shows in words."""

    name: str
    caption: str
    figure: matplotlib.figure.Figure

    def png(self) -> bytes:
        """Return the content of a PNG file."""
        return png_bytes(self.figure)

    def svg(self) -> bytes:
        """Return the content of an SVG file; the same figure gives the same bytes."""
        import matplotlib as mpl

        content = BytesIO()
        with mpl.rc_context({"svg.hashsalt": self.name}):
            self.figure.savefig(content, format="svg", metadata={"Date": None})
        return content.getvalue()


@dataclass(frozen=True, eq=False)
class Section:
    """A heading with paragraphs, pictures and tables, in this order."""

    title: str
    paragraphs: tuple[str, ...] = ()
    pictures: tuple[Picture, ...] = ()
    grids: tuple[Grid, ...] = ()


def settings_section(tables: Sequence[Table]) -> Section | None:
    """Return a table of all settings; None without tables."""
    rows = tuple((table.name, row.method, code(row)) for table in tables for row in table.rows)
    if not rows:
        return None
    text = "Each row is made by this, with the metric of the data set where none is named."
    header = ("table", "method", "settings")
    return Section("The settings", (text,), grids=(Grid(header, rows, n_words=3, code=True),))


def code(row: PrintedRow) -> str:
    """Return the code that makes the ranker of a row."""
    made = row.ranker(**({"metric": row.metric} if row.metric else {}))
    return " ".join(repr(made).split())


@dataclass(frozen=True)
class Figure:
    """A printed figure in per cent, and how near ours is known to be."""

    printed: float
    status: Status


@dataclass(frozen=True, eq=False)
class PrintedRow:
    """A row of a printed table.

    Parameters
    ----------
    method : str
        As the paper calls it.
    settings : dict
        The class under "class", and its keyword arguments; the graph is such a dict, too.
    metric : str or None
        How the data are measured, where it is not as the data set says.
    figures : dict of str to Figure
        For "precision" and "recall".
    reason, note : str
        Why ours differs, and which settings the paper does not state; or empty.
    as_printed : dict
        The settings that the paper states, where ours are others; or empty.
    """

    method: str
    settings: Mapping[str, Any]
    metric: str | None
    figures: Mapping[str, Figure]
    reason: str
    note: str
    as_printed: Mapping[str, Any]

    def ranker(self, **changes: Any) -> Ranker:
        """Return the method of this row, not fitted."""
        made: Ranker = _make({**self.settings, **changes})
        return made

    def arguments(self) -> dict[str, Any]:
        """Return the settings with None where the file says "none"."""
        return {key: _plain(value) for key, value in self.settings.items()}


@dataclass(frozen=True, eq=False)
class Table:
    """A printed table: one data set, one cutoff, one bandwidth of the graphs."""

    name: str
    title: str
    dataset: str
    cutoff: int
    sigma: float
    rows: tuple[PrintedRow, ...]
    remark: str = ""


def once(tables: Sequence[Table]) -> list[Table]:
    """Return the first table of every data set."""
    first: dict[str, Table] = {}
    for table in tables:
        first.setdefault(table.dataset, table)
    return list(first.values())


def status_of(printed: float, ours: float) -> Status:
    """Say how near ours is to a figure printed with two digits, rounded or cut off.

    Examples
    --------
    >>> status_of(41.56, 41.567), status_of(41.57, 41.567), status_of(41.5, 41.567)
    ('exact', 'exact', 'within 0.1')
    """
    difference = ours - printed
    if -0.005 - ROUNDING <= difference < 0.01 - ROUNDING:
        return "exact"
    return "within 0.1" if abs(difference) <= 0.1 + ROUNDING else "differs"


def read_tables(path: Path | None = None) -> tuple[Table, ...]:
    """Read the tables of the paper, or those of another file.

    Examples
    --------
    >>> [(table.name, table.dataset) for table in read_tables()]
    [('Table 1', 'yale'), ('Table 2', 'orl'), ('Table 3', 'usps'), ('Hidden table', 'yale')]
    """
    source = files("rankfold.paper").joinpath("tables.toml") if path is None else path
    try:
        content = tomllib.loads(source.read_text(encoding="utf-8"))
        return tuple(_table(table) for table in content["tables"])
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{source.name} is not TOML: {error}.") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{source.name} is not text in UTF-8: {error}.") from error
    except KeyError as error:
        raise InputError(f"{source.name} lacks the key {error}.") from error
    # Where a list or a table of TOML is expected and there is another value.
    except (TypeError, AttributeError) as error:
        raise InputError(f"{source.name} is not laid out as tables and rows: {error}.") from error


def _table(content: dict[str, Any]) -> Table:
    check_choice(content["dataset"], "dataset", tuple(DATASETS))
    rows = tuple(_row(row) for row in content["rows"])
    return Table(
        content["name"],
        content["title"],
        content["dataset"],
        check_count(content["cutoff"], "cutoff"),
        check_positive(content["sigma"], "sigma"),
        rows,
        content.get("remark", ""),
    )


def _row(content: dict[str, Any]) -> PrintedRow:
    method = content["method"]
    figures = {metric: _figure(content[metric], method) for metric in METRICS}
    reason = content.get("reason", "")
    if not reason and any(figure.status == "differs" for figure in figures.values()):
        raise InputError(f"a figure of {method} differs, but no reason is given.")
    settings = {"class": content["class"], **content.get("settings", {})}
    if "graph" in content:
        settings["graph"] = content["graph"]
    row = PrintedRow(
        method=method,
        settings=settings,
        metric=content.get("metric"),
        figures=figures,
        reason=reason,
        note=content.get("note", ""),
        as_printed=content.get("as_printed", {}),
    )
    row.ranker(**row.as_printed)
    return row


def _figure(content: dict[str, Any], method: str) -> Figure:
    check_choice(content["status"], f"status of {method}", STATUSES)
    return Figure(check_positive(content["printed"], f"figure of {method}"), content["status"])


def _make(settings: Mapping[str, Any]) -> Any:
    """Make an object of an allowed class; a dict among its arguments is made first."""
    name = settings["class"]
    check_choice(name, "class", tuple(CLASSES))
    arguments = {key: _value(value) for key, value in settings.items() if key != "class"}
    try:
        return CLASSES[name](**arguments)
    except TypeError as error:
        raise InputError(f"{name} cannot be made from {arguments}: {error}.") from error


def _value(value: Any) -> Any:
    return _make(value) if isinstance(value, Mapping) else _plain(value)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(part) for key, part in value.items()}
    return None if value == "none" else value


@dataclass(frozen=True)
class Outcome:
    """One printed figure and ours, in the form of ``results.json``.

    Parameters
    ----------
    dataset, method, metric : str
    cutoff : int
    printed, ours, difference : float
        In per cent.
    status : str
        How near ours is now.
    settings : dict
    """

    dataset: str
    method: str
    metric: str
    cutoff: int
    printed: float
    ours: float
    difference: float
    status: Status
    settings: dict[str, Any]

    def record(self) -> dict[str, Any]:
        """Return what a file of results holds of it."""
        return asdict(self)


def table_work(tables: Sequence[Table], datasets: Datasets) -> Pieces:
    """Return a measurement for every row, and for the settings that the paper states."""
    pieces: Pieces = {}
    for table in tables:
        data = datasets[table.dataset]
        for row in table.rows:
            arguments = (data, table.cutoff, row.metric)
            pieces[table.name, row.method] = partial(measure, row.ranker(), *arguments)
            if row.as_printed:
                ranker = row.ranker(**row.as_printed)
                pieces[table.name, row.method, "as printed"] = partial(measure, ranker, *arguments)
    return pieces


def outcomes(tables: Sequence[Table], results: Measurements) -> list[Outcome]:
    """Return every printed figure beside ours."""
    return [outcome for table, row in _rows(tables) for outcome in compare(table, row, results)]


def compare(table: Table, row: PrintedRow, results: Measurements) -> list[Outcome]:
    """Return precision and recall of one row beside the printed ones."""
    found: Measured = results[table.name, row.method]
    ours = dict(zip(METRICS, found, strict=True))
    settings = {**row.arguments(), **({"metric": row.metric} if row.metric else {})}
    return [
        Outcome(
            table.dataset,
            row.method,
            metric,
            table.cutoff,
            figure.printed,
            ours[metric],
            ours[metric] - figure.printed,
            status_of(figure.printed, ours[metric]),
            settings,
        )
        for metric, figure in row.figures.items()
    ]


def moved(tables: Sequence[Table], results: Measurements) -> list[str]:
    """Say of every figure that is no longer as near as recorded what it was and what it is."""
    return [
        f"{table.name}, {row.method}, {outcome.metric}@{table.cutoff}: recorded "
        f'"{row.figures[outcome.metric].status}", now "{outcome.status}" '
        f"(printed {outcome.printed:.2f}, ours {outcome.ours:.3f})"
        for table, row in _rows(tables)
        for outcome in compare(table, row, results)
        if outcome.status != row.figures[outcome.metric].status
    ]


def table_section(table: Table, results: Measurements) -> Section:
    """Return the table with every remark on it."""
    cells = tuple(
        (
            row.method if outcome.metric == METRICS[0] else "",
            f"{outcome.metric[0].upper()}@{table.cutoff}",
            f"{outcome.printed:.2f}",
            f"{outcome.ours:.3f}",
            # Adding zero turns a rounded -0.0 into 0.0.
            f"{round(outcome.difference, 3) + 0.0:+.3f}",
            outcome.status,
        )
        for row in table.rows
        for outcome in compare(table, row, results)
    )
    header = ("method", "measure", "printed", "ours", "difference", "status")
    return Section(
        f"{table.name}: {table.title}",
        (_heading(table), *_remarks(table, results)),
        grids=(Grid(header, cells, n_words=2),),
    )


def _heading(table: Table) -> str:
    remark = f"{table.remark} " if table.remark else ""
    return f"{remark}Bandwidth of the paper's graphs: sigma = {table.sigma:g}."


def _remarks(table: Table, results: Measurements) -> Iterator[str]:
    methods: dict[str, list[str]] = {}
    for row in table.rows:
        for text in filter(None, (row.reason, row.note + _stated(table, row, results))):
            methods.setdefault(text, []).append(row.method)
    for text, names in methods.items():
        yield f"{', '.join(names)}: {text}"


def _stated(table: Table, row: PrintedRow, results: Measurements) -> str:
    if not row.as_printed:
        return ""
    found: Measured = results[table.name, row.method, "as printed"]
    return f" As stated, ours is {found.precision:.2f} and {found.recall:.2f}."


def _rows(tables: Sequence[Table]) -> Iterator[tuple[Table, PrintedRow]]:
    return ((table, row) for table in tables for row in table.rows)
