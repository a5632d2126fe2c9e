"""GAR of PyTerrier with an index as its corpus graph; its package needs torch."""

import pandas as pd
import pytest
from integrations.embedded_digits import X, build_index

from rankfold import Index, InputError
from rankfold.integrations.pyterrier import IndexGraph

ASKED = 500


@pytest.fixture(scope="module")
def index():
    with build_index() as built:
        yield built


def test_neighbours_are_those_of_the_index(index):
    graph = IndexGraph(index, k=5)
    results = index.query("name 7", top=5)
    assert graph.neighbours("name 7") == results.ids
    assert graph.neighbours("name 7", weights=True) == (results.ids, results.scores.tolist())
    plain = IndexGraph(index, k=5, method="distance")
    assert plain.neighbours("name 7") == index.query("name 7", top=5, method="distance").ids


def test_numbers_are_texts_there():
    with Index.build(X[:50], metric="cosine") as numbered:
        found = IndexGraph(numbered, k=3).neighbours("7")
        assert found == [str(one) for one in numbered.query(7, top=3).ids]
        for name in ("07", "50", "name 7", ""):
            with pytest.raises(InputError, match="there is no point with the id"):
                IndexGraph(numbered).neighbours(name)


def test_adaptive_re_ranking_finds_what_the_first_search_has_not(index):
    adaptive = pytest.importorskip("pyterrier_adaptive", exc_type=ImportError)
    pt = pytest.importorskip("pyterrier")
    rows = {f"name {row}": row for row in range(400)}

    def score(frame):
        return frame.assign(score=[float(X[rows[one]] @ X[ASKED]) for one in frame["docno"]])

    first = index.query(vectors=X[ASKED], top=60, method="distance").ids[40:]
    given = pd.DataFrame({"qid": "1", "query": "digit", "docno": first, "score": 1.0, "rank": 0})
    gar = adaptive.GAR(
        pt.apply.generic(score), IndexGraph(index, k=8), num_results=60, batch_size=10
    )
    found = gar(given)
    beyond = found[found["iteration"] % 2 == 1]
    assert len(found) == 60
    assert set(beyond["docno"]) - set(first)
    assert found["score"].max() > score(given)["score"].max()
