"""LangChain: a retriever over an index, and a re-ranker of documents."""

import numpy as np
import pytest
from integrations.embedded_digits import Threads, X, build_index, nearest, texts, vector
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.runnables import RunnableLambda

from rankfold import RAN, Distance, InputError
from rankfold.integrations import langchain
from rankfold.integrations.langchain import IndexRetriever, RankCompressor

ASKED = 500


class Digits(Embeddings):
    def embed_documents(self, texts):
        return [vector(text) for text in texts]

    def embed_query(self, text):
        return vector(text)


@pytest.fixture(scope="module")
def index():
    with build_index() as built:
        yield built


def test_the_retriever_gives_what_the_index_answers(index):
    retriever = IndexRetriever(index=index, embeddings=Digits(), top=5)
    found = retriever.invoke(f"digit {ASKED}")
    results = index.query(vectors=X[ASKED], top=5)
    assert [one.id for one in found] == list(results)
    assert [one.page_content for one in found] == results.payload["text"]
    assert [one.metadata["label"] for one in found] == results.payload["label"]
    scores = [one.metadata["relevance_score"] for one in found]
    np.testing.assert_array_equal(scores, results.scores)


def test_the_retriever_passes_options_and_joins_a_chain(index):
    options = {"where": "label = 3", "method": "distance"}
    retriever = IndexRetriever(index=index, embeddings=Digits(), top=4, options=options)
    chain = retriever | RunnableLambda(lambda found: [one.metadata["label"] for one in found])
    assert chain.invoke(f"digit {ASKED}") == [3, 3, 3, 3]


@pytest.mark.parametrize("fusion", ["none", "reciprocal_rank", 2.5])
def test_the_retriever_passes_the_fusion(index, fusion):
    retriever = IndexRetriever(index=index, embeddings=Digits(), top=5, options={"fusion": fusion})
    found = retriever.invoke(f"digit {ASKED}")
    results = index.query(vectors=X[ASKED], top=5, fusion=fusion)
    assert [one.id for one in found] == list(results)
    scores = [one.metadata["relevance_score"] for one in found]
    np.testing.assert_array_equal(scores, results.scores)
    assert scores != index.query(vectors=X[ASKED], top=5).scores.tolist()


@pytest.mark.parametrize("column", ["nothing", "label"])
def test_the_column_of_texts_is_checked(index, column):
    with pytest.raises(ValueError, match=r"must name a column of texts .* 'label' \(integer\)"):
        IndexRetriever(index=index, embeddings=Digits(), text=column)


def documents(n=60):
    return [Document(page_content=text, metadata={"a": 1}) for text in texts(nearest(ASKED, n))]


@pytest.mark.parametrize("ranker", [None, RAN(metric="cosine", fusion="none")], ids=str)
def test_the_compressor_ranks_candidates(ranker):
    given = documents()
    compressor = RankCompressor(embeddings=Digits(), top=8, ranker=ranker)
    found = compressor.compress_documents(given, f"digit {ASKED}")
    near = nearest(ASKED, 60)
    fusion = "auto" if ranker is None else "none"
    fitted = RAN(metric="cosine", fusion=fusion).fit(X[near])
    ranking = fitted.rank(vectors=X[ASKED], top=8)
    assert [one.page_content for one in found] == texts(near[ranking.indices])
    scores = [one.metadata["relevance_score"] for one in found]
    np.testing.assert_allclose(scores, ranking.scores)
    assert all(one.metadata == {"a": 1} for one in given)  # they are not changed


def test_the_compressor_takes_other_rankers_and_few_documents():
    plain = RankCompressor(embeddings=Digits(), top=60, ranker=Distance(metric="cosine"))
    given = documents()
    found = plain.compress_documents(given[::-1], f"digit {ASKED}")
    assert [one.page_content for one in found] == [one.page_content for one in given]
    compressor = RankCompressor(embeddings=Digits())
    for n in (0, 1, 2, 3):
        assert len(compressor.compress_documents(given[:n], f"digit {ASKED}")) == n


def test_what_is_no_ranker_is_refused():
    with pytest.raises(ValueError, match="ranker"):
        RankCompressor(embeddings=Digits(), ranker="ran")
    with pytest.raises(InputError, match="top is 0"):
        RankCompressor(embeddings=Digits(), top=0).compress_documents(documents(), "digit 1")


class AwaitedDigits(Digits):
    """Counts what was awaited; nothing else may be asked for."""

    def __init__(self):
        self.n_awaited = 0

    def embed_documents(self, texts):
        raise AssertionError("this would hold the event loop up")

    def embed_query(self, text):
        raise AssertionError("this would hold the event loop up")

    async def aembed_documents(self, texts):
        self.n_awaited += 1
        return [vector(text) for text in texts]

    async def aembed_query(self, text):
        self.n_awaited += 1
        return vector(text)


def test_the_retriever_can_be_awaited(index, monkeypatch):
    model, asked = AwaitedDigits(), f"digit {ASKED}"
    threads = Threads(monkeypatch, langchain, "passages")
    retriever = IndexRetriever(index=index, embeddings=model, top=5)
    found = threads.run(retriever.ainvoke(asked))
    assert model.n_awaited == 1
    assert found == IndexRetriever(index=index, embeddings=Digits(), top=5).invoke(asked)


def test_the_compressor_can_be_awaited(monkeypatch):
    model, asked = AwaitedDigits(), f"digit {ASKED}"
    threads = Threads(monkeypatch, langchain, "rerank")
    compressor = RankCompressor(embeddings=model, top=8)
    found = threads.run(compressor.acompress_documents(documents(), asked))
    assert model.n_awaited == 2
    plain = RankCompressor(embeddings=Digits(), top=8)
    assert found == plain.compress_documents(documents(), asked)
