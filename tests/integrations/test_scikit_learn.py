"""Ranks as a step of scikit-learn's pipelines, and graphs of weights."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.cluster import DBSCAN
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier, KNeighborsTransformer, kneighbors_graph
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from rankfold import RAN, Dataset, Distance, InputError, datasets, evaluate
from rankfold.integrations.scikit_learn import (
    RankedNeighborsTransformer,
    RankingScorer,
    distances_of_weights,
)


@parametrize_with_checks([RankedNeighborsTransformer(n_neighbors=3)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def moons():
    return datasets.load("moons")


@pytest.mark.parametrize("fusion", ["auto", "none", "reciprocal_rank"])
def test_rows_are_rankings(moons, fusion):
    transformer = RankedNeighborsTransformer(6, RAN(n_neighbors=10, fusion=fusion))
    graph = transformer.fit_transform(moons.X)
    assert (np.diff(graph.indptr) == 7).all()
    ranking = RAN(n_neighbors=10, fusion=fusion).fit(moons.X).rank(9, top=6)
    row = slice(graph.indptr[9], graph.indptr[10])
    assert graph.indices[row].tolist() == [9, *ranking.indices]
    np.testing.assert_allclose(graph.data[row], [0, *(1 - ranking.scores)], atol=1e-12)


def test_the_form_is_that_of_scikit_learn(moons):
    ours = RankedNeighborsTransformer(6).fit(moons.X[50:])
    theirs = KNeighborsTransformer(n_neighbors=6).fit(moons.X[50:])
    for X in (moons.X[:50], moons.X[50:]):
        mine, plain = ours.transform(X), theirs.transform(X)
        assert type(mine) is type(plain)
        assert mine.shape == plain.shape
        np.testing.assert_array_equal(mine.indptr, plain.indptr)
    assert len(ours.get_feature_names_out()) == 350


def test_clusters_of_the_graph_are_the_moons(moons):
    cluster = DBSCAN(eps=0.9, min_samples=2, metric="precomputed")
    pipeline = make_pipeline(RankedNeighborsTransformer(10, RAN(n_neighbors=10)), cluster)
    found = pipeline.fit_predict(moons.X)
    for label in np.unique(found):
        assert len(set(moons.labels[found == label])) == 1
    assert len(np.unique(found)) < 20


@pytest.mark.slow
def test_grid_search_reaches_the_ranker(moons):
    pipeline = make_pipeline(
        StandardScaler(),
        RankedNeighborsTransformer(5, RAN(n_neighbors=10)),
        KNeighborsClassifier(n_neighbors=3, metric="precomputed"),
    )
    grid = {
        "rankedneighborstransformer__ranker__smoothness": [0.01, 30.0],
        "rankedneighborstransformer__ranker__n_neighbors": [5, 10],
        "rankedneighborstransformer__ranker__fusion": ["auto", "none"],
    }
    search = GridSearchCV(pipeline, grid, cv=3, error_score="raise").fit(moons.X, moons.labels)
    assert search.best_score_ == 1.0
    fitted = search.best_estimator_.named_steps["rankedneighborstransformer"].ranker_
    for name, chosen in search.best_params_.items():
        assert getattr(fitted, name.rpartition("__")[2]) == chosen


def test_graphs_go_in_and_come_out(moons):
    finder = KNeighborsTransformer(n_neighbors=25)
    chain = make_pipeline(finder, RankedNeighborsTransformer(6, RAN(10, metric="precomputed")))
    known, unseen = moons.X[40:], moons.X[:40]
    graph = chain.fit_transform(known)
    direct = RankedNeighborsTransformer(6, RAN(10)).fit(known)
    for found, expected in [
        (graph, direct.transform(known)),
        (chain.transform(known), direct.transform(known)),
        (chain.transform(unseen), direct.transform(unseen)),
    ]:
        np.testing.assert_array_equal(found.indices, expected.indices)
        np.testing.assert_allclose(found.data, expected.data, atol=1e-9)


def test_what_it_cannot_do_is_refused(moons):
    with pytest.raises(InputError, match="must be a RAN"):
        RankedNeighborsTransformer(ranker=Distance()).fit(moons.X)
    with pytest.raises(InputError, match="n_neighbors=400, but n_samples=400"):
        RankedNeighborsTransformer(400).fit(moons.X)


def test_weights_become_distances_in_the_same_order(moons):
    distances = kneighbors_graph(moons.X, 20, mode="distance")
    scale = distances.data.max()
    weights = distances.copy()
    weights.data = 3.0 * np.exp(-((weights.data / scale) ** 2))
    found = RAN(10, metric="precomputed").fit(distances_of_weights(weights)).neighbors_
    plain = RAN(10, metric="precomputed").fit(distances).neighbors_
    np.testing.assert_array_equal(found.indices, plain.indices)
    assert distances_of_weights(sparse.csr_array((3, 3))).nnz == 0
    with pytest.raises(InputError, match=r"negative.* must hold weights above zero"):
        distances_of_weights(-weights)


def test_a_ranker_is_judged_by_how_it_ranks(moons):
    fold = slice(0, None, 3)
    X, labels = moons.X[fold], moons.labels[fold]
    fitted = RAN(n_neighbors=8).fit(moons.X)  # to the other folds, which it is not judged by
    data = Dataset("fold", X, labels)
    (row,) = evaluate({"ran": RAN(n_neighbors=8)}, data, "ndcg@10", queries="all").table()
    assert RankingScorer("ndcg@10")(fitted, X, labels) == row.mean
    scaler = StandardScaler().fit(moons.X)
    pipeline = make_pipeline(StandardScaler(), RAN(n_neighbors=8)).fit(moons.X)
    whole = RankingScorer("ndcg@10")(RAN(n_neighbors=8), scaler.transform(X), labels)
    assert RankingScorer("ndcg@10")(pipeline, X, labels) == whole


def test_a_grid_search_chooses_by_ranking(moons):
    grid = {"ran__n_neighbors": [5, 60]}
    scorer = RankingScorer("r_precision")
    search = GridSearchCV(make_pipeline(StandardScaler(), RAN()), grid, scoring=scorer, cv=2)
    search.fit(moons.X, moons.labels)
    few, many = search.cv_results_["mean_test_score"]
    assert few > many
    assert search.best_params_ == {"ran__n_neighbors": 5}
    assert repr(scorer) == "RankingScorer('r_precision')"


def test_what_is_no_ranker_is_refused(moons):
    classifier = KNeighborsClassifier().fit(moons.X, moons.labels)
    with pytest.raises(InputError, match="such as RAN"):
        RankingScorer()(classifier, moons.X, moons.labels)
