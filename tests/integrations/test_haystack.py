"""Haystack: a retriever over an index and a ranker of documents, in a pipeline."""

import asyncio

import numpy as np
import pytest
from haystack import Document, Pipeline
from integrations.embedded_digits import Threads, X, build_index, nearest, texts

from rankfold import RAN, InputError
from rankfold.integrations import haystack
from rankfold.integrations.haystack import IndexRetriever, ShapeRanker

ASKED = 500
VECTOR = X[ASKED].tolist()


@pytest.fixture(scope="module")
def index():
    with build_index() as built:
        yield built


def documents(n=60):
    near = nearest(ASKED, n)
    pairs = zip(texts(near), X[near].tolist(), strict=True)
    return [Document(id=text, content=text, embedding=one, meta={"a": 1}) for text, one in pairs]


def test_the_retriever_gives_what_the_index_answers(index):
    found = IndexRetriever(index, top_k=5).run(VECTOR)["documents"]
    results = index.query(vectors=X[ASKED], top=5)
    assert [one.id for one in found] == list(results)
    assert [one.content for one in found] == results.payload["text"]
    assert [one.meta["label"] for one in found] == results.payload["label"]
    np.testing.assert_array_equal([one.score for one in found], results.scores)
    filtered = IndexRetriever(index, where="label = 3").run(VECTOR, top_k=4)["documents"]
    assert [one.meta["label"] for one in filtered] == [3, 3, 3, 3]


def test_the_column_of_texts_is_checked(index):
    with pytest.raises(InputError, match="text is 'label', but must name a column of texts"):
        IndexRetriever(index, text="label")


@pytest.mark.parametrize("fusion", ["auto", "none"])
def test_the_ranker_ranks_candidates(fusion):
    ranker, given = RAN(metric="cosine", fusion=fusion), documents()
    found = ShapeRanker(top_k=8, ranker=ranker).run(VECTOR, given)["documents"]
    near = nearest(ASKED, 60)
    ranking = ranker.fit(X[near]).rank(vectors=X[ASKED], top=8)
    assert [one.content for one in found] == texts(near[ranking.indices])
    np.testing.assert_allclose([one.score for one in found], ranking.scores)
    assert all(one.meta == {"a": 1} for one in found)
    assert all(one.score is None for one in given)  # they are not changed


def test_both_in_a_pipeline(index):
    pipeline = Pipeline()
    pipeline.add_component("retriever", IndexRetriever(index, top_k=5))
    found = pipeline.run({"retriever": {"query_embedding": VECTOR}})["retriever"]["documents"]
    assert [one.id for one in found] == index.query(vectors=X[ASKED], top=5).ids
    pipeline = Pipeline()
    pipeline.add_component("ranker", ShapeRanker(top_k=3))
    asked = {"query_embedding": VECTOR, "documents": documents()}
    found = pipeline.run({"ranker": asked})["ranker"]["documents"]
    assert found == ShapeRanker().run(VECTOR, documents(), top_k=3)["documents"]


def test_both_can_be_awaited(index, monkeypatch):
    retriever, ranker = IndexRetriever(index, top_k=5), ShapeRanker(top_k=8)
    threads = Threads(monkeypatch, haystack, "passages")
    assert threads.run(retriever.run_async(VECTOR)) == retriever.run(VECTOR)
    threads = Threads(monkeypatch, haystack, "rerank")
    assert threads.run(ranker.run_async(VECTOR, documents())) == ranker.run(VECTOR, documents())


def test_what_cannot_be_ranked():
    with pytest.raises(InputError, match="1 of 2 documents have no vector, such as 'bare'"):
        ShapeRanker().run(VECTOR, [*documents(1), Document(id="bare", content="?")])
    with pytest.raises(InputError, match="ranker"):
        ShapeRanker(ranker="ran")
    assert ShapeRanker().run(VECTOR, [])["documents"] == []
    assert len(asyncio.run(ShapeRanker().run_async(VECTOR, documents(2)))["documents"]) == 2
