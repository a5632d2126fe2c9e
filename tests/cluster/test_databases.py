"""An index that workers built, in a database."""

import numpy as np
import pyarrow.parquet
import pytest
from dask._task_spec import Task
from databases.memory import MemoryDatabase
from databases.milvus_files import milvus_address, names_in_another_process

from rankfold import Index
from rankfold.check import InputError
from rankfold.cluster import build_index
from rankfold.cluster.ranking import Address, answer, forget


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


def test_ids_that_come_twice_are_named(client, tmp_path):
    database = MemoryDatabase()
    for name in "ab":
        table = {"vector": [[0.0, 1.0], [1.0, 0.0]], "id": ["7", name]}
        pyarrow.parquet.write_table(pyarrow.table(table), tmp_path / f"{name}.parquet")
    options = {"scheduler": client, "engine": database, "n_neighbors": 1}
    with pytest.raises(InputError, match="ids are given more than once: '7'"):
        build_index(tmp_path, "made", **options)
    assert database.names() == []


def test_a_worker_closes_what_it_opened(tmp_path):
    address = milvus_address(tmp_path)
    Index.build(np.eye(5), path="five", engine=address, n_neighbors=2).close()
    ids, _ = answer("five", Address(address), [0], np.empty((0, 5)), {"top": 2})
    assert len(ids[0]) == 2
    assert names_in_another_process(tmp_path).stdout.startswith("UnreachableError")
    forget()
    assert names_in_another_process(tmp_path).stdout == "['five']"


def test_no_worker_writes_a_password_to_its_log():
    given = Task("key", answer, "digits", Address("postgresql://ann:secret@host/db"))
    assert "digits" in repr(given)
    assert "secret" not in repr(given)


def test_many_points_are_copied_from_files(client, many, tmp_path):
    database = MemoryDatabase()
    options = {"scheduler": client, "scratch": tmp_path, "engine": database}
    build_index(many / "points.npy", "made", n_neighbors=3, recall=0.95, layout="none", **options)
    with database.open("made").reading() as made, Index.open(many / "whole") as whole:
        assert made.head.n_alive == len(whole)
        sample = np.arange(0, len(whole), 100)
        np.testing.assert_array_equal(made.vectors(sample), whole.vectors(sample.tolist()))
    assert not list(tmp_path.iterdir())
