"""What is asked of an index."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rankfold.check import (
    InputError,
    about,
    check_choice,
    check_count,
    check_share,
    check_vectors,
    check_weights,
)
from rankfold.rankers import RANKERS
from rankfold.storage import Store
from rankfold.types import IntArray, Query


@dataclass(frozen=True, eq=False)
class Asked:
    """A query in the words of the user; `Index.query` says what each field means."""

    ids: list[Any]
    vectors: Any
    weights: Any
    negative: list[Any]
    negative_vectors: Any
    where: Any
    top: int
    offset: int
    diversity: float
    method: str
    include_query: bool
    parameters: dict[str, Any] = field(default_factory=dict)

    def checked(self) -> Asked:
        """Return it after checking what can be checked without the index."""
        check_choice(self.method, "method", tuple(RANKERS))
        check_count(self.top, "top")
        check_count(self.offset, "offset", least=0)
        check_share(self.diversity, "diversity", zero=True, one=True)
        return self

    @property
    def wanted(self) -> int:
        """How many results are needed for those that are shown."""
        return self.offset + self.top

    def query(self, store: Store, n_features: int) -> Query:
        """Return the query in terms of slots: positive examples first, ids before vectors."""
        slots = np.concatenate(
            [_slots(store, self.ids, "ids"), _slots(store, self.negative, "negative")]
        )
        found, counts = np.unique(slots, return_counts=True)
        if len(found) < len(slots):
            (twice,) = store.ids_of(found[[counts.argmax()]])
            raise InputError(
                f"{twice!r} is an example more than once, among ids and negative; name it once, "
                "and give it a larger weight to make it count more."
            )
        with about("vectors"):
            vectors = check_vectors(self.vectors, n_features)
        with about("negative_vectors"):
            opposed = check_vectors(self.negative_vectors, n_features)
        n_ids, n_positive = len(self.ids), len(self.ids) + len(vectors)
        if not n_positive:
            raise InputError(
                "the query has no example of what is looked for: give ids of points, vectors, "
                "or both."
            )
        with about("weights"):
            given = check_weights(self.weights, n_positive)
        if not (given > 0).all():
            raise InputError(
                f"weights is {self.weights!r}, but those of ids and vectors must be above zero; "
                "name what is not looked for as negative.",
                "weights",
            )
        against = RANKERS[self.method].negative_weight
        weights = [
            *given[:n_ids],
            *[against] * len(self.negative),
            *given[n_ids:],
            *[against] * len(opposed),
        ]
        return Query(slots, np.concatenate([vectors, opposed]), weights)


def _slots(store: Store, ids: list[Any], argument: str) -> IntArray:
    with about(argument):
        return store.slots_of(ids) if ids else np.empty(0, dtype=np.int64)
