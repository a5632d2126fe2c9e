import numpy as np

from rankfold import Neighbors, Ranking, Solution


def test_a_ranking_shows_its_best():
    scores = np.array([1.0, 0.5, 0.25, 0.125, 0.1, 0.05])
    ranking = Ranking(Solution(np.array([4, 2, 9, 1, 7, 3]), scores, 1e-12))
    assert len(ranking) == 6
    assert repr(ranking) == (
        "Ranking(6 points, {4: 1, 2: 0.5, 9: 0.25, 1: 0.125, 7: 0.1, ...}, bound=1.0e-12)"
    )


def test_head_and_take():
    neighbors = Neighbors(np.array([[1, 2], [0, 2]]), np.array([[1.0, 2.0], [1.0, 3.0]]))
    assert neighbors.head(1).indices.tolist() == [[1], [0]]
    assert neighbors.take(np.array([1])).sq_distances.tolist() == [[1.0, 3.0]]
    assert neighbors.width == 2
