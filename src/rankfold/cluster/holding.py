"""From shards to points as an engine holds them: checked, and in one file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

import numpy as np

from rankfold.check import InputError, check_matrix
from rankfold.cluster.running import Work
from rankfold.cluster.scratch import Scratch
from rankfold.cluster.shards import Shard
from rankfold.inputs.plain import plain_columns
from rankfold.neighbors.exact import as_held
from rankfold.neighbors.vectors import SMALLEST, SinglePrecision
from rankfold.storage.columns import EXACT as EXACT_NUMBERS
from rankfold.storage.columns import UNKNOWN, Column, Values, checked_payload, too_large
from rankfold.storage.ids import Id, checked_ids
from rankfold.types import FloatArray


class Checked(NamedTuple):
    """What a worker found in a shard."""

    n_features: int
    largest: float
    kinds: dict[str, list[str]]


def hold(folder: str, number: int, shard: Shard, metric: str, exact: bool) -> Checked:
    """Check a shard, and write its vectors as the engine holds them; a task."""
    scratch, largest, first = Scratch(folder), 0.0, 0
    blocks = shard.blocks()
    leading = next(blocks)
    n_features = leading.shape[1]
    if not n_features:
        raise InputError(f"{shard} has vectors of no numbers; leave it out.")
    dtype = np.float64 if exact and metric == "cosine" else np.float32
    with scratch.writing(f"points-{number}", (len(shard), n_features), dtype) as rows:
        for block in chain([leading], blocks):
            checked = check_matrix(block, str(shard), first=shard.start + first)
            largest = max(largest, float(np.abs(checked).max(initial=0.0)))
            rows[first : first + len(block)] = _held(checked, metric, exact, str(shard))
            first += len(block)
    kinds: dict[str, set[str]] = {name: set() for name in shard.payload}
    for _, payload in batches([shard]):
        for name, values in payload.items():
            kinds[name].add(values.kind)
    return Checked(n_features, largest, {name: sorted(found) for name, found in kinds.items()})


def hold_all(
    work: Work, scratch: Scratch, shards: list[Shard], metric: str, exact: bool
) -> tuple[Column, ...]:
    """Write all points into one file, ``points``; return the columns of their payload."""
    _check_alike(shards)
    folder = str(scratch.folder)
    arguments = [(folder, i, shard, metric, exact) for i, shard in enumerate(shards)]
    found: list[Checked] = work.run("vectors", hold, arguments)
    for shard, checked in zip(shards, found, strict=True):
        if checked.n_features != found[0].n_features:
            width = found[0].n_features
            raise _uneven(str(shard), checked.n_features, str(shards[0]), width)
    largest = max(checked.largest for checked in found)
    if metric == "euclidean" and not exact and 0 < largest < SMALLEST:
        raise InputError(
            f"no value is larger than {largest:.3g}, but squared distances in single precision "
            f"need values of {SMALLEST:g} at least; scale the data."
        )
    scratch.join("points", [f"points-{i}" for i in range(len(shards))])
    return tuple(
        Column(name, _common_kind(name, {kind for one in found for kind in one.kinds[name]}), place)
        for place, name in enumerate(shards[0].payload)
    )


def batches(
    shards: list[Shard], columns: tuple[Column, ...] = ()
) -> Iterator[tuple[list[Id], dict[str, Values]]]:
    """Yield ids and payload, some rows at a time; row numbers where there are no ids."""
    kinds, first = {column.name: column.kind for column in columns}, 0
    for shard in shards:
        for n_rows, found in shard.columns():
            payload = {name: found[name] for name in shard.payload}
            plain = plain_columns(payload, n_rows, str(shard))
            values = checked_payload(plain, n_rows)
            for name, column in values.items():
                if kinds.get(name) == "number" and column.kind == "integer":
                    _check_exact(name, column)
            own = range(first, first + n_rows) if shard.id is None else found[shard.id]
            yield checked_ids(own), values
            first += n_rows


def _held(block: FloatArray, metric: str, exact: bool, name: str) -> FloatArray:
    if exact:
        return as_held(block, metric, name)
    return SinglePrecision(metric == "cosine", None).apply(block, name, block.shape[1])


def _check_alike(shards: list[Shard]) -> None:
    """Require the same columns in all shards, and ids in all of them or in none."""
    first = shards[0]
    vector = next((shard.vector for shard in shards if shard.vector), ())
    for shard in shards:
        if shard.vector not in ((), vector):
            raise InputError(
                f"{shard} has the vector in {_listed(shard.vector)}, but others have it in "
                f"{_listed(vector)}; name its columns, in their order, with vector_columns."
            )
        if (shard.id is None) != (first.id is None):
            without, having = (shard, first) if shard.id is None else (first, shard)
            raise InputError(f"{having} has ids and {without} has none; give all shards ids.")
        if set(shard.payload) != set(first.payload):
            odd = sorted(set(shard.payload) ^ set(first.payload))
            raise InputError(
                f"{shard} and {first} have different columns ({_listed(odd)}); name "
                "those to keep with payload_columns."
            )


def _common_kind(name: str, kinds: set[str]) -> str:
    known = kinds - {UNKNOWN}
    if known == {"integer", "number"}:
        return "number"
    if len(known) > 1:
        raise InputError(
            f"column {name!r} holds {' and '.join(sorted(known))} values in different shards, but "
            "must hold one kind."
        )
    return known.pop() if known else UNKNOWN


def _check_exact(name: str, column: Values) -> None:
    for value in column.values:
        if isinstance(value, int) and abs(value) > EXACT_NUMBERS:
            raise too_large(name, value)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names))


def _uneven(shard: str, width: int, other: str, expected: int) -> InputError:
    return InputError(
        f"{shard} has vectors of {width} numbers, but those of {other} have {expected}; "
        "all shards need as many."
    )
