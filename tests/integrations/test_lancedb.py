"""LanceDB: a reranker of what its searches find."""

import lancedb
import numpy as np
import pyarrow as pa
import pytest
from integrations.embedded_digits import LABELS, N_KNOWN, X, texts, vector
from lancedb.index import FTS

from rankfold import RAN, InputError
from rankfold.integrations.lancedb import RankReranker

ASKED = 500


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    database = lancedb.connect(tmp_path_factory.mktemp("lance"))
    rows = [
        {"vector": X[row], "text": f"{text} kind{LABELS[row]}", "row": row}
        for row, text in enumerate(texts(range(N_KNOWN)))
    ]
    table = database.create_table("digits", rows)
    table.create_index("text", config=FTS())
    return table


def search(table, metric="l2", limit=60):
    return table.search(X[ASKED]).distance_type(metric).limit(limit)


@pytest.mark.parametrize("fusion", ["auto", "none", "reciprocal_rank"])
@pytest.mark.parametrize(("metric", "ours"), [("l2", "euclidean"), ("cosine", "cosine")])
def test_rows_of_a_search_by_vector_are_ranked(table, metric, ours, fusion):
    near = search(table, metric).to_arrow()["row"].to_numpy()
    ranking = RAN(metric=ours, fusion=fusion).fit(X[near]).rank(vectors=X[ASKED])
    reranker = RankReranker(metric, ranker=None if fusion == "auto" else RAN(fusion=fusion))
    found = search(table, metric).rerank(reranker, query_string="?").to_arrow()
    assert "_distance" not in found.column_names
    np.testing.assert_array_equal(found["row"].to_numpy()[:10], near[ranking.indices][:10])
    np.testing.assert_allclose(found["_relevance_score"].to_numpy(), ranking.scores, atol=1e-5)


def test_distances_are_kept_where_all_scores_are_asked_for(table):
    reranker = RankReranker(return_score="all")
    found = search(table).rerank(reranker, query_string="?").to_arrow()
    rows, distances = found["row"].to_numpy(), found["_distance"].to_numpy()
    np.testing.assert_allclose(distances, ((X[rows] - X[ASKED]) ** 2).sum(axis=1), rtol=1e-5)


def embed(text):
    return vector(f"digit {ASKED}")


KIND = int(LABELS[ASKED])
OF_KIND = np.flatnonzero(LABELS[:N_KNOWN] == KIND)


@pytest.mark.parametrize("score", ["relevance", "all"])
def test_rows_of_a_hybrid_search_are_those_of_both(table, score):
    reranker = RankReranker(embed=embed, ranker=RAN(10), return_score=score)
    asked = table.search(query_type="hybrid").vector(X[ASKED]).text(f"kind{KIND}").limit(60)
    found = asked.rerank(reranker).to_arrow()
    both = np.union1d(search(table).to_arrow()["row"].to_numpy(), OF_KIND)
    ranking = RAN(10).fit(X[both]).rank(vectors=X[ASKED], top=60)
    np.testing.assert_array_equal(found["row"].to_numpy(), both[ranking.indices])
    np.testing.assert_allclose(found["_relevance_score"].to_numpy(), ranking.scores, rtol=1e-5)
    assert ("_distance" in found.column_names) == (score == "all")


def test_rows_of_a_search_by_text_are_ranked_too(table):
    asked = table.search(f"kind{KIND}", query_type="fts").limit(60)
    found = asked.rerank(RankReranker(embed=embed)).to_arrow()
    ranking = RAN().fit(X[OF_KIND]).rank(vectors=X[ASKED])
    np.testing.assert_array_equal(found["row"].to_numpy(), OF_KIND[ranking.indices])


def test_nothing_found_is_nothing_ranked(table):
    found = search(table).where("row < 0").rerank(RankReranker(), query_string="?").to_arrow()
    assert len(found) == 0


def test_what_is_missing_is_named(table):
    with pytest.raises(InputError, match=r"RankReranker\(embed=...\)"):
        table.search(f"kind{KIND}", query_type="fts").rerank(RankReranker()).to_arrow()
    bare = search(table).select(["row", "_distance"])
    with pytest.raises(InputError, match="row, _distance, but not 'vector'"):
        bare.rerank(RankReranker(), query_string="?").to_arrow()
    with pytest.raises(InputError, match="metric is 'dot'"):
        RankReranker("dot")
    with pytest.raises(InputError, match="ranker is 'ran', but must be a ranker"):
        RankReranker(ranker="ran")


def test_rows_without_a_vector_are_told_of(tmp_path):
    rows = [{"vector": X[row], "text": "one"} for row in range(20)]
    kind = pa.schema([("vector", pa.list_(pa.float32(), 64)), ("text", pa.string())])
    table = lancedb.connect(tmp_path).create_table("some", schema=kind)
    table.add([*rows, {"vector": None, "text": "one"}])
    table.create_index("text", config=FTS())
    asked = table.search("one", query_type="fts").limit(60)
    with pytest.raises(InputError, match=r"1 of the 21 rows .* where\('vector IS NOT NULL'\)"):
        asked.rerank(RankReranker(embed=embed)).to_arrow()
    kept = asked.where("vector IS NOT NULL").rerank(RankReranker(embed=embed)).to_arrow()
    assert len(kept) == 20
