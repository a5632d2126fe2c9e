"""Search collections: unseen questions, graded judgements, measured as trec_eval does."""

import sys
from dataclasses import replace
from pathlib import Path

import ir_measures
import numpy as np
import pytest
from ir_measures import AP, R, nDCG

from rankfold import RAN, Dataset, Distance, InputError
from rankfold.evaluation import SearchCollection, evaluate, make_run

RANKERS = {"plain": Distance(), "ran": RAN(n_neighbors=5)}
IDS = [f"d{row}" for row in range(120)]
ASKED = [f"q{row}" for row in range(25)]


def collection(metric="euclidean", seed=0):
    """Return documents around three centres, questions near them, and grades from 0 to 2."""
    rng = np.random.default_rng(seed)
    kinds, wanted = rng.integers(3, size=120), rng.integers(3, size=25)
    centres = rng.normal(size=(3, 8))
    X = centres[kinds] + 0.7 * rng.normal(size=(120, 8))
    queries = centres[wanted] + 0.7 * rng.normal(size=(25, 8))
    qrels = {
        query: {
            IDS[row]: int(grade)
            for row, grade in enumerate(rng.integers(3, size=120))
            if kinds[row] == wanted[place] and rng.random() < 0.7
        }
        for place, query in enumerate(ASKED)
    }
    return SearchCollection("notes", X, queries, qrels, metric, IDS, ASKED)


def runs(collection, ranker):
    """Return the run that a ranker makes, with the names of the collection."""
    ranker.fit(np.asarray(collection.X))
    rankings = [ranker.rank(vectors=vector) for vector in collection.queries]
    run = make_run(range(len(rankings)), rankings)
    return {
        collection.query_ids[int(query)]: {
            collection.ids[int(point)]: score for point, score in results.items()
        }
        for query, results in run.items()
    }


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_measured_as_trec_eval_does(metric):
    notes = collection(metric)
    found = evaluate(RANKERS, notes)
    assert found.metrics == ("ndcg@10", "average_precision", "recall@100")
    assert found.queries == tuple(ASKED)
    for name, ranker in (("plain", Distance(metric)), ("ran", RAN(5, metric=metric))):
        theirs = ir_measures.calc_aggregate(
            [nDCG @ 10, AP, R @ 100], notes.qrels, runs(notes, ranker)
        )
        ours = [found.mean(name, metric) for metric in found.metrics]
        expected = [theirs[nDCG @ 10], theirs[AP], theirs[R @ 100]]
        np.testing.assert_allclose(ours, expected, atol=1e-9)
    for metric_name in found.metrics:
        np.testing.assert_array_equal(found.plain[metric_name], found.values["plain"][metric_name])


def test_average_precision_up_to_a_depth():
    notes = collection()
    found = evaluate(RANKERS, notes, ["average_precision@5", "average_precision@120"])
    whole = evaluate(RANKERS, notes, "average_precision")
    theirs = ir_measures.calc_aggregate([AP @ 5], notes.qrels, runs(notes, Distance()))
    assert found.mean("plain", "average_precision@5") == pytest.approx(theirs[AP @ 5])
    np.testing.assert_array_equal(
        found.values["ran"]["average_precision@120"], whole.values["ran"]["average_precision"]
    )


def test_what_is_left_out_is_said():
    notes = collection("cosine")
    X, queries = notes.X.copy(), notes.queries.copy()
    relevant = next(doc for doc, grade in notes.qrels["q3"].items() if grade > 0)
    X[IDS.index(relevant)] = 0.0
    queries[4] = 0.0
    qrels = {**notes.qrels, "q0": {}, "q1": {"d1": 0}, "q99": {"d1": 1}}
    del qrels["q2"]
    found = evaluate(RANKERS, replace(notes, X=X, queries=queries, qrels=qrels))
    assert found.queries == tuple(query for query in ASKED if query not in ("q0", "q1", "q2", "q4"))
    text = " ".join(found.to_text().split())
    assert "Documents left out because their vectors are all zeros: 1." in text
    assert "Queries left out because no document is relevant to them: 3." in text
    assert "Queries left out because their vectors are all zeros: 1." in text
    assert "Queries of the judgements that have no vector: 1." in text
    assert "Relevant documents that are not there and count as not found: " in text
    # As for trec_eval, what cannot be found is still relevant.
    one = evaluate(RANKERS, replace(notes, X=X), "recall@100", queries=["q3"])
    assert one.values["plain"]["recall@100"][0] < 1


def test_some_of_the_queries():
    notes = collection()
    drawn = evaluate(RANKERS, notes, queries=6)
    assert len(drawn.queries) == 6
    assert "Queries drawn at random: 6 of 25 (seed 0)." in drawn.to_markdown()
    named = evaluate(RANKERS, notes, queries=["q7", "q3"])
    assert named.queries == ("q7", "q3")
    whole = evaluate(RANKERS, notes, queries="all")
    np.testing.assert_array_equal(
        named.values["ran"]["ndcg@10"], whole.values["ran"]["ndcg@10"][[7, 3]]
    )


def test_names_are_row_numbers_where_none_are_given():
    notes = collection()
    renamed = {
        int(query[1:]): {int(doc[1:]): grade for doc, grade in grades.items()}
        for query, grades in notes.qrels.items()
    }
    plain = SearchCollection("notes", notes.X, notes.queries, renamed)
    assert evaluate(RANKERS, plain).to_csv() == evaluate(RANKERS, notes).to_csv()


@pytest.mark.slow  # test_evaluate.py shows it of labels
def test_several_processes_give_the_same():
    notes = collection()
    assert evaluate(RANKERS, notes, n_jobs=2).to_csv() == evaluate(RANKERS, notes).to_csv()


NOTES = collection()
BAD = {
    "narrow": ({"queries": NOTES.queries[:, :3]}, "have 3 numbers, but the documents have 8"),
    "few ids": ({"ids": IDS[1:]}, "ids of 'notes' are 119, but there are 120 vectors"),
    "ids twice": ({"ids": [*IDS[1:], "d7"]}, "ids of 'notes' holds 'd7' more than once"),
    "other queries": ({"query_ids": range(25)}, "no query of 'notes' has a relevant document"),
    "other documents": ({"ids": range(120)}, "none of the relevant documents is there"),
    "no qrels": ({"qrels": ["q1"]}, "qrels is list, but must map queries"),
    "grade": ({"qrels": {"q1": {"d1": 0.5}}}, "is 0.5, but grades are whole numbers"),
    "nan": ({"X": np.where(NOTES.X > 1, np.nan, NOTES.X)}, "holds NaN or infinity"),
    "metric": ({"metric": "dot"}, "collection.metric is 'dot'"),
}


@pytest.mark.parametrize(("change", "message"), BAD.values(), ids=BAD)
def test_bad_collections(change, message):
    with pytest.raises(InputError, match=message):
        evaluate(RANKERS, replace(NOTES, **change))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"include_query": True}, "are not among its documents"),
        ({"queries": 26}, "queries is 26, but only 25 queries have a relevant document"),
        ({"queries": ["q1", "x"]}, "queries holds 'x'"),
        ({"queries": []}, "queries holds none"),
        ({"queries": ["q1", "q1"]}, "queries holds 'q1' more than once"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(InputError, match=message):
        evaluate(RANKERS, NOTES, **options)


def test_many_documents_need_no_complete_ranking():
    rng = np.random.default_rng(0)
    X, queries = rng.normal(size=(5_001, 3)), rng.normal(size=(3, 3))
    qrels = {str(row): {str(row): 1} for row in range(3)}
    found = evaluate({"plain": Distance()}, SearchCollection("many", X, queries, qrels))
    assert found.metrics == ("ndcg@10", "average_precision@1000", "recall@100")


def test_many_labelled_points_are_asked_by_drawing():
    rng = np.random.default_rng(0)
    labels = np.arange(5_001) % 3
    data = Dataset("many", rng.normal(size=(5_001, 2)) + labels[:, None], labels)
    asked = []

    class Spy(Distance):
        def rank_many(self, queries, *, top=None, **options):
            asked.append((len(queries), top))
            return super().rank_many(queries, top=top, **options)

    found = evaluate({"plain": Spy()}, data)
    assert found.metrics == ("precision@1", "precision@10", "precision@50", "ndcg@10")
    assert sum(number for number, _ in asked) == len(found.queries) == 500
    assert {top for _, top in asked} == {100}
    assert "Queries drawn at random: 500 of 5,001 (seed 0)." in found.to_text()
    every = evaluate({"plain": Distance()}, data, "precision@1", queries="all")
    assert len(every.queries) == 5_001


def test_points_without_a_label():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    labels = np.array(["a", "b", None] * 20, dtype=object)
    found = evaluate(RANKERS, Dataset("some", X, labels), "r_precision")
    assert found.queries == tuple(row for row in range(60) if row % 3 != 2)
    assert "neither queries nor relevant: 20." in found.to_text()
    ids = Distance().fit(X).rank(0).indices[:19]
    assert found.values["plain"]["r_precision"][0] == np.mean(ids % 3 == 0)
    numbers = np.array([0.0, 1.0, np.nan] * 20)
    again = evaluate(RANKERS, Dataset("some", X, numbers), "r_precision")
    assert again.to_csv() == found.to_csv()


@pytest.mark.parametrize(
    ("name", "model", "expected"),
    [("med", "wl256", 50.4), ("med", "minilm384", 73.0), ("cranfield", "wl256", 26.8)],
)
def test_classic_collections(folder, name, model, expected, monkeypatch):
    """Mean average precision of cosine as it was measured with other code."""
    if not (folder / f"ir_{name}.json.gz").is_file():
        pytest.skip("the collection is not at hand")
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    monkeypatch.delitem(sys.modules, "kit", raising=False)
    from kit.collections import load

    found = evaluate({"plain": Distance()}, load(name, model, folder))
    assert 100 * found.mean("plain", "average_precision") == pytest.approx(expected, abs=0.1)
