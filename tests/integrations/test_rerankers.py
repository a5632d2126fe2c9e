"""The package rerankers: RAN under its contract."""

import numpy as np
import pytest
from integrations.embedded_digits import Threads, X, nearest, texts, vector
from rerankers import Document
from rerankers.models.ranker import BaseRanker

from rankfold import RAN, InputError
from rankfold.integrations import rerankers
from rankfold.integrations.rerankers import ShapeReranker

ASKED = 500
QUERY = f"digit {ASKED}"


def embed(texts):
    return [vector(text) for text in texts]


@pytest.mark.parametrize("ranker", [None, RAN(metric="cosine", fusion="none")], ids=str)
def test_texts_are_ranked(ranker):
    near = nearest(ASKED, 60)
    results = ShapeReranker(embed, ranker).rank(QUERY, texts(near))
    ranking = (ranker or RAN(metric="cosine")).fit(X[near]).rank(vectors=X[ASKED])
    assert [one.document.doc_id for one in results] == ranking.indices.tolist()
    assert [one.text for one in results] == texts(near[ranking.indices])
    np.testing.assert_allclose([one.score for one in results], ranking.scores)
    assert [one.rank for one in results] == list(range(1, 61))
    assert (results.query, results.has_scores) == (QUERY, True)
    assert [one.doc_id for one in results.top_k(3)] == ranking.indices[:3].tolist()


def test_documents_keep_their_ids_and_metadata():
    given = [
        Document(text, doc_id=f"d{place}", metadata={"place": place})
        for place, text in enumerate(texts(nearest(ASKED, 30)))
    ]
    reranker = ShapeReranker(embed)
    results = reranker.rank(QUERY, given)
    plain = reranker.rank(QUERY, [one.text for one in given])
    assert [one.metadata["place"] for one in results] == [one.doc_id for one in plain]
    assert [one.doc_id for one in results] == [f"d{one.doc_id}" for one in plain]
    named = reranker.rank(QUERY, texts(nearest(ASKED, 3)), doc_ids=["a", "b", "c"])
    assert {one.doc_id for one in named} == {"a", "b", "c"}


def test_it_can_be_awaited_and_asked_for_little(monkeypatch):
    reranker, near = ShapeReranker(embed), texts(nearest(ASKED, 40))
    assert isinstance(reranker, BaseRanker)
    plain = reranker.rank(QUERY, near)
    threads = Threads(monkeypatch, rerankers, "rerank")
    awaited = threads.run(reranker.rank_async(QUERY, near))
    assert [one.doc_id for one in awaited] == [one.doc_id for one in plain]
    assert reranker.rank(QUERY, []).results_count() == 0
    assert reranker.rank(QUERY, near[0])[0].text == near[0]
    assert reranker.score(QUERY, near[0]) == reranker.rank(QUERY, near[:1])[0].score
    with pytest.raises(InputError, match="ranker"):
        ShapeReranker(embed, "ran")
