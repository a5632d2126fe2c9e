"""The region solver over rows that come bit by bit decides everything as over the whole graph."""

import numpy as np
import pytest
from scipy import sparse

from rankfold.graph.adaptive import ClosedForm
from rankfold.neighbors import ExactEngine
from rankfold.parallel import Stop, StoppedError
from rankfold.solvers import (
    Boundary,
    Effort,
    FetchedRows,
    GraphFacts,
    MissingRowsError,
    RegionSolver,
    System,
    levels,
)

N, K, COUPLING = 3_000, 8, 60.0


@pytest.fixture(scope="module")
def graph():
    """Return W in single precision, of points in three dimensions."""
    X = np.random.default_rng(0).uniform(size=(N, 3))
    weights = ClosedForm.of(ExactEngine(X).rows(np.arange(N), K + 1), K).symmetric()
    return sparse.csr_array(weights.astype(np.float32))


@pytest.fixture(scope="module")
def whole(graph):
    couplings = graph.copy()
    couplings.data *= COUPLING
    return RegionSolver(System.coupled(couplings))


def fetched_of(graph):
    degrees = np.asarray(graph.astype(float).sum(axis=1)).ravel()
    fetched = FetchedRows(GraphFacts.of(np.diff(graph.indptr), degrees))
    fetched.reserve(N)
    return fetched


def fetch(fetched, graph, points):
    points = np.unique(points[~fetched.has(points)])
    lengths = np.diff(graph.indptr)[points]
    entries = np.concatenate([np.arange(*graph.indptr[p : p + 2]) for p in points])
    starts = np.concatenate([[0], np.cumsum(lengths)])
    fetched.add(points, starts, graph.indices[entries], graph.data[entries])


def solved(fetched, graph, boundary, effort, extra):
    """Solve as often as rows are missing; return the solution, and how often."""
    for tries in range(1, 1_000):
        try:
            (solution,) = fetched.solver(COUPLING).solve([boundary], [effort])
            return solution, tries
        except MissingRowsError as error:
            missing = error
        assert not missing.all_needed
        assert len(missing.needed)
        assert not fetched.has(missing.needed).any()
        fetch(fetched, graph, np.concatenate([missing.needed, missing.next_ones[:extra]]))
    raise AssertionError("it does not end")


BOUNDARIES = {
    "a point": Boundary(clamped=np.array([7]), values=np.ones(1), left_out=np.array([7])),
    "two points": Boundary(
        clamped=np.array([7, 900]), values=np.array([1.0, 0.0]), left_out=np.array([7, 900])
    ),
    "a vector": Boundary(
        points=np.array([3, 11]),
        rhs=np.array([9.0, 6.0]),
        pulled=np.array([3, 11]),
        pull=np.array([9.0, 6.0]),
    ),
}
EFFORTS = [Effort(1e-6, 20, 300), Effort(1e-6, 20, 300, 600), Effort(1e-6, 200, 500)]


@pytest.mark.parametrize("extra", [0, 300], ids=["needed alone", "with others"])
@pytest.mark.parametrize("effort", EFFORTS, ids=str)
@pytest.mark.parametrize("kind", BOUNDARIES)
def test_the_last_run_is_that_over_the_whole_graph(graph, whole, kind, effort, extra):
    boundary = BOUNDARIES[kind]
    (expected,) = whole.solve([boundary], [effort])
    fetched = fetched_of(graph)
    found, tries = solved(fetched, graph, boundary, effort, extra)
    assert tries > 1
    assert fetched.n_rows < N
    assert found.points.tolist() == expected.points.tolist()
    np.testing.assert_allclose(found.scores, expected.scores, rtol=1e-9, atol=1e-12)
    assert (found.stopped, found.n_touched, found.n_iter) == (
        expected.stopped,
        expected.n_touched,
        expected.n_iter,
    )
    assert found.bound == pytest.approx(expected.bound)


def test_rows_that_are_here_already_are_used_again(graph, whole):
    fetched, effort = fetched_of(graph), EFFORTS[0]
    for boundary in BOUNDARIES.values():
        found, _ = solved(fetched, graph, boundary, effort, 300)
        (expected,) = whole.solve([boundary], [effort])
        assert found.points.tolist() == expected.points.tolist()
    _, tries = solved(fetched, graph, BOUNDARIES["a point"], effort, 300)
    assert tries == 1


def ask_until_all_is_needed(fetched, graph, boundary, effort):
    while True:
        try:
            list(fetched.solver(COUPLING).solve([boundary], [effort]))
        except MissingRowsError as missing:
            if missing.all_needed:
                raise
            fetch(fetched, graph, np.concatenate([missing.needed, missing.next_ones]))


def test_a_query_that_goes_on_over_a_good_part_of_the_graph_asks_for_all(graph):
    fetched = fetched_of(graph)
    with pytest.raises(MissingRowsError, match="all rows") as caught:
        ask_until_all_is_needed(fetched, graph, BOUNDARIES["a point"], Effort(1e-6, 200))
    assert caught.value.n_used > 0


def test_points_that_are_gone_lose_their_edges(graph, whole):
    gone = graph.indices[graph.indptr[7] : graph.indptr[8]][:2]
    fetched = fetched_of(graph)
    fetch(fetched, graph, np.arange(N))
    left = graph.tolil()
    left[gone], left[:, gone] = 0, 0
    system = System.coupled(COUPLING * sparse.csr_array(left))
    (expected,) = RegionSolver(system).solve([BOUNDARIES["a point"]], [EFFORTS[0]])
    solver = fetched.without(gone).solver(COUPLING)
    (found,) = solver.solve([BOUNDARIES["a point"]], [EFFORTS[0]])
    assert set(found.points.tolist()) == set(expected.points.tolist())
    np.testing.assert_allclose(np.sort(found.scores), np.sort(expected.scores), atol=1e-4)


def test_looking_ahead_for_rows_can_be_stopped(graph, monkeypatch):
    fetched, stop, answer = fetched_of(graph), Stop(), levels.answer
    fetch(fetched, graph, np.array([7]))

    def stopped_by_then(arrays, *arguments):
        if arrays.goes_on:
            stop.set()
        return answer(arrays, *arguments)

    monkeypatch.setattr(levels, "answer", stopped_by_then)
    with stop.stoppable(), pytest.raises(StoppedError):
        list(fetched.solver(COUPLING).solve([BOUNDARIES["a point"]], [EFFORTS[0]]))


def test_a_large_graph_is_judged_by_the_same_sample_as_in_memory():
    n = 70_000  # so that not all points are sampled
    weights = np.random.default_rng(3).uniform(size=n - 1)
    path = sparse.diags_array([weights, weights], offsets=[1, -1]).tocsr()
    degrees = np.asarray(path.sum(axis=1)).ravel()
    fetched = FetchedRows(GraphFacts.of(np.diff(path.indptr), degrees))
    in_memory = RegionSolver(System.coupled(COUPLING * path))
    assert fetched.solver(COUPLING).rule.relaxation == pytest.approx(
        in_memory.rule.relaxation, rel=1e-12
    )
