"""Answers of an index, in the words of the user."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from rankfold.check import InputError
from rankfold.explaining import Explanation, draw_explanation
from rankfold.index.asked import Asked
from rankfold.types import FloatArray, Ranking


class Answering(Protocol):
    """What answers queries and explains: an index or a collection."""

    def _ask(self, asked: Asked) -> Results:
        """Answer a query."""

    def _reason(self, asked: Asked, point: Any) -> Reason:
        """Explain the place of a point in the answer to a query."""


@dataclass(frozen=True, eq=False)
class Results:
    """The answer to a query, best first.

    Parameters
    ----------
    ids : list of str and int
    payload : dict of str to list
        Columns, a value for each id.
    ranking : Ranking
        Scores with their error bound; its ``ids`` are the slots of the points.
    asked : Asked
        The query.
    """

    ids: list[Any]
    payload: dict[str, list[Any]]
    ranking: Ranking
    asked: Asked
    index: Answering

    @property
    def scores(self) -> FloatArray:
        """Scores of ``ids``; 0 for points that the graph does not connect to the query."""
        return self.ranking.scores

    def refine(self, right: Any = (), wrong: Any = ()) -> Results:
        """Ask again after marking some results as right, or as wrong.

        Right ones become examples of the query, wrong ones negative examples. What is marked
        again is what it was marked last.

        Parameters
        ----------
        right, wrong : id or list of ids
            Ids of results, or of other points of the index.
        """
        asked, liked, disliked = self.asked, as_list(right), as_list(wrong)
        for one in liked:
            if one in disliked:
                raise InputError(f"{one!r} is marked as right and as wrong; mark it once.")
        kept = [place for place, one in enumerate(asked.ids) if one not in disliked]
        new = [one for one in liked if one not in asked.ids]
        weights = None
        if asked.weights is not None:
            given, n_ids = np.atleast_1d(asked.weights).tolist(), len(asked.ids)
            heaviest = [max(given)] * len(new)
            weights = [*(given[place] for place in kept), *heaviest, *given[n_ids:]]
        opposed = [one for one in asked.negative if one not in (*liked, *disliked)]
        again = replace(
            asked,
            ids=[*(asked.ids[place] for place in kept), *new],
            weights=weights,
            negative=[*opposed, *disliked],
            offset=0,
        )
        return self.index._ask(again)

    def explain(self, point: Any) -> Reason:
        """Explain why a point has its place; any point of the index but those of the query."""
        return self.index._reason(self.asked, point)

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for every result: rank, id, score, its parts, and payload.

        The parts are ``shape`` and ``distance``, where both were fused.
        """
        first = self.asked.offset + 1
        columns = {"score": self.scores, **self.parts()}
        return [
            {
                "rank": first + place,
                "id": name,
                **{column: float(values[place]) for column, values in columns.items()},
                "payload": {column: values[place] for column, values in self.payload.items()},
            }
            for place, name in enumerate(self.ids)
        ]

    def parts(self) -> dict[str, FloatArray]:
        """Return what was fused in the scores: by shape, and the plain distances; or nothing."""
        distances = self.ranking.distances
        return {} if distances is None else {"shape": self.ranking.shape, "distance": distances}

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.ids)

    def __repr__(self) -> str:
        pairs = zip(self.ids[:5], self.scores[:5], strict=True)
        best = ", ".join(f"{name!r}: {score:.3g}" for name, score in pairs)
        more = ", ..." if len(self) > 5 else ""
        return f"Results({len(self)} points, {{{best}{more}}})"


@dataclass(frozen=True, eq=False)
class Reason:
    """Why a point has its place, with the ids of an index.

    Parameters
    ----------
    explanation : Explanation
    names : dict of int to id
        Ids of the slots that it speaks of.
    """

    explanation: Explanation
    names: dict[int, Any]

    def to_text(self, width: int = 78) -> str:
        """Return it in words."""
        return self.explanation.to_text(self.names, width)

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON can hold it, with ids in the place of row numbers."""
        found = self.explanation.to_dict()
        found["point"] = self._name(found["point"])
        for example in found["examples"]:
            example["point"] = self._name(example["point"])
        if found["path"] is not None:
            for step in found["path"]["steps"]:
                step["start"], step["end"] = self._name(step["start"]), self._name(step["end"])
        return found

    def draw(self, path: str | Path) -> None:
        """Draw it as a PNG."""
        if Path(path).suffix.lower() != ".png":
            raise InputError(f"{str(path)!r} is drawn as a PNG; name a file that ends in .png.")
        draw_explanation(self.explanation, Path(path), names=self.names)

    def _name(self, slot: int | None) -> Any:
        return None if slot is None else self.names[slot]

    def __str__(self) -> str:
        return self.to_text()


def as_list(value: Any) -> list[Any]:
    """Return one id or several as a list."""
    if value is None:
        return []
    several = isinstance(value, Iterable) and not isinstance(
        value, str | bytes | bytearray | Mapping
    )
    if isinstance(value, np.ndarray):
        return list(np.atleast_1d(value))
    return list(value) if several else [value]
