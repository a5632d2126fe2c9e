import json

import numpy as np
import pytest

from rankfold import (
    RAN,
    RANKERS,
    Distance,
    GaussianGraph,
    InputError,
    PersonalizedPageRank,
    Query,
    datasets,
)
from rankfold.check import check_query
from rankfold.datasets.synthetic import sheets
from rankfold.explanation import draw_explanation, explain

MOONS = datasets.load("moons")
UPPER = np.flatnonzero(MOONS.labels == 0)
LEFT, RIGHT = (int(UPPER[end(MOONS.X[UPPER, 0])]) for end in (np.argmin, np.argmax))
SEVERAL = Query(indices=[LEFT, 10], vectors=[[0.3, 0.9]], weights=[1.0, 0.5, 0.25])


@pytest.fixture(scope="module", params=RANKERS)
def ranker(request):
    return RANKERS[request.param]().fit(MOONS.X)


@pytest.mark.parametrize("query", [LEFT, SEVERAL], ids=["point", "several"])
def test_places_are_those_of_the_rankings(ranker, query):
    by_score = ranker.rank_many([query])[0]
    by_distance = Distance().fit(MOONS.X).rank_many([query])[0]
    for place in (0, 1, 50, len(by_score) - 1):
        point = int(by_score.indices[place])
        explanation = explain(ranker, query, point)
        far = int(np.flatnonzero(by_distance.indices == point)[0])
        assert explanation.score_rank == place + 1
        assert explanation.distance_rank == far + 1
        assert explanation.shift == far - place
        assert explanation.n_ranked == len(by_score)
        assert explanation.score == pytest.approx(by_score.scores[place], rel=1e-12)
        assert explanation.distance == pytest.approx(np.sqrt(-by_distance.scores[far]))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("weight", [0.0, -0.5])
def test_negative_examples_push_in_the_rank_by_distance_too(ranker, weight):
    query = Query(indices=[LEFT, 30, 31], vectors=[[0.3, 0.9]], weights=[2.0, weight, weight, 1.0])
    by_distance = Distance().fit(MOONS.X).rank_many([query])[0]
    pushed = Query(query.indices, query.vectors, [2.0, -0.7, -0.7, 1.0])
    by_push = Distance().fit(MOONS.X).rank_many([pushed])[0]
    assert by_push.indices.tolist() != by_distance.indices.tolist()
    for point in by_push.indices[[0, 7, 100, -1]].tolist():
        place = int(np.flatnonzero(by_distance.indices == point)[0])
        assert explain(ranker, query, point).distance_rank == place + 1
        place = int(np.flatnonzero(by_push.indices == point)[0])
        assert explain(ranker, query, point, negative_weight=-0.7).distance_rank == place + 1


def test_shares_add_up_and_the_path_leads_from_query_to_point(ranker):
    point = int(ranker.rank_many([SEVERAL])[0].indices[20])
    explanation = explain(ranker, SEVERAL, point)
    shares = [example.share for example in explanation.examples]
    assert sum(shares) == pytest.approx(1.0, abs=1e-12)
    amounts = [example.amount for example in explanation.examples]
    assert sum(amounts) == pytest.approx(explanation.shape, rel=1e-6)
    if explanation.fused is None:
        assert explanation.shape == explanation.score
    if ranker.flow(check_query(SEVERAL, *MOONS.X.shape)) is None:
        assert (explanation.path, explanation.path_state) == (None, "no graph")
        return
    steps = explanation.path.steps
    assert steps[-1].end == point
    assert steps[-1].score == explanation.shape
    assert [step.end for step in steps[:-1]] == [step.start for step in steps[1:]]
    assert steps[0].start == explanation.examples[explanation.path.example].point
    for step in steps[1:]:
        neighbors, weights = ranker.edges(step.start)
        assert step.weight == weights[neighbors == step.end]
    assert (explanation.path.share is None) == (explanation.path_state == "illustration")


@pytest.mark.parametrize("fusion", ["auto", 2.5, "reciprocal_rank", "none"])
@pytest.mark.parametrize("query", [LEFT, SEVERAL], ids=["point", "several"])
def test_parts_of_a_score_are_those_of_the_ranking(query, fusion):
    ranker = RAN(fusion=fusion).fit(MOONS.X)
    (ranking,) = ranker.rank_many([query])
    for place in (0, 3, 50, 200):
        explanation = explain(ranker, query, int(ranking.indices[place]))
        assert explanation.shape == pytest.approx(ranking.shape[place], rel=1e-6)
        assert explanation.fused == ranking.solution.fused
        told = explanation.to_dict()["fused"]
        if fusion == "none":
            assert explanation.shape == explanation.score
            assert told is ranking.distances is None
            continue
        assert explanation.distance == pytest.approx(ranking.distances[place])
        assert told == ranking.solution.fused._asdict()
        kind = "reciprocal_rank" if fusion == "reciprocal_rank" else "blend"
        assert (told["kind"], told["weight"]) == (
            kind,
            {"auto": 4.0, 2.5: 2.5, "reciprocal_rank": 0.0}[fusion],
        )
        text = " ".join(explanation.to_text().split())
        reached = explanation.shape > 0  # else the place is by plain distance
        by_blend = f"shape {explanation.shape:.3g} x closeness" in text
        by_ranks = f"reciprocal ranks by shape ({explanation.shape:.3g})" in text
        assert by_blend == (reached and kind == "blend")
        assert by_ranks == (reached and kind == "reciprocal_rank")


@pytest.mark.one_in(3)
def test_text_and_dict_hold_everything(ranker, tmp_path):
    point = int(ranker.rank_many([SEVERAL])[0].indices[20])
    explanation = explain(ranker, SEVERAL, point)
    content = json.loads(json.dumps(explanation.to_dict()))
    assert content["point"] == point
    assert content["shift"] == explanation.shift
    assert len(content["examples"]) == 3
    names = [f"a picture with a name far too long for a line, number {i}" for i in range(400)]
    text = explanation.to_text(names=names, width=60)
    assert max(len(line) for line in text.splitlines()) <= 60
    assert f"{explanation.score_rank}" in text
    assert "a picture with a" in text
    draw_explanation(explanation, tmp_path / "map.png", MOONS.X, vectors2=[[0.3, 0.9]])
    draw_explanation(explanation, str(tmp_path / "chain.png"), names=names)
    for name in ("map.png", "chain.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")


def dense_ran(X, query, k, smoothness):
    """Each example's part of RAN's scores, from dense solves with the others pinned at zero."""
    import reference

    n_points, n_ids = len(X), len(query.indices)
    everything = np.concatenate([X, query.vectors])
    d = reference.sq_distances(everything)
    S = np.zeros_like(d)
    for i in range(len(everything)):
        allowed = [j for j in range(n_points) if j != i]
        S[i] = reference.closed_form(d[i], allowed, k)[0]
    W = (S + S.T) / 2
    A = 2 * smoothness * (np.diag(W.sum(axis=1)) - W) + np.eye(len(W))
    pinned = [*query.indices, *range(n_points, len(W))]
    free = np.setdiff1d(np.arange(len(W)), pinned)
    parts = np.zeros((len(pinned), len(W)))
    for example in range(n_ids + len(query.vectors)):
        b = -A[np.ix_(free, [pinned[example]])][:, 0] * query.weights[example]
        parts[example, free] = np.linalg.solve(A[np.ix_(free, free)], b)
    return parts[:, :n_points]


@pytest.mark.parametrize("solver", ["direct", "cg", "region"])
def test_shares_of_ran_equal_dense_solves(solver):
    X = np.random.default_rng(0).normal(size=(60, 3))
    query = check_query(Query(indices=[3, 8], vectors=X[:1] + 0.1, weights=[1, 0.5, 0.8]), *X.shape)
    parts = dense_ran(X, query, 5, 10.0)
    ranker = RAN(n_neighbors=5, smoothness=10.0, solver=solver).fit(X)
    for point in (0, 20, 59):
        explanation = explain(ranker, query, point)
        amounts = [example.amount for example in explanation.examples]
        np.testing.assert_allclose(amounts, parts[:, point], rtol=3e-4, atol=1e-9)


@pytest.mark.parametrize("method", [RAN, PersonalizedPageRank])
def test_a_local_explanation_is_that_of_the_whole_graph(method):
    X = sheets(1500, n_sheets=3).X
    whole, local = (method(solver=solver).fit(X) for solver in ("direct", "region"))
    query = Query(indices=[5, 700], vectors=X[40] + 0.01)
    point = int(whole.rank_many([query])[0].indices[12])
    one, two = (explain(ranker, query, point) for ranker in (whole, local))
    assert [step.end for step in one.path.steps] == [step.end for step in two.path.steps]
    assert one.path.share == pytest.approx(two.path.share, rel=1e-3)
    assert (one.score_rank, one.distance_rank) == (two.score_rank, two.distance_rank)
    for a, b in zip(one.examples, two.examples, strict=True):
        assert a.share == pytest.approx(b.share, abs=1e-3)


def test_a_point_out_of_reach_is_placed_by_distance():
    X = np.concatenate([np.random.default_rng(s).normal(9 * s, 1, (20, 2)) for s in (0, 1)])
    explanation = explain(RAN(n_neighbors=3).fit(X), 0, 30)
    assert (explanation.score, explanation.path_state, explanation.path) == (0, "unreached", None)
    assert [example.share for example in explanation.examples] == [None]
    assert "the place is by plain distance" in explanation.to_text()


@pytest.mark.filterwarnings("ignore:.*ended at max_iter")
@pytest.mark.parametrize("solver", ["direct", "region"])
def test_several_alternations_are_explained_on_the_first_graph(solver):
    ranker = RAN(n_neighbors=10, max_iter=3, guard=False, solver=solver).fit(MOONS.X)
    once = RAN(n_neighbors=10).fit(MOONS.X)
    point = int(once.rank(LEFT).indices[30])
    later, first = explain(ranker, LEFT, point), explain(once, LEFT, point)
    assert later.first_graph
    assert not first.first_graph
    assert "path and shares are of the first." in later.to_text()
    assert [step.end for step in later.path.steps] == [step.end for step in first.path.steps]
    assert later.path.share == pytest.approx(first.path.share, rel=1e-3)
    ranking = ranker.rank(LEFT)
    assert ranking.indices[later.score_rank - 1] == point
    assert later.score == pytest.approx(ranking.scores[later.score_rank - 1], abs=1e-5)


def test_a_search_that_gives_up_is_told():
    explanation = explain(RAN(n_neighbors=10).fit(MOONS.X), LEFT, RIGHT, most_points=7)
    assert (explanation.path, explanation.path_state) == (None, "gave up")
    assert "No path was found within 7 points." in explanation.to_text()


def test_long_paths_and_many_examples_stay_short():
    ranker = RAN(n_neighbors=10).fit(MOONS.X)
    assert "more" in explain(ranker, LEFT, RIGHT).to_text()
    many = [int(point) for point in UPPER[:30] if point != RIGHT]
    assert len(explain(ranker, Query(indices=many), RIGHT).to_text().splitlines()) < 30


def test_bad_input_is_refused():
    ranker = RAN(n_neighbors=10).fit(MOONS.X)
    with pytest.raises(InputError, match="is an example of the query"):
        explain(ranker, LEFT, LEFT)
    with pytest.raises(InputError, match="rows 0 to 399"):
        explain(ranker, LEFT, 400)
    explanation = explain(ranker, LEFT, RIGHT)
    with pytest.raises(InputError, match="width is 10"):
        explanation.to_text(width=10)
    with pytest.raises(InputError, match="a row of two coordinates"):
        draw_explanation(explanation, "never.png", MOONS.X[:3])


def test_precomputed_distances_are_explained():
    distances = np.linalg.norm(MOONS.X[:, None] - MOONS.X, axis=2)
    given = explain(RAN(n_neighbors=10, metric="precomputed").fit(distances), LEFT, RIGHT)
    measured = explain(RAN(n_neighbors=10).fit(MOONS.X), LEFT, RIGHT)
    assert given.distance == pytest.approx(measured.distance)
    assert [s.end for s in given.path.steps] == [s.end for s in measured.path.steps]


def test_a_single_step_says_whose_neighbour_is_whose():
    """Of 0, 1, 1.1 and 9 the first is nobody's nearest, and its nearest is 1."""
    ranker = RAN(n_neighbors=1, fusion="none").fit(np.array([[0.0], [1.0], [1.1], [9.0]]))
    one_sided, mutual = explain(ranker, 1, 0), explain(ranker, 1, 2)
    (step,) = one_sided.path.steps
    assert (step.end_place, step.start_place) == (None, 1)
    told = (
        "point 1 is number 1 among the nearest of point 0; point 0 is not among those of point 1."
    )
    assert told in " ".join(one_sided.to_text().split())
    (step,) = mutual.path.steps
    assert (step.end_place, step.start_place) == (1, 1)
    told = "point 2 is number 1 among the nearest of point 1, and point 1 number 1 among those of"
    assert told in " ".join(mutual.to_text().split())
    unseen = explain(ranker, Query(vectors=[[9.5]]), 3)
    (step,) = unseen.path.steps
    assert (step.start, step.end_place, step.start_place) == (None, 1, None)
    told = "point 3 is number 1 among the nearest of the query's vector."
    assert told in " ".join(unseen.to_text().split())


def test_steps_without_lists_are_joined_in_the_graph():
    ranker = PersonalizedPageRank(graph=GaussianGraph(n_neighbors=None)).fit(MOONS.X[:30])
    explanation = explain(ranker, 0, int(ranker.rank(0, top=1).indices[0]))
    (step,) = explanation.path.steps
    assert (step.end_place, step.start_place) == (None, None)
    assert "are joined in the graph" in " ".join(explanation.to_text().split())
