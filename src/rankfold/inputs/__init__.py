"""How vectors, ids and payload come in: files, folders of images, tables, and texts."""

from rankfold.inputs.embedder import EMBEDDERS, Embedder
from rankfold.inputs.files import (
    READERS,
    as_columns,
    read_ids,
    read_payload,
    read_points,
    read_vectors,
)
from rankfold.inputs.points import Points

__all__ = [
    "EMBEDDERS",
    "Embedder",
    "Points",
    "READERS",
    "as_columns",
    "read_ids",
    "read_payload",
    "read_points",
    "read_vectors",
]
