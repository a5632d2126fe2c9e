"""What the engine with FAISS promises beyond the contract."""

import _thread
import copy
import subprocess
import sys
import threading

import numpy as np
import pytest
import reference
from ran_cases import RAN

from rankfold import Distance, ExactEngine, FaissEngine, InputError
from rankfold.datasets.synthetic import sheets
from rankfold.neighbors import DynamicEngine, choose_engine, exact, faiss_engine, faiss_indexes
from rankfold.neighbors.faiss_indexes import GraphIndex
from rankfold.neighbors.kernels import refine, sq_distances_to

N = 4000


def clustered(n=N, seed=0):
    return sheets(n, n_sheets=4, seed=seed).X


def unstructured(n=N, n_features=24):
    return np.random.default_rng(0).normal(size=(n, n_features)).astype(np.float32)


def search_for_ever(engine):
    while True:
        engine.rows(np.arange(N), 5)


def independent_recall(X, lists, width, metric="euclidean"):
    true = ExactEngine(X, metric).rows(np.arange(len(X)), width).sq_distances[:, -1:]
    return float((lists.sq_distances <= true * (1 + 1e-6)).mean())


@pytest.mark.one_in(5)
@pytest.mark.parametrize("index", ["flat", "ivf", "hnsw"])
@pytest.mark.parametrize("make", [clustered, unstructured])
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_recall_is_what_was_asked_and_what_is_said(index, make, metric):
    X = make()
    engine = FaissEngine(X, metric, recall=0.95, index=index)
    assert engine.recall_ >= 0.95
    lists = engine.rows(np.arange(N), 20)
    assert independent_recall(X, lists, 20, metric) >= engine.recall_ - 0.02
    assert (lists.indices != np.arange(N)[:, None]).all()
    assert (np.diff(lists.sq_distances, axis=1) >= 0).all()


def test_longer_lists_are_measured_again():
    X = clustered()
    engine = FaissEngine(X, recall=0.999, index="ivf")
    lists = engine.rows(np.arange(N), 150)
    assert engine.recall_ >= 0.999
    assert independent_recall(X, lists, 150) >= 0.995


def test_an_inverted_file_is_kept_where_it_pays():
    assert FaissEngine(clustered(), recall=0.9, index="ivf").index_ == "ivf"


def test_unstructured_data_falls_back_to_all_points():
    X = unstructured()
    engine = FaissEngine(X, index="ivf")
    assert engine.index_ == "flat"
    assert engine.recall_ == 1.0
    exact = ExactEngine(X).rows(np.arange(N), 10)
    np.testing.assert_array_equal(engine.rows(np.arange(N), 10).indices, exact.indices)


def test_auto_goes_by_the_number_of_points_and_by_what_an_inverted_file_scans(monkeypatch):
    monkeypatch.setattr(faiss_engine, "FLAT_LIMIT", N)
    assert FaissEngine(clustered(N), recall=0.9).index_ == "flat"
    assert FaissEngine(clustered(N + 4), recall=0.9).index_ == "ivf"
    assert FaissEngine(clustered(N + 4), recall=1).index_ == "flat"
    monkeypatch.setattr(faiss_engine, "MOST_SCANNED", 10)
    engine = FaissEngine(unstructured(N + 4), recall=0.9)
    assert engine.index_ == "hnsw"
    assert list(engine._indexes) == ["hnsw"]


@pytest.mark.parametrize("index", ["auto", "ivf"])
def test_all_pairs_are_compared_at_length_only_where_that_is_asked_for(monkeypatch, index):
    monkeypatch.setattr(faiss_engine, "FLAT_LIMIT", 0)
    monkeypatch.setattr(faiss_engine, "MOST_PAIRS", 0)
    monkeypatch.setattr(GraphIndex, "efforts", (16,))
    monkeypatch.setattr(faiss_indexes, "MOST_CELLS", 0.01)
    X = unstructured()
    with pytest.warns(UserWarning, match="would take about [0-9]+ s; give recall=1") as told:
        engine = FaissEngine(X, recall=0.99999, index=index)
    assert engine.index_ != "flat"
    assert f"a recall of {engine.recall_:.3f}, not of 0.99999" in str(told[0].message)
    asked = FaissEngine(X, recall=1, index=index)
    assert asked.recall_ == 1
    exact = ExactEngine(X).rows(np.arange(N), 10)
    np.testing.assert_array_equal(asked.rows(np.arange(N), 10).indices, exact.indices)


@pytest.mark.parametrize("index", ["flat", "ivf"])
def test_single_precision_far_from_zero(index):
    """Matrix products lose all digits here; the measured recall must notice."""
    X = (clustered(1000) + 3000).astype(np.float32)
    engine = FaissEngine(X, index=index)
    lists = engine.rows(np.arange(1000), 10)
    assert engine.recall_ >= 0.99
    assert independent_recall(X, lists, 10) >= 0.98


@pytest.mark.parametrize("index", ["flat", "ivf", "hnsw"])
def test_duplicates_are_at_zero_and_leave_the_point_out(index):
    X = np.concatenate([clustered(1000)] * 2)
    lists = FaissEngine(X, recall=0.9, index=index).rows(np.arange(2000), 5)
    twins = (np.arange(2000) + 1000) % 2000
    assert (lists.indices[:, 0] == twins).mean() >= 0.9
    assert (lists.sq_distances[lists.indices[:, 0] == twins, 0] == 0).all()
    assert (lists.indices != np.arange(2000)[:, None]).all()


def test_more_duplicates_than_the_list_is_long():
    X = np.concatenate([np.zeros((900, 32), dtype=np.float32), clustered(1100)])
    lists = FaissEngine(X, recall=0.9, index="ivf").rows(np.arange(900), 6)
    assert (lists.sq_distances == 0).all()
    assert (lists.indices != np.arange(900)[:, None]).all()
    assert (lists.indices >= 0).all()
    assert all(len(set(row)) == 6 for row in lists.indices.tolist())


def test_blocks_do_not_change_the_answer(monkeypatch):
    X = clustered()
    engine = FaissEngine(X, index="ivf")
    whole = engine.rows(np.arange(N), 8)
    monkeypatch.setattr(faiss_engine, "BLOCK_ROWS", 100)
    blocked = engine.rows(np.arange(N), 8)
    np.testing.assert_array_equal(whole.indices, blocked.indices)
    np.testing.assert_array_equal(whole.sq_distances, blocked.sq_distances)


def test_lists_and_points_take_little_memory():
    X = clustered(1000)
    engine = FaissEngine(X)
    lists = engine.rows(np.arange(1000), 3)
    assert engine._points is X
    assert lists.indices.dtype == np.int32
    assert lists.sq_distances.dtype == np.float32


def test_the_same_seed_gives_the_same_lists():
    first, second = (
        FaissEngine(clustered(), recall=0.9, index="ivf", seed=3, n_threads=1).rows(np.arange(N), 5)
        for _ in range(2)
    )
    np.testing.assert_array_equal(first.indices, second.indices)


def test_threads_search_as_one_does():
    X = clustered(1000)
    alone, together = (FaissEngine(X, recall=1.0, n_threads=n) for n in (1, 2))
    for ask in (lambda engine: engine.rows(np.arange(1000), 5), lambda engine: engine.search(X, 5)):
        np.testing.assert_array_equal(ask(together).indices, ask(alone).indices)


def test_refining_equals_the_reference():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, size=(40, 4)).astype(np.float32)
    candidates = np.array([rng.permutation(40)[:12] for _ in range(40)])
    candidates[::3, -4:] = -1
    own = np.where(np.arange(40) % 2, np.arange(40), -1)
    lists, farthest = refine(X, X, candidates, own, 9)
    indices, d, far = reference.refine(X, X, candidates, own, 9)
    np.testing.assert_array_equal(lists.indices, indices)
    np.testing.assert_array_equal(lists.sq_distances, d)
    np.testing.assert_array_equal(farthest, far)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"recall": 0.0}, "recall is 0.0"),
        ({"recall": 1.5}, "recall is 1.5"),
        ({"index": "tree"}, "index is 'tree'"),
        ({"metric": "precomputed"}, "metric is 'precomputed'"),
        ({"n_threads": 0}, "n_threads is 0"),
        ({"seed": -1}, "seed is -1"),
        ({"progress": 1}, "progress is 1"),
    ],
)
def test_parameters_that_cannot_be_used(parameters, message):
    with pytest.raises(InputError, match=message):
        FaissEngine(np.eye(3), **parameters)


@pytest.mark.parametrize("size", [1e-20, 1e25])
def test_values_beyond_single_precision_are_refused(size):
    with pytest.raises(InputError, match="single precision"):
        FaissEngine(np.eye(3) * size)


def test_a_vector_may_be_next_to_zero():
    found = FaissEngine(np.eye(3)).search(np.full((1, 3), 1e-20), 1)
    assert found.indices.tolist() == [[0]]


def test_no_points_are_refused():
    with pytest.raises(InputError, match="X has no rows"):
        FaissEngine(np.empty((0, 3)))


def test_rankers_choose_the_engine_by_size(monkeypatch):
    monkeypatch.setattr(exact, "EXACT_LIMIT", 100)
    X = clustered(120)
    assert isinstance(choose_engine(X[:100], "euclidean"), ExactEngine)
    assert isinstance(choose_engine(X, "euclidean"), FaissEngine)
    assert isinstance(choose_engine(reference.sq_distances(X), "precomputed_sq"), ExactEngine)
    assert isinstance(RAN().fit(X).engine_, FaissEngine)


def test_progress_is_shown_on_stderr_only(monkeypatch, capsys):
    monkeypatch.setattr(faiss_engine, "BLOCK_ROWS", 500)
    monkeypatch.setenv("FORCE_COLOR", "1")
    FaissEngine(clustered(2000), progress=True).rows(np.arange(2000), 3)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "neighbours" in shown.err
    FaissEngine(clustered(2000)).rows(np.arange(2000), 3)
    assert capsys.readouterr().err == ""


def test_faiss_and_numba_wait_until_they_are_used():
    code = "import rankfold.neighbors, sys; print('faiss' in sys.modules, 'numba' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.split() == ["False", "False"]


@pytest.mark.parametrize("index", ["flat", "ivf"])
def test_an_interrupt_stops_the_search_and_harms_nothing(monkeypatch, index):
    monkeypatch.setattr(faiss_engine, "BLOCK_ROWS", 200)
    engine = FaissEngine(clustered(), recall=0.9, index=index)
    before = engine.rows(np.arange(N), 5)
    timer = threading.Timer(0.3, _thread.interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        search_for_ever(engine)
    np.testing.assert_array_equal(engine.rows(np.arange(N), 5).indices, before.indices)


@pytest.mark.parametrize("index", ["flat", "ivf", "hnsw"])
def test_engines_can_be_sent_to_other_processes(index):
    engine = FaissEngine(clustered(1000), recall=0.9, index=index)
    copied = copy.deepcopy(engine)
    ids = np.arange(1000)
    np.testing.assert_array_equal(copied.rows(ids, 5).indices, engine.rows(ids, 5).indices)


@pytest.mark.parametrize("n_features", [1, 3, 8, 100])
def test_every_distance_is_measured_by_differences(n_features):
    points = 1e3 + np.random.default_rng(0).random((50, n_features), dtype=np.float32)
    points[7] = points[3]
    row = sq_distances_to(points, points[3])
    expected = ((points.astype(np.float64) - points[3].astype(np.float64)) ** 2).sum(axis=1)
    np.testing.assert_allclose(row, expected, rtol=1e-13)
    assert row[3] == row[7] == 0


QUERIES = {
    "a point": {"indices": 5},
    "points": {"indices": [5, 9], "weights": [2, 1]},
    "a vector": {"vectors": sheets(1, n_sheets=1, seed=3).X[0]},
    "both": {"indices": 7, "vectors": sheets(1, n_sheets=1, seed=3).X[0]},
}


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
@pytest.mark.parametrize("include_query", [False, True])
@pytest.mark.parametrize("living", [False, True])
def test_plain_distance_searches_the_index_where_no_proof_is_wanted(query, include_query, living):
    X = clustered()
    engine = FaissEngine(X, recall=0.999, index="ivf")
    if living:
        engine = DynamicEngine.build(X, "euclidean", 30, engine=engine)
        engine.remove([11, 40])
    proven = Distance().fit(engine).rank(**query, top=25, include_query=include_query)
    ranker = Distance(budget="auto").fit(engine)
    found = ranker.rank(**query, top=25, include_query=include_query)
    assert not engine.exact
    assert (proven.solution.certified, found.solution.certified) == (True, False)
    assert (proven.solution.stopped, found.solution.stopped) == ("exact", "budget")
    assert proven.solution.n_touched == N > found.solution.n_touched
    assert len(np.intersect1d(found.indices, proven.indices)) >= 24
    shared = np.isin(found.indices, proven.indices)
    scores = dict(zip(proven.indices.tolist(), proven.scores.tolist(), strict=True))
    expected = [scores[point] for point in found.indices[shared].tolist()]
    np.testing.assert_allclose(found.scores[shared], expected, rtol=1e-5, atol=1e-5)
    again = ranker.with_budget(None).rank(**query, top=25, include_query=include_query)
    np.testing.assert_array_equal(again.indices, proven.indices)


def test_plain_distance_measures_everything_where_examples_push_or_all_is_wanted():
    X = clustered()
    ranker = Distance(budget="auto").fit(FaissEngine(X, recall=0.9, index="ivf"))
    for ranking in (ranker.rank([3, 9], weights=[1, -0.5], top=5), ranker.rank(3)):
        assert ranking.solution.certified
    assert len(ranker.rank(3)) == N - 1
