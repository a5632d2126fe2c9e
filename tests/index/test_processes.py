"""Writers that are killed, and readers beside a writer: with real processes."""

import os
import random
import time

import growing_index as growing
import pytest
from growing_index import Writer
from index_cases import backend_of, check_holds, stored_payload

from rankfold import Index
from rankfold.errors import StorageError

N_KILLS = int(os.environ.get("RANKFOLD_KILLS", "50"))
"""How many writers are killed; more can be asked for, as the docs do."""

LATE = 500
"""Changes that a writer may have made while a reader looked."""


def check_state(index, least, most):
    """Require that an index is in the state after ``least`` to ``most`` changes; return which."""
    with backend_of(index).current():
        held = index.ids, stored_payload(index)
    for number in range(least, most + 1):
        expected = growing.after(number)
        if held == (expected.ids, expected.columns()):
            return number, expected
    raise AssertionError(f"after {least} to {most} changes there are {held}")


@pytest.mark.parametrize(
    "n_kills", [3, pytest.param(N_KILLS, marks=pytest.mark.slow)], ids=["few", "many"]
)
def test_every_acknowledged_change_survives_a_kill(tmp_path, n_kills):
    path = tmp_path / "index"
    growing.create(path)
    moments = random.Random(0)
    found = 0
    with Writer(path) as writer:
        for _ in range(n_kills):
            told = writer.start(found)
            time.sleep(moments.uniform(0, 0.05))
            told = max(told, writer.kill())
            with Index.open(path, write=moments.random() < 0.5) as index:
                found, expected = check_state(index, told, told + 1)
                check_holds(index, expected)
    print(f"{n_kills} writers of an index killed, all of {found} changes kept")  # noqa: T201
    assert found >= n_kills


def test_readers_follow_a_writer_in_another_process(tmp_path):
    path = tmp_path / "index"
    growing.create(path)
    seen, generations = [], set()
    with Index.open(path) as reader, Writer(path) as writer:
        number = writer.start(0)
        try:
            while len(generations) < 4:
                number, _ = check_state(reader, number, number + LATE)
                seen.append(number)
                generations.add(reader.info()["generation"])
                with backend_of(reader).current():
                    answer = reader.query(vectors=[0.0, 0.0, 0.0], top=100)
                    assert sorted(answer.ids) == sorted(reader.ids)
                with Index.open(path) as another:
                    check_state(another, number, number + LATE)
        finally:
            last = writer.kill()
        _, expected = check_state(reader, last, last + 1)
        check_holds(reader, expected)
    assert len(set(seen)) > 3


def test_a_reader_that_was_opened_before_a_merge_goes_on(tmp_path):
    path = tmp_path / "index"
    growing.create(path)
    expected = growing.first()
    with Index.open(path, write=True) as writer, Index.open(path) as reader:
        for number in range(12):
            growing.change(writer, expected, number)
            if number % 4 == 0:
                writer.save()
            check_holds(reader, expected)
            ours, theirs = (one.query(expected.ids[5], top=100) for one in (reader, writer))
            assert ours.ids == theirs.ids
        assert reader.info() == writer.info()


def test_one_writer_at_a_time(tmp_path):
    path = tmp_path / "index"
    growing.create(path)
    with Writer(path) as writer:
        writer.start(0)
        try:
            with pytest.raises(StorageError, match="one writer at a time"):
                Index.open(path, write=True)
            with pytest.raises(StorageError, match="open for writing elsewhere"):
                Index.build([[1.0], [2.0]], path=path, replace=True)
        finally:
            writer.kill()
    with Index.open(path, write=True), pytest.raises(StorageError, match="open for writing"):
        Index.open(path, write=True)
