"""Arrays as arguments of statements, sent in the binary format."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct
from typing import Any

import numpy as np
import numpy.typing as npt
import psycopg
from psycopg.adapt import Dumper
from psycopg.pq import Format

HEAD = Struct(">iiiii")
"""One dimension, no missing values, the type of elements, their number, where counting begins."""


@dataclass(frozen=True)
class Integers:
    """Whole numbers for an argument of type ``integer[]``."""

    array: npt.NDArray[Any]


@dataclass(frozen=True)
class Floats:
    """Numbers for an argument of type ``real[]``."""

    array: npt.NDArray[Any]


class _ArrayDumper(Dumper):
    format = Format.BINARY
    element: int
    kind: str

    def dump(self, obj: Any) -> bytes:
        elements = np.empty(obj.array.size, dtype=[("length", ">i4"), ("value", self.kind)])
        elements["length"], elements["value"] = 4, obj.array.ravel()
        return HEAD.pack(1, 0, self.element, len(elements), 1) + elements.tobytes()


class _IntegersDumper(_ArrayDumper):
    oid, element, kind = 1007, 23, ">i4"


class _FloatsDumper(_ArrayDumper):
    oid, element, kind = 1021, 700, ">f4"


def teach_arrays(connection: psycopg.Connection[Any]) -> None:
    """Let a connection take arrays as arguments."""
    connection.adapters.register_dumper(Integers, _IntegersDumper)
    connection.adapters.register_dumper(Floats, _FloatsDumper)
