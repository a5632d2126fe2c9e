"""PyTerrier: runs and qrels as its tables, and an index as the graph of adaptive re-ranking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from numbers import Real
from typing import Any

from rankfold.errors import InputError, MissingExtraError
from rankfold.evaluation.trec import Qrels, Run
from rankfold.index import Index
from rankfold.metrics import trec_order

try:
    import pandas as pd
except ModuleNotFoundError:
    raise MissingExtraError("pandas", "pyterrier") from None


def run_to_frame(run: Mapping[str, Mapping[str, float]]) -> pd.DataFrame:
    """Return a run as a table with a row for every result; ranks count from 0.

    Examples
    --------
    >>> run_to_frame({"0": {"4": 0.5, "2": 0.9}})
      qid docno  score  rank
    0   0     2    0.9     0
    1   0     4    0.5     1
    """
    rows = []
    for query, results in run.items():
        points, scores = list(results), list(results.values())
        ordered = enumerate(trec_order(points, scores))
        rows += [(query, points[place], float(scores[place]), rank) for rank, place in ordered]
    return pd.DataFrame(rows, columns=["qid", "docno", "score", "rank"])


def frame_to_run(frame: pd.DataFrame) -> Run:
    """Return a table of results as a run; its order is that of the scores."""
    return _grouped(frame, "score", float)


def qrels_to_frame(qrels: Mapping[str, Mapping[str, int]]) -> pd.DataFrame:
    """Return qrels as a table with a row for every judged point.

    Examples
    --------
    >>> qrels_to_frame({"0": {"4": 1}})
      qid docno  label
    0   0     4      1
    """
    rows = [(query, *judged) for query, grades in qrels.items() for judged in grades.items()]
    return pd.DataFrame(rows, columns=["qid", "docno", "label"])


def frame_to_qrels(frame: pd.DataFrame) -> Qrels:
    """Return a table of judged points as qrels."""
    return _grouped(frame, "label", int)


def _grouped(frame: pd.DataFrame, value: str, kind: Any) -> dict[str, dict[str, Any]]:
    missing = {"qid", "docno", value} - set(frame.columns)
    if missing:
        raise InputError(
            f"the table has the columns {', '.join(map(str, frame.columns))}, but must have qid, "
            f"docno and {value}."
        )
    found: dict[str, dict[str, Any]] = {}
    for query, point, number in zip(frame["qid"], frame["docno"], frame[value], strict=True):
        results = found.setdefault(str(query), {})
        if str(point) in results:
            raise InputError(
                f"the table names {str(point)!r} twice under query {str(query)!r}; keep one row."
            )
        if not isinstance(number, Real) or not isfinite(number) or kind(number) != number:
            raise InputError(
                f"the {value} of {str(point)!r} under query {str(query)!r} is {number!r}, but must "
                f"be a {'whole' if kind is int else 'finite'} number."
            )
        results[str(point)] = kind(number)
    return found


class IndexGraph:
    """The neighbours of documents, as ``pyterrier_adaptive.GAR`` asks for them.

    GAR takes it as its ``corpus_graph``; nothing else of that package is needed here. Ids of the
    index are the ``docno`` of the documents, as texts.

    Parameters
    ----------
    index : Index
    k : int
        How many neighbours a document has.
    **options
        What else `Index.query` takes: neighbours are ranked by shape, and those by plain distance
        are ``method="distance"``.

    Examples
    --------
    >>> from rankfold import Index
    >>> index = Index.build([[0.0], [1.0], [3.0], [7.0]], ids=["a", "b", "c", "d"])
    >>> IndexGraph(index, k=2, method="distance").neighbours("b")
    ['a', 'c']
    >>> index.close()
    """

    def __init__(self, index: Index, k: int = 16, **options: Any) -> None:
        self.index, self.k, self.options = index, k, options

    def neighbours(
        self, docid: str, weights: bool = False
    ) -> list[str] | tuple[list[str], Sequence[float]]:
        """Return the neighbours of a document, best first; with ``weights`` their scores, too."""
        results = self.index.query(self._id(docid), top=self.k, **self.options)
        ids = [str(one) for one in results.ids]
        return (ids, results.scores.tolist()) if weights else ids

    def _id(self, docid: str) -> str | int:
        """Return the id that a docno is the text of."""
        number = int(docid) if docid.isdecimal() and str(int(docid)) == docid else docid
        for name in (docid, number):
            if name in self.index:
                return name
        raise InputError(f"there is no point with the id {docid!r}, or with that number.", "docid")
