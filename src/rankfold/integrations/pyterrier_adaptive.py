"""An index as the corpus graph of PyTerrier's adaptive re-ranking (GAR)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rankfold.errors import InputError
from rankfold.index import Index


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
