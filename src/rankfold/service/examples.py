"""Two moons and three rings: what shape is, without any data."""

from __future__ import annotations

from rankfold.datasets import load
from rankfold.index import Index

EXAMPLES = {"two-moons": ("moons", "moon"), "three-rings": ("rings", "ring")}
"""Names of the examples, the data set of each, and what its labels are called."""


def build_examples() -> dict[str, Index]:
    """Build them; they are gone when they are closed."""
    return {name: _build(*example) for name, example in EXAMPLES.items()}


def _build(dataset: str, column: str) -> Index:
    data = load(dataset)
    return Index.build(data.X, payload={column: data.labels})
