"""Writers to Milvus that are killed leave everything or nothing."""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from databases.milvus_files import collections, milvus_address, same_points
from databases.tables import COLUMNS, fill, points, same_rows
from databases.writing_milvus import NAME, the_change

from rankfold.databases.milvus import Milvus

TESTS = Path(__file__).parents[1]
KILLED, ENDED = "-9", "0"
MOST_WRITES = 14


def killed_at_each_write(folders, action):
    """Have an action killed before its first write in the first folder, and so on.

    Return which came to an end, as they have fewer writes.
    """
    process = subprocess.run(
        [sys.executable, "-m", "databases.writing_milvus", action, *map(milvus_address, folders)],
        cwd=TESTS,
        capture_output=True,
        text=True,
        check=False,
    )
    outcomes = process.stdout.split()
    assert len(outcomes) == len(folders), process.stderr
    assert set(outcomes) <= {KILLED, ENDED}, process.stderr
    return [outcome == ENDED for outcome in outcomes]


@pytest.fixture
def filled(tmp_path):
    """Return folders with copies of an index, its points and its rows."""
    given, true = fill(Milvus(milvus_address(tmp_path)), NAME)
    folders = [tmp_path / str(number) for number in range(MOST_WRITES)]
    for folder in folders:
        shutil.copytree(tmp_path / "test.db", folder / "test.db")
    return folders, given, true


def test_a_change_is_whole_or_not_there(filled):
    folders, given, _ = filled
    ended = killed_at_each_write(folders[:7], "commit")
    assert ended == [False] * 6 + [True]  # the sixth write is the one that counts
    made, after = the_change(given)
    for folder, is_made in zip(folders, ended, strict=False):
        table = Milvus(milvus_address(folder)).open(NAME)
        with table.reading() as session:
            assert session.head.version == 1 + is_made
            same_points(session, after if is_made else given)
        if not is_made:
            with table.writing() as writing:
                same_points(writing, given)
                writing.commit(made)
        with table.reading() as session:
            assert session.head[:3] == (2, 22, 20)
            same_points(session, after)
        table.close()


def test_payload_is_changed_as_a_whole_or_not(filled):
    folders, given, true = filled
    ended = killed_at_each_write(folders[:4], "payload")
    assert ended == [False] * 3 + [True]
    for folder, is_made in zip(folders, ended, strict=False):
        table = Milvus(milvus_address(folder)).open(NAME)
        colors = ["blue"] * 20 if is_made else given.payload["color"]
        for begin in (table.reading, table.writing, table.reading):
            with begin() as session:  # the one that may write takes away what is left
                same_rows(session.rows(given.slots), true)
                _, payload = session.points(given.slots, COLUMNS)
            assert payload == {**given.payload, "color": colors}
        table.close()


def test_what_a_filling_left_is_taken_away_by_the_next(filled):
    folders, _, _ = filled
    assert not any(killed_at_each_write(folders[:4], "fill"))
    for folder in folders[1:4]:
        database = Milvus(milvus_address(folder))
        left = collections(folder)
        assert len(left) == 1 + 3 + 3
        assert database.names() == [NAME]
        fill(database, "other")
        assert database.names() == [NAME, "other"]
        assert len(collections(folder)) == 1 + 3 + 3
        assert len(set(left) & set(collections(folder))) == 1 + 3


def test_an_index_is_replaced_as_a_whole_or_not(filled):
    folders, _, _ = filled
    ended = killed_at_each_write(folders, "replace")
    assert ended == sorted(ended)
    assert ended[-1]
    outcomes = []
    for folder in folders:
        database = Milvus(milvus_address(folder))
        table = database.open(NAME)
        with table.reading() as session:
            outcomes.append(session.head[:3])
            same_points(session, points(np.arange(session.head.n_points)))
        table.close()
        fill(database, "other")
        assert len(collections(folder)) == 1 + 3 + 3
    assert set(outcomes) == {(1, 20, 20), (2, 12, 12)}
    assert outcomes == sorted(outcomes)
