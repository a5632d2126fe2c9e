"""``rankfold evaluate``: methods side by side on a data set, a file or an index."""

from __future__ import annotations

from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from rankfold.cli.errors import INTERRUPTED, Command
from rankfold.cli.inputs import check_width, read, read_new_ids, reading_options
from rankfold.cli.options import Target, comma_separated, targeted
from rankfold.cli.output import terminal_width

if TYPE_CHECKING:
    from rankfold.evaluation import Evaluation, SearchCollection
    from rankfold.inputs import Points
    from rankfold.types import Dataset

EXAMPLES = """\b
Examples:
  rankfold evaluate digits
  rankfold evaluate packages --label section
  rankfold evaluate vectors.parquet --label kind --metric cosine
  rankfold evaluate documents.npz --queries questions.npz --qrels judged.qrels --metric cosine
"""


def sample(text: str) -> int | Literal["all"]:
    """Return how many queries to draw, or "all".

    Examples
    --------
    >>> sample("500"), sample("all")
    (500, 'all')
    """
    if text == "all":
        return "all"
    if text.isdecimal() and int(text) >= 1:
        return int(text)
    raise click.BadParameter(f"{text!r} is neither a whole number from 1 nor 'all'.")


@dataclass(frozen=True)
class Judgements:
    """What says which points are relevant; at most one of both is there.

    Parameters
    ----------
    label : str or None
        The column that points share.
    queries, qrels : Path or None
        Files of questions, and of judgements.
    query_ids : str or None
        A file of ids of the questions.
    """

    label: str | None
    queries: Path | None
    qrels: Path | None
    query_ids: str | None

    def __post_init__(self) -> None:
        if (self.queries is None) != (self.qrels is None):
            raise click.UsageError("--queries and --qrels belong together; give both.")
        if self.label is not None and self.qrels is not None:
            raise click.UsageError(
                "Give --label, or --queries and --qrels: only one can say what is relevant."
            )
        if self.query_ids is not None and self.queries is None:
            raise click.UsageError("--query-ids are those of --queries; give both.")

    def __bool__(self) -> bool:
        return self.label is not None or self.qrels is not None


@click.command(cls=Command, epilog=EXAMPLES)
@targeted(click.argument("name", metavar="DATA"))
@click.option("--label", metavar="COLUMN", help="Points that share its value are relevant.")
@click.option(
    "--queries",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Vectors of questions that are not among the documents; with --qrels.",
)
@click.option(
    "--qrels",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="What is relevant to them, in the format of TREC: query 0 document grade.",
)
@click.option("--query-ids", metavar="FILE", help="A file of ids of the questions, one per line.")
@click.option(
    "--methods",
    default="distance,ran",
    show_default=True,
    help="Names of methods, comma-separated, or all.",
)
@click.option(
    "--metrics",
    help="Measures, comma-separated, such as precision@10,average_precision; else the usual ones, "
    "which need no complete ranking among more than 5,000 points.",
)
@click.option(
    "--sample",
    type=sample,
    metavar="NUMBER|all",
    help="Draw so many queries at random; else all, or 500 among more than 5,000 points.",
)
@click.option("--include-query", is_flag=True, help="Let a query be one of its own results.")
@click.option("--base", help="Method that the paired test compares with; else plain distance.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "markdown", "latex", "csv", "json"]),
    default="table",
    show_default=True,
    help="How the result is written to standard output.",
)
@click.option(
    "--metric",
    type=click.Choice(["euclidean", "cosine"]),
    help="Of a file; else that which it names, else euclidean.",
)
@reading_options
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder of a data set's file; else that of RANKFOLD_DATA, the cache, or a download.",
)
@click.option("--jobs", type=int, default=1, show_default=True, help="Processes to share the work.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of all random draws.")
def evaluate(
    place: Target,
    label: str | None,
    queries: Path | None,
    qrels: Path | None,
    query_ids: str | None,
    methods: str,
    metrics: str | None,
    sample: int | Literal["all"] | None,
    base: str | None,
    form: str,
    seed: int,
    **options: Any,
) -> None:
    """Measure methods side by side on DATA, with intervals, tests and harm.

    DATA is the name of a data set; or, with --label or with --queries and --qrels, an index or a
    file of vectors, as for index build. An index ranks on the graph that it has. Ctrl-C prints
    what is done so far and ends with status 130.
    """
    judged = Judgements(label, queries, qrels, query_ids)
    common = {
        "metrics": None if metrics is None else comma_separated(metrics),
        "queries": sample,
        "base": base,
        "seed": seed,
        "progress": True,
    }
    names = method_names(methods)
    if judged and is_index(place):
        result = on_index(place, judged, names, common, options)
    else:
        result = on_data(place, judged, names, common, options)
    write = {
        "table": lambda: result.to_text(terminal_width()),
        "markdown": result.to_markdown,
        "latex": result.to_latex,
        "csv": result.to_csv,
        "json": result.to_json,
    }
    click.echo(write[form](), nl=False)
    if not result.complete:
        click.echo("Stopped early: the table holds only what was done until then.", err=True)
        raise SystemExit(INTERRUPTED)


def on_index(
    place: Target,
    judged: Judgements,
    methods: list[str],
    common: dict[str, Any],
    options: dict[str, Any],
) -> Evaluation:
    """Measure methods on the graph of an index."""
    check_fitting(options, f"files and data sets; {str(place)!r} is an index.")
    name = Path(place.name).name
    with place.open() as index:
        if judged.label is not None:
            return index.evaluate(judged.label, methods=methods, name=name, **common)
        asked = read_questions(judged, {})
        check_width(asked.vectors, str(judged.queries), index)
        return index.evaluate(
            vectors=asked.vectors,
            vector_ids=asked.ids,
            qrels=read_judgements(judged),
            methods=methods,
            name=name,
            **common,
        )


def on_data(
    place: Target,
    judged: Judgements,
    methods: list[str],
    common: dict[str, Any],
    options: dict[str, Any],
) -> Evaluation:
    """Measure methods on a data set or a file."""
    from rankfold.evaluation import evaluate as measure
    from rankfold.neighbors import GIVEN_METRICS
    from rankfold.rankers import RANKERS

    folder, jobs, include_query = (
        options.pop(name) for name in ("folder", "jobs", "include_query")
    )
    data: Dataset | SearchCollection
    if judged:
        check_fitting({"folder": folder}, f"data sets; {place.name!r} is a file.")
        data = read_data(Path(place.name), judged, options)
    else:
        data = load_dataset(place.name, folder)
        check_fitting(options, f"files; {place.name!r} is a data set.")
    if methods == list(RANKERS) and data.metric in GIVEN_METRICS:
        methods = [name for name in methods if not RANKERS[name].needs_vectors]
    return measure(
        {name: RANKERS[name]() for name in methods},
        data,
        include_query=include_query,
        n_jobs=jobs,
        **common,
    )


def check_fitting(options: dict[str, Any], what: str) -> None:
    """Refuse options that mean nothing for what is measured."""
    for name, value in options.items():
        if value not in (None, False) and not (name == "jobs" and value == 1):
            raise click.UsageError(f"--{name.replace('_', '-')} is for {what}")


def load_dataset(name: str, folder: Path | None) -> Dataset:
    """Load a data set by its name, and say what a file or an index needs."""
    from rankfold.datasets import DATASETS, load

    if name not in DATASETS and Path(name).exists():
        raise click.UsageError(
            f"{name!r} is a file or a folder: give --label COLUMN, or --queries FILE and --qrels "
            "FILE, to say what is relevant."
        )
    return load(name, folder)


def read_data(
    file: Path, judged: Judgements, options: dict[str, Any]
) -> Dataset | SearchCollection:
    """Read labelled points, or documents with questions and judgements."""
    from rankfold.evaluation import SearchCollection

    given = options.pop("metric")
    if judged.label is not None:
        return read_labelled(file, judged.label, given, options)
    asked = read_questions(judged, options)
    documents = read(file, **options)
    metric = given or documents.metric or "euclidean"
    qrels = read_judgements(judged)
    return SearchCollection(
        file.stem, documents.vectors, asked.vectors, qrels, metric, documents.ids, asked.ids
    )


def read_labelled(file: Path, label: str, metric: str | None, options: dict[str, Any]) -> Dataset:
    """Read points of which a column says what belongs together."""
    import numpy as np

    from rankfold.errors import InputError
    from rankfold.inputs.files import reader_of
    from rankfold.types import Dataset

    alone = options["payload"] is None and options["payload_columns"] is None
    if alone and "payload_columns" in signature(reader_of(file)).parameters:
        options = {**options, "payload_columns": [label]}  # else numbers would be of the vector
    points = read(file, **options)
    columns = points.payload or {}
    if label not in columns:
        known = ", ".join(map(repr, columns)) or "none"
        raise InputError(
            f"--label is {label!r}, but the columns beside the vectors of {str(file)!r} are "
            f"{known}; name one of these, or bring a table with --payload.",
            "label",
        )
    labels: Any = np.array(columns[label], dtype=object)
    return Dataset(file.stem, points.vectors, labels, metric or points.metric or "euclidean")


def read_questions(judged: Judgements, options: dict[str, Any]) -> Points:
    """Read the vectors of questions, with ids where there are some.

    Names of columns that were given hold for this file, too, if it is of a kind that has any.
    """
    from rankfold.inputs import Points, read_vectors
    from rankfold.inputs.files import TEXT_SUFFIXES, reader_of

    file = judged.queries or Path()
    if file.suffix.lower() in TEXT_SUFFIXES:
        names = None if judged.query_ids is None else read_new_ids(judged.query_ids)
        return Points(read_vectors(file), names)
    known = signature(reader_of(file)).parameters
    shared = {
        name: options.get(name)
        for name in ("id_column", "vector_columns", "header")
        if name in known
    }
    if "dataset" in known:
        shared["dataset"] = "test"
    return read(file, ids=judged.query_ids, payload=None, **shared)


def read_judgements(judged: Judgements) -> dict[str, dict[str, int]]:
    """Read which documents are relevant to which question."""
    from rankfold.evaluation import read_qrels
    from rankfold.inputs.files import check_file

    file = judged.qrels or Path()
    check_file(file)
    return read_qrels(file)


def is_index(place: Target) -> bool:
    """Tell an index from a file of vectors or a folder of images."""
    from rankfold.storage.database import DATABASE

    path = Path(place.name)
    if path.is_file():
        return False
    return (path / DATABASE).is_file()


def method_names(text: str) -> list[str]:
    """Return the methods that were named."""
    from rankfold.rankers import RANKERS

    chosen = list(RANKERS) if text == "all" else comma_separated(text)
    for name in chosen or [text]:
        if name not in RANKERS:
            raise click.UsageError(
                f"--methods: method {name!r} is not known; choose from all, {', '.join(RANKERS)}."
            )
    return chosen
