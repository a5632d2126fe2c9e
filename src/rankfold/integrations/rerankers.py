"""RAN as a ranker of the package rerankers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rankfold.errors import MissingExtraError
from rankfold.integrations.documents import check_ranker, rerank
from rankfold.rankers.base import Ranker

try:
    from rerankers.documents import Document
    from rerankers.models.ranker import BaseRanker
    from rerankers.results import RankedResults, Result
    from rerankers.utils import prep_docs
except ModuleNotFoundError:
    raise MissingExtraError("rerankers", "rerankers") from None


class ShapeReranker(BaseRanker):
    """Ranks texts by the shape that their vectors have among each other.

    The neighbour graph is that of these texts alone, so give it many more than you keep.
    ``rank_async`` does it in a thread.

    Parameters
    ----------
    embed : callable
        Returns a vector for each text of a list; the query is embedded by it, too.
    ranker : Ranker, optional
        ``RAN(metric="cosine")`` by default, in whose scores shape and distance to the query are
        fused; ``RAN(metric="cosine", fusion="none")`` ranks by shape alone.
    """

    def __init__(self, embed: Callable[[list[str]], Any], ranker: Ranker | None = None) -> None:
        check_ranker(ranker)
        self.embed, self.ranker = embed, ranker

    def score(self, query: str, doc: str) -> float:
        """Return the score of a single text, which has no shape: that of its distance alone."""
        return float(self.rank(query, [doc])[0].score)

    def rank(
        self,
        query: str,
        docs: str | Document | Sequence[str] | Sequence[Document],
        doc_ids: Sequence[str] | Sequence[int] | None = None,
        metadata: Sequence[dict[str, Any]] | None = None,
    ) -> RankedResults:
        """Return all texts, best first; their ranks count from 1."""
        given = docs if isinstance(docs, str | Document) else list(docs)
        documents = prep_docs(given, doc_ids, metadata) if given else []
        if not documents:
            return RankedResults(results=[], query=query, has_scores=True)
        *vectors, asked = self.embed([*(one.text for one in documents), query])
        places, scores = rerank(vectors, asked, ranker=self.ranker)
        results = [
            Result(document=documents[place], score=float(score), rank=rank)
            for rank, (place, score) in enumerate(zip(places, scores, strict=True), 1)
        ]
        return RankedResults(results=results, query=query, has_scores=True)
