"""An index as a retriever of Haystack, and RAN as a ranker of its documents."""

from __future__ import annotations

from asyncio import to_thread
from dataclasses import replace
from typing import Any

from rankfold.errors import InputError, MissingExtraError
from rankfold.index import Index
from rankfold.integrations.documents import check_ranker, check_text_column, passages, rerank
from rankfold.rankers.base import Ranker

try:
    from haystack import Document, component
except ModuleNotFoundError:
    raise MissingExtraError("haystack-ai", "haystack") from None


@component
class IndexRetriever:
    """Finds documents in an index; the vector of a query comes from an embedder of the pipeline.

    Parameters
    ----------
    index : Index
    text : str
        The column of the payload that holds the text of documents; the others become ``meta``.
    top_k : int
        How many documents.
    **options
        What else `Index.query` takes, such as ``where="year > 2000"``, or ``fusion="none"`` to
        rank by shape alone.
    """

    def __init__(self, index: Index, text: str = "text", top_k: int = 10, **options: Any) -> None:
        check_text_column(index, text)
        self.index, self.text, self.top_k, self.options = index, text, top_k, options

    @component.output_types(documents=list[Document])
    def run(self, query_embedding: list[float], top_k: int | None = None) -> dict[str, Any]:
        """Return the best documents, best first."""
        top = self.top_k if top_k is None else top_k
        found = passages(self.index, query_embedding, self.text, top, self.options)
        documents = [
            Document(id=one.id, content=one.text, meta=one.facts, score=one.score) for one in found
        ]
        return {"documents": documents}

    @component.output_types(documents=list[Document])
    async def run_async(
        self, query_embedding: list[float], top_k: int | None = None
    ) -> dict[str, Any]:
        """Return the same, while the event loop goes on."""
        return await to_thread(self.run, query_embedding, top_k)


@component
class ShapeRanker:
    """Ranks documents that a retriever has found, and keeps the best.

    The neighbour graph is that of these documents alone, so give it many more than are kept. They
    need to carry their vectors, as those of a document embedder or of a retriever with
    ``return_embedding=True`` do.

    Parameters
    ----------
    top_k : int
        How many documents are kept.
    ranker : Ranker, optional
        ``RAN(metric="cosine")`` by default, in whose scores shape and distance to the query are
        fused; ``RAN(metric="cosine", fusion="none")`` ranks by shape alone.
    """

    def __init__(self, top_k: int = 10, ranker: Ranker | None = None) -> None:
        check_ranker(ranker)
        self.top_k, self.ranker = top_k, ranker

    @component.output_types(documents=list[Document])
    def run(
        self, query_embedding: list[float], documents: list[Document], top_k: int | None = None
    ) -> dict[str, Any]:
        """Return copies of the best documents, best first, with their scores."""
        bare = [one.id for one in documents if one.embedding is None]
        if bare:
            raise InputError(
                f"{len(bare)} of {len(documents)} documents have no vector, such as {bare[0]!r}; "
                "put a document embedder before, or let the retriever return embeddings.",
                "documents",
            )
        top = self.top_k if top_k is None else top_k
        vectors = [one.embedding for one in documents]
        places, scores = rerank(vectors, query_embedding, top, self.ranker)
        best = [
            replace(documents[place], score=float(score))
            for place, score in zip(places, scores, strict=True)
        ]
        return {"documents": best}

    @component.output_types(documents=list[Document])
    async def run_async(
        self, query_embedding: list[float], documents: list[Document], top_k: int | None = None
    ) -> dict[str, Any]:
        """Return the same, while the event loop goes on."""
        return await to_thread(self.run, query_embedding, documents, top_k)
