"""Parameters are chosen on some queries and judged on others, never on the same."""

import numpy as np
import pytest

from rankfold import RAN, Dataset, InputError, datasets
from rankfold.evaluation import evaluate, tune

LOG = []


class Spy(RAN):
    """Writes down which parameters were asked which queries."""

    stop_at = None

    def rank_many(self, queries, **options):
        if self.n_neighbors == Spy.stop_at:
            raise KeyboardInterrupt
        LOG.append((self.n_neighbors, self.smoothness, tuple(queries)))
        return super().rank_many(queries, **options)


@pytest.fixture(autouse=True)
def clean_log(monkeypatch):
    LOG.clear()
    monkeypatch.setattr(Spy, "stop_at", None)


def blobs(n_points=60):
    rng = np.random.default_rng(3)
    labels = np.arange(n_points) % 4
    return Dataset("blobs", rng.normal(size=(n_points, 3)) + 1.5 * labels[:, None], labels)


def asked(n_neighbors):
    return {row for k, _, queries in LOG if k == n_neighbors for row in queries}


GRID = {"n_neighbors": [3, 6, 12], "smoothness": [1.0, 30.0]}


def test_held_out_queries_are_never_used_to_choose():
    found = tune(Spy(n_neighbors=9), blobs(), GRID)
    chosen, others = set(found.candidates.queries), set(found.held_out.queries)
    assert not chosen & others
    assert chosen | others == set(range(60))
    n_candidates = 6
    for _, _, queries in LOG[:n_candidates]:
        assert set(queries) == chosen
    assert len(LOG) == n_candidates + 2
    for _, _, queries in LOG[n_candidates:]:
        assert set(queries) == others
    assert asked(9) == others


def test_halves_are_stratified_and_seeded():
    labels = blobs().labels
    halves = [
        tune(Spy(), blobs(), {"n_neighbors": [3]}, seed=seed).candidates.queries
        for seed in (0, 0, 1)
    ]
    assert halves[0] == halves[1] != halves[2]
    for half in halves:
        counts = np.bincount(labels[list(half)])
        assert len(half) == 30
        assert counts.min() >= 7
        assert counts.max() <= 8


def test_the_best_is_the_best_on_the_tuning_queries():
    data = blobs()
    found = tune(RAN(), data, GRID, scoring="ndcg@5")
    means = {}
    for label, parameters in found.parameters.items():
        again = evaluate(
            {"x": RAN(**parameters)}, data, "ndcg@5", queries=list(found.candidates.queries)
        )
        means[label] = again.mean("x", "ndcg@5")
        assert found.candidates.mean(label, "ndcg@5") == means[label]
    assert len(means) == 6
    assert found.best == found.parameters[max(means, key=means.get)]
    assert found.ranker.get_params() == RAN(**found.best).get_params()
    assert not hasattr(found.ranker, "engine_")
    tuned = evaluate({"x": found.ranker}, data, queries=list(found.held_out.queries))
    np.testing.assert_array_equal(
        tuned.values["x"]["r_precision"], found.held_out.values["tuned"]["r_precision"]
    )
    assert found.complete
    assert {row.method for row in found.held_out.table()} == {"given", "tuned"}


def test_of_equals_the_first_wins():
    grid = {"tol": [1e-3, 1e-6]}  # without effect in a single alternation
    assert tune(RAN(), blobs(), grid).best == {"tol": 1e-3}


def test_several_grids():
    grids = [{"n_neighbors": [3]}, {"smoothness": [1.0, 2.0]}]
    found = tune(RAN(), blobs(), grids)
    assert list(found.parameters) == ["n_neighbors=3", "smoothness=1.0", "smoothness=2.0"]
    assert list(tune(RAN(), blobs(), {}).parameters) == ["as given"]


def test_queries_by_hand():
    found = tune(RAN(), blobs(), {"n_neighbors": [3]}, queries=[1, 2], held_out=[5, 4])
    assert (found.candidates.queries, found.held_out.queries) == ((1, 2), (5, 4))
    found = tune(RAN(), blobs(), {"n_neighbors": [3]}, held_out=[5, 4])
    assert set(found.candidates.queries) == set(range(60)) - {4, 5}
    assert len(tune(RAN(), blobs(), {"n_neighbors": [3]}, queries=7).held_out.queries) == 53


def test_interrupt_keeps_what_was_measured(monkeypatch):
    monkeypatch.setattr(Spy, "stop_at", 12)
    found = tune(Spy(), blobs(), GRID)
    assert not found.complete
    assert found.best["n_neighbors"] in (3, 6)
    assert found.held_out.table() == ()
    assert "Incomplete" in found.held_out.to_text()
    monkeypatch.setattr(Spy, "stop_at", 3)
    with pytest.raises(KeyboardInterrupt):
        tune(Spy(), blobs(), GRID)


BAD = {
    "overlap": ({"queries": [1, 2], "held_out": [2, 3]}, "query 2 stands in queries and in held"),
    "nothing left": ({"queries": list(range(60))}, "60 queries to tune on and 0 to report on"),
    "unknown parameter": ({"grid": {"k": [3]}}, "grid names 'k', which RAN does not have"),
    "no choices": ({"grid": {"n_neighbors": []}}, "grid is empty"),
    "no grids": ({"grid": []}, "grid is empty"),
    "one choice": ({"grid": {"n_neighbors": 3}}, r"grid\['n_neighbors'\] is 3, but must be a list"),
    "word": ({"grid": {"gamma": "own"}}, "is 'own', but must be a list"),
    "metric of data": ({"grid": {"metric": ["cosine"]}}, "the data set says how its points are"),
    "scoring": ({"scoring": "best"}, "metric 'best' is not known"),
    "query beyond": ({"queries": [60]}, "queries holds 60"),
    "held out beyond": ({"held_out": [60]}, "queries holds 60"),
    "dataset": ({"dataset": "digits"}, "dataset is str, but must be a rankfold.Dataset"),
    "bad setting": ({"grid": {"smoothness": [-1.0]}}, "smoothness is -1.0"),
}


@pytest.mark.parametrize(("change", "message"), BAD.values(), ids=BAD)
def test_bad_input(change, message):
    good = {"ranker": RAN(), "dataset": blobs(), "grid": {"n_neighbors": [3]}}
    with pytest.raises(InputError, match=message):
        tune(**{**good, **change})


def test_a_number_of_queries_is_drawn_from_those_not_held_out():
    moons = datasets.load("moons")
    held = list(range(100))
    grid = {"n_neighbors": [10]}
    found = tune(RAN(), moons, grid, queries=50, held_out=held)
    assert not set(found.candidates.queries) & set(held)
    with pytest.raises(InputError, match="held_out is 100, but must be a list"):
        tune(RAN(), moons, grid, held_out=100)
    with pytest.raises(InputError, match="only 300 are not held out"):
        tune(RAN(), moons, grid, queries=301, held_out=held)
    with pytest.raises(InputError, match="nope"):
        tune(RAN(), moons, grid, metrics=["nope"])
