"""An index that workers built, in a database."""

import numpy as np
import pytest
from databases.memory import MemoryDatabase

from rankfold import Index
from rankfold.check import InputError
from rankfold.cluster import build_index


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_the_table_is_that_of_one_process(metric, client, X, shards, tmp_path):
    parts, database = shards("parquet", X), MemoryDatabase()
    options = {"metric": metric, "engine": database}
    build_index(parts.shards, "made", scheduler=client, scratch=tmp_path, **options)
    Index.build(X, parts.ids, parts.payload, path="whole", **options).close()
    with database.open("made").reading() as made, database.open("whole").reading() as whole:
        assert made.head.settings == whole.head.settings
        assert made.head.columns == whole.head.columns
        slots = whole.slots()
        np.testing.assert_array_equal(made.slots(), slots)
        assert made.points(slots, made.head.columns) == whole.points(slots, whole.head.columns)
        np.testing.assert_array_equal(made.vectors(slots), whole.vectors(slots))
        np.testing.assert_array_equal(made.places(slots), whole.places(slots))
        found, expected = made.rows(slots), whole.rows(slots)
    np.testing.assert_array_equal(found.lists.indices, expected.lists.indices)
    np.testing.assert_array_equal(found.lists.sq_distances, expected.lists.sq_distances)
    np.testing.assert_array_equal(found.sources, expected.sources)
    with Index.open("made", engine=database) as index:
        assert len(index.query("p7", top=5)) == 5
    with pytest.raises(InputError, match="made"):
        build_index(parts.shards, "made", scheduler=client, scratch=tmp_path, **options)


def test_many_points_are_copied_from_files(client, many, tmp_path):
    database = MemoryDatabase()
    options = {"scheduler": client, "scratch": tmp_path, "engine": database}
    build_index(many / "points.npy", "made", n_neighbors=3, recall=0.95, layout="none", **options)
    with database.open("made").reading() as made, Index.open(many / "whole") as whole:
        assert made.head.n_alive == len(whole)
        sample = np.arange(0, len(whole), 100)
        np.testing.assert_array_equal(made.vectors(sample), whole.vectors(sample.tolist()))
    assert not list(tmp_path.iterdir())
