"""The printed tables: read from ``tables.toml`` and checked before anything runs."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from rankfold.check import InputError, check_choice, check_count, check_positive
from rankfold.datasets import DATASETS
from rankfold.graph import AdaptiveGraph, GaussianGraph
from rankfold.rankers import (
    RAN,
    Diffusion,
    Euclidean,
    GraphTransduction,
    LocallyConstrainedDiffusion,
    ManifoldRanking,
    PersonalizedPageRank,
    Ranker,
    SelfDiffusion,
    TensorProductDiffusion,
)

Status = Literal["exact", "within 0.1", "differs"]
STATUSES: tuple[Status, ...] = ("exact", "within 0.1", "differs")
METRICS = ("precision", "recall")

CLASSES: dict[str, type[Any]] = {
    made.__name__: made
    for made in (
        RAN,
        AdaptiveGraph,
        Diffusion,
        Euclidean,
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


@dataclass(frozen=True)
class Figure:
    """A printed figure in per cent, and how near ours is known to be."""

    printed: float
    status: Status


@dataclass(frozen=True, eq=False)
class Row:
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
    rows: tuple[Row, ...]
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


def _row(content: dict[str, Any]) -> Row:
    method = content["method"]
    figures = {metric: _figure(content[metric], method) for metric in METRICS}
    reason = content.get("reason", "")
    if not reason and any(figure.status == "differs" for figure in figures.values()):
        raise InputError(f"a figure of {method} differs, but no reason is given.")
    settings = {"class": content["class"], **content.get("settings", {})}
    if "graph" in content:
        settings["graph"] = content["graph"]
    row = Row(
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
