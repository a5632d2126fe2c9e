"""An index as a retriever of LangChain, and RAN as a re-ranker of its documents."""

from __future__ import annotations

from asyncio import gather, to_thread
from collections.abc import Sequence
from typing import Any, Self

from rankfold.errors import MissingExtraError
from rankfold.index import Index
from rankfold.integrations.documents import check_text_column, passages, rerank
from rankfold.rankers.base import Ranker

try:
    from langchain_core.callbacks import (
        AsyncCallbackManagerForRetrieverRun,
        CallbackManagerForRetrieverRun,
        Callbacks,
    )
    from langchain_core.documents import BaseDocumentCompressor, Document
    from langchain_core.embeddings import Embeddings
    from langchain_core.retrievers import BaseRetriever
    from pydantic import ConfigDict, Field, model_validator
except ModuleNotFoundError:
    raise MissingExtraError("langchain-core", "langchain") from None

SCORE = "relevance_score"
"""Where documents say how good they are, as re-rankers of LangChain have it."""


class IndexRetriever(BaseRetriever):
    """Finds documents in an index.

    Parameters
    ----------
    index : Index
    embeddings : Embeddings
        The model that made the vectors of the index.
    text : str
        The column of the payload that holds the text of documents; the others become metadata.
    top : int
        How many documents.
    options : dict
        What else `Index.query` takes, such as ``{"where": "year > 2000"}``, or
        ``{"fusion": "none"}`` to rank by shape alone.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    index: Index
    embeddings: Embeddings
    text: str = "text"
    top: int = 10
    options: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check(self) -> Self:
        check_text_column(self.index, self.text)
        return self

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        return self._found(self.embeddings.embed_query(query))

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun
    ) -> list[Document]:
        return await to_thread(self._found, await self.embeddings.aembed_query(query))

    def _found(self, vector: list[float]) -> list[Document]:
        found = passages(self.index, vector, self.text, self.top, self.options)
        return [
            Document(id=one.id, page_content=one.text, metadata={**one.facts, SCORE: one.score})
            for one in found
        ]


class RankCompressor(BaseDocumentCompressor):
    """Ranks documents that another retriever has found, and keeps the best.

    The neighbour graph is that of these documents alone, so give it many more than are kept.

    Parameters
    ----------
    embeddings : Embeddings
        Embeds the query and the documents, which do not carry their vectors.
    top : int
        How many documents are kept.
    ranker : Ranker, optional
        ``RAN(metric="cosine")`` by default, in whose scores shape and distance to the query are
        fused; ``RAN(metric="cosine", fusion="none")`` ranks by shape alone.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    embeddings: Embeddings
    top: int = 10
    ranker: Ranker | None = None

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        """Return the best documents, best first, as copies that have their score."""
        if not documents:
            return []
        vectors = self.embeddings.embed_documents([one.page_content for one in documents])
        return self._best(documents, vectors, self.embeddings.embed_query(query))

    async def acompress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        """Return the same, while the event loop goes on: embedded by the model's own coroutines."""
        if not documents:
            return []
        texts = [one.page_content for one in documents]
        vectors, asked = await gather(
            self.embeddings.aembed_documents(texts), self.embeddings.aembed_query(query)
        )
        return await to_thread(self._best, documents, vectors, asked)

    def _best(
        self, documents: Sequence[Document], vectors: list[list[float]], query: list[float]
    ) -> list[Document]:
        places, scores = rerank(vectors, query, self.top, self.ranker)
        return [
            document.model_copy(update={"metadata": {**document.metadata, SCORE: float(score)}})
            for document, score in zip([documents[p] for p in places], scores, strict=True)
        ]
