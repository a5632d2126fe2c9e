"""How vectors, ids and payload come in: files of several kinds, folders of images, tables."""

from rankfold.inputs.files import READERS, read_ids, read_points, read_vectors
from rankfold.inputs.payload import as_columns, read_payload
from rankfold.inputs.points import Points

__all__ = [
    "Points",
    "READERS",
    "as_columns",
    "read_ids",
    "read_payload",
    "read_points",
    "read_vectors",
]
