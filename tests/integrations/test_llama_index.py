"""LlamaIndex: a retriever over an index, and a postprocessor of nodes."""

import numpy as np
import pytest
from integrations.embedded_digits import Threads, X, build_index, nearest, texts, vector
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from rankfold import RAN, InputError
from rankfold.integrations import llama_index
from rankfold.integrations.llama_index import IndexRetriever, RankPostprocessor

ASKED = 500


class Digits(BaseEmbedding):
    def _get_text_embedding(self, text):
        return vector(text)

    def _get_query_embedding(self, query):
        return vector(query)

    async def _aget_query_embedding(self, query):
        return vector(query)


@pytest.fixture(scope="module")
def index():
    with build_index() as built:
        yield built


def test_the_retriever_gives_what_the_index_answers(index):
    found = IndexRetriever(index, Digits(), top=5).retrieve(f"digit {ASKED}")
    results = index.query(vectors=X[ASKED], top=5)
    assert [one.node.node_id for one in found] == list(results)
    assert [one.node.text for one in found] == results.payload["text"]
    assert [one.node.metadata["label"] for one in found] == results.payload["label"]
    np.testing.assert_array_equal([one.score for one in found], results.scores)


def test_a_query_that_has_its_vector_is_not_embedded(index):
    retriever = IndexRetriever(index, Digits(), top=3, where="label = 3")
    found = retriever.retrieve(QueryBundle("no digit", embedding=X[ASKED].tolist()))
    assert [one.node.metadata["label"] for one in found] == [3, 3, 3]


@pytest.mark.parametrize("fusion", ["none", "reciprocal_rank", 2.5])
def test_the_retriever_passes_the_fusion(index, fusion):
    found = IndexRetriever(index, Digits(), top=5, fusion=fusion).retrieve(f"digit {ASKED}")
    results = index.query(vectors=X[ASKED], top=5, fusion=fusion)
    assert [one.node.node_id for one in found] == list(results)
    scores = [one.score for one in found]
    np.testing.assert_array_equal(scores, results.scores)
    assert scores != index.query(vectors=X[ASKED], top=5).scores.tolist()


def test_the_column_of_texts_is_checked(index):
    with pytest.raises(InputError, match="text is 'label', but must name a column of texts"):
        IndexRetriever(index, Digits(), text="label")


def nodes(n=60, embedded=False):
    near = nearest(ASKED, n)
    vectors = X[near].tolist() if embedded else [None] * n
    return [
        NodeWithScore(
            node=TextNode(text="?" if embedded else text, embedding=one, id_=text), score=0
        )
        for text, one in zip(texts(near), vectors, strict=True)
    ]


@pytest.mark.parametrize("embedded", [False, True])
@pytest.mark.parametrize("fusion", ["auto", "none"])
def test_the_postprocessor_ranks_candidates(embedded, fusion):
    ranker = None if fusion == "auto" else RAN(metric="cosine", fusion=fusion)
    postprocessor = RankPostprocessor(embed_model=Digits(), top=8, ranker=ranker)
    found = postprocessor.postprocess_nodes(nodes(embedded=embedded), query_str=f"digit {ASKED}")
    near = nearest(ASKED, 60)
    fitted = RAN(metric="cosine", fusion=fusion).fit(X[near])
    ranking = fitted.rank(vectors=X[ASKED], top=8)
    assert [one.node.node_id for one in found] == texts(near[ranking.indices])
    np.testing.assert_allclose([one.score for one in found], ranking.scores)


def test_nodes_with_and_without_vectors_mix():
    mixed = nodes()
    mixed[::2] = nodes(embedded=True)[::2]
    postprocessor = RankPostprocessor(embed_model=Digits())
    asked = {"query_str": f"digit {ASKED}"}
    found = postprocessor.postprocess_nodes(mixed, **asked)
    plain = postprocessor.postprocess_nodes(nodes(), **asked)
    assert [one.node.node_id for one in found] == [one.node.node_id for one in plain]


def test_no_nodes_and_no_query():
    postprocessor = RankPostprocessor(embed_model=Digits(), ranker=RAN(5, metric="cosine"))
    assert postprocessor.postprocess_nodes([], query_str="digit 1") == []
    with pytest.raises(InputError, match="give query_str"):
        postprocessor.postprocess_nodes(nodes(3))


class AwaitedDigits(Digits):
    """Can only be awaited."""

    def _get_text_embedding(self, text):
        raise AssertionError("this would hold the event loop up")

    def _get_query_embedding(self, query):
        raise AssertionError("this would hold the event loop up")

    async def _aget_text_embedding(self, text):
        return vector(text)


def pairs(found):
    return [(one.node.node_id, one.score) for one in found]


def test_the_retriever_can_be_awaited(index, monkeypatch):
    threads = Threads(monkeypatch, llama_index, "passages")
    found = threads.run(IndexRetriever(index, AwaitedDigits(), top=5).aretrieve(f"digit {ASKED}"))
    assert pairs(found) == pairs(IndexRetriever(index, Digits(), top=5).retrieve(f"digit {ASKED}"))


@pytest.mark.parametrize("embedded", [False, True])
def test_the_postprocessor_can_be_awaited(embedded, monkeypatch):
    threads, asked = Threads(monkeypatch, llama_index, "rerank"), {"query_str": f"digit {ASKED}"}
    awaited = RankPostprocessor(embed_model=AwaitedDigits(), top=8)
    found = threads.run(awaited.apostprocess_nodes(nodes(embedded=embedded), **asked))
    plain = RankPostprocessor(embed_model=Digits(), top=8)
    assert pairs(found) == pairs(plain.postprocess_nodes(nodes(), **asked))
