"""A collection whose neighbours the workers find has the graph that it has otherwise."""

import numpy as np
import pytest
from databases.memory import MemoryCollection

from rankfold import Collection
from rankfold.errors import InputError


def same_graph(points, client, scratch, **options):
    found, expected = (MemoryCollection(dict(enumerate(points))) for _ in range(2))
    Collection.attach(found, scheduler=client, scratch=scratch, **options)
    Collection.attach(expected, **options)
    stored, wanted = found.stored, expected.stored
    assert found.manifest["n_neighbors"] == expected.manifest["n_neighbors"]
    assert stored.keys() == wanted.keys()
    for key, row in wanted.items():
        assert stored[key].nearest.neighbors == row.nearest.neighbors
        np.testing.assert_allclose(stored[key].edges.weights, row.edges.weights, atol=1e-6)
    return found


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_workers_find_the_same_neighbours(client, tmp_path, X, metric, capsys):
    same_graph(X, client, tmp_path, metric=metric, progress=True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_many_points_are_searched_in_cells(client, many):
    points = np.load(many / "points.npy")
    found = MemoryCollection(dict(enumerate(points)))
    Collection.attach(found, scheduler=client, n_neighbors=3, recall=0.95)
    assert len(found.stored) == len(points)
    for key in (0, 7, 20_000):
        near = np.argsort(((points - points[key]) ** 2).sum(axis=1))[1:5]
        assert len(set(found.stored[key].nearest.neighbors) & set(near.tolist())) >= 3


def test_a_folder_that_is_missing_is_told(client, tmp_path, X):
    database = MemoryCollection(dict(enumerate(X)))
    with pytest.raises(InputError, match="does not exist"):
        Collection.attach(database, scheduler=client, scratch=tmp_path / "none")
    with pytest.raises(InputError, match="of a scheduler"):
        Collection.attach(database, scratch=tmp_path)
    assert database.records == {}
