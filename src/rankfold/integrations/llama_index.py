"""An index as a retriever of LlamaIndex, and RAN as a postprocessor of its nodes."""

from __future__ import annotations

from asyncio import to_thread
from typing import Any

from rankfold.errors import InputError, MissingExtraError
from rankfold.index import Index
from rankfold.integrations.documents import check_text_column, passages, rerank
from rankfold.rankers.base import Ranker

try:
    from llama_index.core.base.embeddings.base import BaseEmbedding
    from llama_index.core.postprocessor.types import BaseNodePostprocessor
    from llama_index.core.retrievers import BaseRetriever
    from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle, TextNode
except ModuleNotFoundError:
    raise MissingExtraError("llama-index-core", "llama-index") from None


class IndexRetriever(BaseRetriever):
    """Finds nodes in an index.

    Parameters
    ----------
    index : Index
    embed_model : BaseEmbedding
        The model that made the vectors of the index.
    text : str
        The column of the payload that holds the text of nodes; the others become metadata.
    top : int
        How many nodes.
    **options
        What else `Index.query` takes, such as ``where="year > 2000"``, or ``fusion="none"`` to
        rank by shape alone.
    """

    def __init__(
        self,
        index: Index,
        embed_model: BaseEmbedding,
        text: str = "text",
        top: int = 10,
        **options: Any,
    ) -> None:
        super().__init__()
        check_text_column(index, text)
        self.index, self.embed_model, self.text, self.top = index, embed_model, text, top
        self.options = options

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return self._found(_query_vector(query_bundle, self.embed_model))

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await to_thread(self._found, await _aquery_vector(query_bundle, self.embed_model))

    def _found(self, vector: list[float]) -> list[NodeWithScore]:
        found = passages(self.index, vector, self.text, self.top, self.options)
        return [
            NodeWithScore(
                node=TextNode(id_=one.id, text=one.text, metadata=one.facts), score=one.score
            )
            for one in found
        ]


class RankPostprocessor(BaseNodePostprocessor):
    """Ranks nodes that a retriever has found, and keeps the best.

    The neighbour graph is that of these nodes alone, so give it many more than are kept. Nodes that
    carry their vectors are not embedded again.

    Parameters
    ----------
    embed_model : BaseEmbedding
        Embeds the query, and nodes without a vector.
    top : int
        How many nodes are kept.
    ranker : Ranker, optional
        ``RAN(metric="cosine")`` by default, in whose scores shape and distance to the query are
        fused; ``RAN(metric="cosine", fusion="none")`` ranks by shape alone.
    """

    embed_model: BaseEmbedding
    top: int = 10
    ranker: Ranker | None = None

    @classmethod
    def class_name(cls) -> str:
        """Return the name under which LlamaIndex knows it."""
        return "RankPostprocessor"

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        query = _required(query_bundle)
        if not nodes:
            return []
        texts = _texts(nodes)
        made = self.embed_model.get_text_embedding_batch(texts) if texts else []
        return self._best(nodes, made, _query_vector(query, self.embed_model))

    async def _apostprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        query = _required(query_bundle)
        if not nodes:
            return []
        texts = _texts(nodes)
        made = await self.embed_model.aget_text_embedding_batch(texts) if texts else []
        vector = await _aquery_vector(query, self.embed_model)
        return await to_thread(self._best, nodes, made, vector)

    def _best(
        self, nodes: list[NodeWithScore], made: list[list[float]], query: list[float]
    ) -> list[NodeWithScore]:
        """Return the best nodes; ``made`` are vectors of those that carry none."""
        rest = iter(made)
        own = [one.node.embedding for one in nodes]
        vectors = [next(rest) if vector is None else vector for vector in own]
        places, scores = rerank(vectors, query, self.top, self.ranker)
        return [
            NodeWithScore(node=nodes[place].node, score=float(score))
            for place, score in zip(places, scores, strict=True)
        ]


def _required(query: QueryBundle | None) -> QueryBundle:
    if query is None:
        raise InputError("nodes are ranked for a query, but none was given: give query_str.")
    return query


def _texts(nodes: list[NodeWithScore]) -> list[str]:
    """Return the texts of the nodes that carry no vector."""
    bare = [one.node for one in nodes if one.node.embedding is None]
    return [node.get_content(metadata_mode=MetadataMode.EMBED) for node in bare]


def _query_vector(query: QueryBundle, model: BaseEmbedding) -> list[float]:
    if query.embedding is not None:
        return query.embedding
    return model.get_agg_embedding_from_queries(query.embedding_strs)


async def _aquery_vector(query: QueryBundle, model: BaseEmbedding) -> list[float]:
    if query.embedding is not None:
        return query.embedding
    return await model.aget_agg_embedding_from_queries(query.embedding_strs)
