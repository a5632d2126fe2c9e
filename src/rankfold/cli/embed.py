"""``rankfold embed``: the shape of an index as vectors, for other databases."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rankfold.cli.errors import STOPPED, Command, interruptible
from rankfold.cli.options import Target, targeted
from rankfold.cli.output import counted

if TYPE_CHECKING:
    from rankfold.types import FloatArray

FORMATS = (".npy", ".parquet")

EXAMPLES = """\b
Examples:
  rankfold embed digits -o shape.npy
  rankfold embed digits -o shape.parquet --components 128
"""


@click.command(cls=Command, epilog=EXAMPLES)
@targeted()
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="An .npy file of the vectors, in the order of the ids, or a .parquet file of columns id "
    "and shape.",
)
@click.option(
    "--components",
    "n_components",
    type=int,
    default=256,
    show_default=True,
    help="Length of the vectors, at most.",
)
@click.option(
    "--smoothness", type=float, default=30.0, show_default=True, help="As that of queries."
)
@click.option(
    "--normalization",
    type=float,
    default=0.25,
    show_default=True,
    help="Power of their length that vectors are divided by; 1 for databases that know cosine "
    "alone.",
)
def embed(place: Target, output: Path, n_components: int, **parameters: Any) -> None:
    """Write the shape of an index as vectors.

    Their dot products are about the scores by shape, so that any vector database can rank by them.
    """
    if output.suffix not in FORMATS:
        raise click.UsageError(
            f"{str(output)!r} is neither an .npy nor a .parquet file; name one of these."
        )
    with interruptible(STOPPED):
        from rankfold.files import check_parent, replacing

        check_parent(output)
        if output.suffix == ".parquet":
            from rankfold.inputs.tables import pyarrow_parquet

            pyarrow_parquet()  # before work is done for it
        with place.open() as opened:
            ids, vectors = opened.embed(n_components, progress=sys.stderr.isatty(), **parameters)
        with replacing(output) as partial:
            _write(partial, output.suffix, ids, vectors)
        click.echo(f"{output}: {counted(len(ids), 'vector')} of {vectors.shape[1]} numbers")


def _write(path: Path, form: str, ids: list[Any], vectors: FloatArray) -> None:
    import numpy as np

    if form == ".npy":
        with path.open("wb") as file:
            np.save(file, vectors, allow_pickle=False)
        return
    from rankfold.inputs.tables import pyarrow_parquet

    pyarrow = pyarrow_parquet()
    mixed = len({type(name) for name in ids}) > 1
    names = [str(name) for name in ids] if mixed else ids  # a column has one type
    flat = pyarrow.array(np.ascontiguousarray(vectors).ravel())
    lists = pyarrow.FixedSizeListArray.from_arrays(flat, vectors.shape[1])
    table = pyarrow.table({"id": pyarrow.array(names), "shape": lists})
    pyarrow.parquet.write_table(table, path)
