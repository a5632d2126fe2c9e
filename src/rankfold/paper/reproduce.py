"""``rankfold reproduce``: measure everything, print the tables, write the report."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table as Screen
from sklearn.exceptions import ConvergenceWarning

from rankfold.check import check_count
from rankfold.datasets import load
from rankfold.drawing import require_matplotlib
from rankfold.errors import InputError
from rankfold.files import replacing
from rankfold.paper import extras, figures, report
from rankfold.paper.tables import (
    Measurements,
    Outcome,
    Piece,
    Pieces,
    Section,
    Table,
    moved,
    outcomes,
    read_tables,
    settings_section,
    table_section,
    table_work,
)
from rankfold.types import Dataset

COLORS = {"exact": "green", "within 0.1": "yellow", "differs": "red"}


@dataclass(frozen=True, eq=False)
class Reproduction:
    """All that was measured, and what it is compared with."""

    tables: tuple[Table, ...]
    datasets: dict[str, Dataset]
    results: Measurements

    def outcomes(self) -> list[Outcome]:
        """Return every printed figure beside ours."""
        return outcomes(self.tables, self.results)

    def moved(self) -> list[str]:
        """Say which figures are no longer as near as recorded."""
        return moved(self.tables, self.results)

    def sections(self) -> list[Section]:
        """Return the report in order, without what was not measured."""
        tables, results = self.tables, self.results
        found = [
            report.findings_section(tables, results),
            figures.pattern_section(self.datasets, results),
            *(table_section(table, results) for table in tables),
            figures.neighbors_section(tables, results),
            extras.alternation_section(tables, results),
            extras.diagonal_section(tables, results),
            extras.tuned_section(tables, results),
            extras.others_section(results),
            figures.objective_section(results),
            settings_section(tables),
        ]
        return [section for section in found if section is not None]


def reproduce(
    only: Sequence[str] = (),
    folder: Path | None = None,
    tables: Path | None = None,
    n_jobs: int | None = None,
) -> Reproduction:
    """Measure the paper's tables and figures, and what it does not show.

    Parameters
    ----------
    only : sequence of str
        Data sets to keep to; all by default.
    folder : Path, optional
        Where the data files are; else they are sought as `rankfold.datasets.load` does.
    tables : Path, optional
        Another file of printed figures.
    n_jobs : int, optional
        Processes; by default one for every processor.
    """
    require_matplotlib()
    printed = read_tables(tables)
    names = _chosen(only, printed)
    # All at once: what is missing shows before anything runs.
    datasets = {name: load(name, folder) for name in names}
    chosen = tuple(table for table in printed if table.dataset in datasets)
    work = {
        **extras.alternation_work(chosen, datasets),
        **table_work(chosen, datasets),
        **figures.neighbors_work(chosen, datasets),
        **extras.tuned_work(chosen, datasets),
        **extras.others_work(datasets),
        **extras.diagonal_work(chosen, datasets),
        **figures.objective_work(datasets),
        **figures.pattern_work(datasets),
    }
    return Reproduction(chosen, datasets, do_all(work, n_jobs))


def _chosen(only: Sequence[str], tables: Sequence[Table]) -> list[str]:
    known = [*dict.fromkeys(table.dataset for table in tables), *figures.PATTERNS, *extras.OTHERS]
    for name in only:
        if name not in known:
            raise InputError(
                f"only names {name!r}, but must be some of {', '.join(known)}.", "only"
            )
    return [name for name in known if name in only] if only else known


def write_report(found: Reproduction, out: Path) -> list[Path]:
    """Write the report, its pictures and the results; each file completely or not at all."""
    sections = found.sections()
    pictures = [picture for section in sections for picture in section.pictures]
    images = {picture.name: picture.png() for picture in pictures}
    contents = {f"{name}.png": image for name, image in images.items()}
    contents |= {f"{picture.name}.svg": picture.svg() for picture in pictures}
    contents["results.json"] = report.to_json(found.outcomes()).encode()
    contents["report.md"] = report.to_markdown(sections).encode()
    contents["report.html"] = report.to_html(sections, images).encode()
    out.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        with replacing(out / name) as partial:
            partial.write_bytes(content)
    return [out / name for name in contents]


def print_tables(found: Reproduction, console: Console) -> None:
    """Print every table with printed figures, ours, and how near they are."""
    for table in found.tables:
        section = table_section(table, found.results)
        (grid,) = section.grids
        screen = Screen(title=section.title, title_style="bold", title_justify="left")
        for place, name in enumerate(grid.header):
            words = place < grid.n_words or name == "status"
            screen.add_column(name, justify="left" if words else "right", overflow="fold")
        for *cells, status in grid.rows:
            screen.add_row(*cells, f"[{COLORS[status]}]{status}[/]")
        console.print(screen)
        for text in section.paragraphs[1:]:
            console.print(text, style="dim", highlight=False, markup=False)
        console.print()


def do_all(work: Pieces, n_jobs: int | None = None) -> Measurements:
    """Do every piece of work, in processes, with a bar on standard error.

    Parameters
    ----------
    work : dict
    n_jobs : int, optional
        Processes; by default one for every processor.
    """
    n_processes = os.cpu_count() if n_jobs is None else check_count(n_jobs, "n_jobs")
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    console = Console(stderr=True)
    results: dict[tuple[str, ...], Any] = {}
    calls = (delayed(_do)(name, piece) for name, piece in work.items())
    pool = Parallel(n_jobs=n_processes, return_as="generator_unordered")
    # In a file, a bar is only noise.
    with Progress(
        *columns,
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as progress:
        bar = progress.add_task("measuring", total=len(work))
        for name, result in pool(calls):
            results[name] = result
            progress.update(bar, description=", ".join(name), advance=1)
    return {name: results[name] for name in work}


def _do(name: tuple[str, ...], piece: Piece) -> tuple[tuple[str, ...], Any]:
    with warnings.catch_warnings():
        # That alternations have not settled after so many is one of the findings.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return name, piece()
