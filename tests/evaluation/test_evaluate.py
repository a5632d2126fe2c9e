"""The evaluator against a computation that shares nothing with it."""

from functools import partial

import numpy as np
import pytest
from sklearn.metrics import average_precision_score

from rankfold import RAN, Dataset, Distance, InputError, datasets, metrics
from rankfold.evaluation import Evaluation, evaluate

RANKERS = {"distance": Distance(), "ran": RAN(n_neighbors=8)}
NAMES = ("precision@5", "recall@7", "average_precision", "r_precision", "bulls_eye")


def blobs(n_points=90, seed=0):
    rng = np.random.default_rng(seed)
    labels = np.arange(n_points) % 3
    return Dataset("blobs", rng.normal(size=(n_points, 4)) + 1.2 * labels[:, None], labels)


class Scripted(Distance):
    """Plain distance, with a hook at every block of queries."""

    def __init__(self, hook=None, metric="euclidean"):
        super().__init__(metric)
        self.hook = hook

    def __sklearn_clone__(self):
        return type(self)(self.hook, self.metric)

    def rank_many(self, queries, **options):
        if self.hook is not None:
            self.hook(queries)
        return super().rank_many(queries, **options)


class Backwards(Distance):
    """The furthest first."""

    def _solve(self, queries, wanted, unseen):
        from dataclasses import replace

        for solution, trace in super()._solve(queries, wanted, unseen):
            yield replace(solution, scores=-solution.scores), trace


@pytest.fixture(scope="module")
def found():
    return evaluate(RANKERS, blobs(), NAMES)


@pytest.mark.parametrize("method", RANKERS)
def test_values_by_definition(found, method):
    data = blobs()
    ranker = RANKERS[method].fit(data.X)
    for query in range(0, 90, 7):
        ids = ranker.rank(query).indices
        right = data.labels[ids] == data.labels[query]
        expected = {
            "precision@5": right[:5].mean(),
            "recall@7": right[:7].sum() / 29,
            "average_precision": average_precision_score(right, -np.arange(89)),
            "r_precision": right[:29].mean(),
            "bulls_eye": right[:58].sum() / 29,
        }
        for name, value in expected.items():
            assert found.values[method][name][query] == pytest.approx(value)


def test_table_is_the_mean_of_the_values(found):
    rows = found.table()
    assert [(row.metric, row.method) for row in rows] == [(n, m) for n in NAMES for m in RANKERS]
    for row in rows:
        values, plain = found.values[row.method][row.metric], found.plain[row.metric]
        assert row.dataset == "blobs"
        assert row.n_queries == 90
        assert row.mean == pytest.approx(np.mean(values)) == found.mean(row.method, row.metric)
        assert row.low <= row.mean <= row.high
        assert row.harm == np.mean(np.round(values, 9) < np.round(plain, 9))
    assert found.table() is rows


def test_plain_distance_is_the_euclidean_ranker(found):
    for name in NAMES:
        np.testing.assert_array_equal(found.plain[name], found.values["distance"][name])
    for row in found.table():
        if row.method == "distance":
            assert (row.harm, row.p_value) == (0.0, 1.0)


def test_plain_distance_does_not_harm_itself_among_many_points():
    """Beyond 20,000 points rankers measure in single precision, where near ties fall otherwise."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(300, 16))
    X = np.repeat(centres, 70, axis=0) + 1e-7 * rng.normal(size=(21_000, 16))
    data = Dataset("near ties", X, np.arange(21_000) % 7, "cosine")
    for row in evaluate(
        {"plain": Distance()}, data, ["precision@10", "ndcg@10"], queries=60
    ).table():
        assert (row.harm, row.p_value) == (0.0, 1.0)


@pytest.mark.parametrize("name", ["yale", "orl"])
def test_plain_distance_of_given_distances(load, name):
    for include_query in (False, True):
        found = evaluate({"e": Distance()}, load(name), queries=60, include_query=include_query)
        for metric, values in found.plain.items():
            np.testing.assert_array_equal(found.values["e"][metric], values)


def test_harm_is_against_plain_distance_whatever_the_base():
    rankers = {"back": Backwards(), "ran": RAN(n_neighbors=8)}
    alone = evaluate(rankers, blobs(), "r_precision")
    based = evaluate(rankers, blobs(), "r_precision", base="back")
    assert [row.harm for row in based.table()] == [row.harm for row in alone.table()]
    back, ran = based.table()
    assert back.harm > 0.9
    assert back.p_value is None
    assert ran.p_value == 0.0001
    assert alone.table()[0].p_value == 0.0001


def test_query_among_the_results():
    data = blobs()
    found = evaluate(RANKERS, data, ["precision@1", "bulls_eye"], include_query=True)
    assert (found.values["ran"]["precision@1"] == 1).all()
    ids = RAN(n_neighbors=8).fit(data.X).rank(4, include_query=True).indices
    expected = metrics.bulls_eye(data.labels[ids] == data.labels[4], 30)
    assert found.values["ran"]["bulls_eye"][4] == expected


def test_queries():
    data = blobs()
    lonely = Dataset("lonely", data.X, np.r_[data.labels[:-1], 99])
    assert evaluate(RANKERS, lonely, "r_precision").queries == tuple(range(89))
    some = evaluate(RANKERS, data, "r_precision", queries=[5, 2, 80])
    assert some.queries == (5, 2, 80)
    everything = evaluate(RANKERS, data, "r_precision")
    expected = everything.values["ran"]["r_precision"][[5, 2, 80]]
    np.testing.assert_array_equal(some.values["ran"]["r_precision"], expected)
    draws = [evaluate(RANKERS, data, "r_precision", queries=9, seed=s).queries for s in (0, 0, 1)]
    assert draws[0] == draws[1] != draws[2]
    assert len(set(draws[0])) == 9


def test_rankers_stay_as_they_are_and_take_the_metric_of_the_data():
    ranker = Scripted()
    asked = []
    ranker.hook = asked.append
    X = blobs().X
    distances = np.linalg.norm(X[:, None] - X, axis=2)
    data = Dataset("distances", distances, blobs().labels, "precomputed")
    found = evaluate({"spy": ranker}, data, "r_precision")
    assert ranker.metric == "euclidean"
    assert not hasattr(ranker, "engine_")
    assert [row for block in asked for row in block] == list(range(90))
    np.testing.assert_array_equal(found.values["spy"]["r_precision"], found.plain["r_precision"])


def test_several_processes_give_the_same():
    data = blobs(150)
    one, two = (evaluate(RANKERS, data, NAMES, n_jobs=n_jobs) for n_jobs in (1, 2))
    assert one.to_csv() == two.to_csv()
    for method in RANKERS:
        for name in NAMES:
            np.testing.assert_array_equal(one.values[method][name], two.values[method][name])


def interrupt_at(first, queries):
    if queries[0] >= first:
        raise KeyboardInterrupt


def test_interrupt_returns_what_is_done():
    rankers = {
        "whole": Distance(),
        "part": Scripted(partial(interrupt_at, 128)),
        "none": Distance(),
    }
    found = evaluate(rankers, blobs(300), ["r_precision", "ndcg@5"], base="whole")
    assert not found.complete
    assert np.isfinite(found.values["part"]["ndcg@5"]).sum() == 128
    rows = {row.method: row for row in found.table() if row.metric == "ndcg@5"}
    assert {row.n_queries for row in rows.values()} == {128}
    assert list(rows) == ["whole", "part", "none"]
    assert rows["part"].mean == pytest.approx(found.plain["ndcg@5"][:128].mean())
    assert rows["part"].mean == rows["whole"].mean == found.mean("whole", "ndcg@5")
    assert rows["part"].p_value == 1.0
    for text in (found.to_text(), found.to_markdown(), found.to_latex()):
        assert "Incomplete: stopped after 128 of 300 queries." in text


def test_means_of_an_interrupted_evaluation_are_over_the_same_queries():
    """Queries get harder, so that means over the first ones are higher than over all."""
    rng = np.random.default_rng(0)
    labels = np.arange(300) % 2
    X = labels[:, None] + rng.normal(size=(300, 1)) * np.linspace(0.1, 4, 300)[:, None]
    rankers = {"first": Distance(), "second": Scripted(partial(interrupt_at, 64))}
    found = evaluate(rankers, Dataset("d", X, labels))
    first, second = (row for row in found.table() if row.metric == "average_precision")
    assert first.n_queries == second.n_queries == 64
    assert (first.mean, first.low, first.high) == (second.mean, second.low, second.high)


def test_interrupt_before_anything_is_done():
    found = evaluate({"none": Scripted(partial(interrupt_at, 0))}, blobs(), base="none")
    assert not found.complete
    assert found.table() == ()
    assert np.isnan(found.mean("none", "r_precision"))
    assert found.to_json() == "[]\n"
    assert "stopped after 0 of 90" in found.to_text()


def test_a_method_that_was_not_reached_leaves_nothing_to_compare():
    rankers = {"done": Distance(), "base": Scripted(partial(interrupt_at, 0))}
    found = evaluate(rankers, blobs(), "r_precision", base="base")
    assert found.table() == ()
    assert np.isfinite(found.values["done"]["r_precision"][:64]).all()


def test_progress_is_on_standard_error_and_only_there(capsys, monkeypatch):
    evaluate(RANKERS, blobs(), "r_precision", progress=True)
    assert capsys.readouterr() == ("", "")
    monkeypatch.setenv("FORCE_COLOR", "1")
    evaluate(RANKERS, blobs(), "r_precision", progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert "180/180" in err


def test_evaluation_is_frozen(found):
    assert isinstance(found, Evaluation)
    with pytest.raises(AttributeError):
        found.complete = False


GOOD = {"rankers": RANKERS, "dataset": blobs(30)}
X, LABELS = blobs(30).X, blobs(30).labels
BAD = {
    "no rankers": ({"rankers": {}}, "rankers is {}, but must map names to rankers"),
    "list of rankers": ({"rankers": [RAN()]}, "must map names to rankers"),
    "class": ({"rankers": {"ran": RAN}}, "an object and not its class"),
    "not a ranker": ({"rankers": {"a": 3}}, r"rankers\['a'\] is 3"),
    "other metric": ({"rankers": {"a": RAN(metric="cosine")}}, "has metric 'cosine', but 'blobs'"),
    "array": ({"dataset": X}, "dataset is ndarray, but must be a rankfold.Dataset"),
    "few labels": ({"dataset": Dataset("d", X, LABELS[:9])}, r"shape \(9,\), but there are 30"),
    "nan": ({"dataset": Dataset("d", np.where(X > 2, np.nan, X), LABELS)}, "finite numbers"),
    "flat": ({"dataset": Dataset("d", X[:, 0], LABELS)}, r"X of 'd' has shape \(30,\)"),
    "metric of data": ({"dataset": Dataset("d", X, LABELS, "l1")}, "dataset.metric is 'l1'"),
    "all alone": ({"dataset": Dataset("d", X, np.arange(30))}, "no two points of 'd' share"),
    "no metrics": ({"metrics": []}, "metrics is empty"),
    "metric": ({"metrics": "map"}, "metric 'map' is not known; choose from average_precision"),
    "no cutoff": ({"metrics": ["precision"]}, "metric 'precision' needs a cutoff"),
    "cutoff zero": ({"metrics": ["ndcg@0"]}, "metric 'ndcg@0' needs a cutoff"),
    "cutoff word": ({"metrics": ["recall@all"]}, "write 'recall@10'"),
    "cutoff too much": ({"metrics": ["r_precision@5"]}, "r_precision takes none"),
    "metric twice": ({"metrics": ["ndcg@5", "ndcg@05"]}, "'ndcg@5' more than once"),
    "no queries": ({"queries": []}, "queries is empty"),
    "query beyond": ({"queries": [30]}, "queries holds 30"),
    "query twice": ({"queries": [3, 3]}, "queries holds 3 more than once"),
    "query word": ({"queries": "many"}, "queries is 'many'"),
    "too many": ({"queries": 31}, "queries is 31, but only 30 points"),
    "base": ({"base": "pagerank"}, "base is 'pagerank', but must be one of 'distance', 'ran'"),
    "include": ({"include_query": 1}, "include_query is 1, but must be True or False"),
    "jobs": ({"n_jobs": 0}, "n_jobs is 0"),
    "jobs all": ({"n_jobs": -1}, "n_jobs is -1"),
    "progress": ({"progress": "yes"}, "progress is 'yes'"),
    "seed": ({"seed": -1}, "seed is -1"),
}


@pytest.mark.parametrize(("change", "message"), BAD.values(), ids=BAD)
def test_bad_input(change, message):
    with pytest.raises(InputError, match=message):
        evaluate(**{**GOOD, **change})


def test_query_with_nothing_to_find():
    alone = Dataset("d", X, np.r_[LABELS[:-1], 99])
    with pytest.raises(InputError, match="query 29 has nothing to find"):
        evaluate(RANKERS, alone, queries=[3, 29])
    assert evaluate(RANKERS, alone, queries=[29], include_query=True).complete


def test_errors_of_a_ranker_come_through_from_processes():
    with pytest.raises(InputError, match="smoothness is 0"):
        evaluate({"ran": RAN(5, 0)}, blobs(200), n_jobs=2)


def test_an_evaluation_prints_as_its_table_and_is_named_in_short():
    moons = datasets.load("moons")
    found = evaluate({"RAN": RAN(n_neighbors=10)}, moons, "precision@5", queries=3)
    assert str(found).split() == found.to_text().split()
    assert repr(found) == "Evaluation('moons', 3 queries, of RAN)"
    assert repr(moons) == "Dataset('moons', 400 x 2, euclidean)"
