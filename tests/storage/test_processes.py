"""Writers that are killed, and readers beside a writer: with real processes."""

import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import growing_store as growing
import pytest

from rankfold.errors import InputError, StorageError
from rankfold.storage import Store

SCRIPT = Path(growing.__file__)
N_KILLS = int(os.environ.get("RANKFOLD_KILLS", "50")) // 2
"""How often each of two kinds of writers is killed; more can be asked for, as the docs do."""

few_or_many = pytest.mark.parametrize(
    "n_kills", [3, pytest.param(N_KILLS, marks=pytest.mark.slow)], ids=["few", "many"]
)


def start(*arguments):
    return subprocess.Popen(
        [sys.executable, str(SCRIPT), *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def let_grow(process):
    """Let a process begin to write; return the number of its first change."""
    process.stdin.write("go\n")
    process.stdin.flush()
    return int(process.stdout.readline())


def kill(process):
    """Kill a process at once; return the last number that it wrote."""
    process.kill()
    lines = process.stdout.read().splitlines()
    process.stdin.close()
    process.stdout.close()
    process.wait()
    return max(map(int, lines), default=0)


@few_or_many
@pytest.mark.parametrize("every", [1, 4])
def test_every_acknowledged_change_survives_a_kill(tmp_path, every, n_kills):
    path = tmp_path / "store"
    growing.create(path)
    moments = random.Random(every)
    last = 0
    waiting = start("grow", path, every)
    for _ in range(n_kills):
        process, waiting = waiting, start("grow", path, every)  # one starts while one writes
        first = let_grow(process)
        time.sleep(moments.uniform(0, 0.1))
        acknowledged = max(first, kill(process))
        with Store.open(path, write=moments.random() < 0.5) as store:
            found = growing.check(store)
            assert last < acknowledged <= found <= acknowledged + 1
        last = found
    kill(waiting)
    print(f"{n_kills} writers of a store killed, all of {last} changes kept")  # noqa: T201
    with Store.open(path, write=True) as store:
        growing.merge(store)
        assert len(list((path / "segments").iterdir())) == len(store.arrays)


@pytest.mark.parametrize("n_kills", [2, pytest.param(10, marks=pytest.mark.slow)])
def test_a_kill_while_creating_leaves_all_or_nothing(tmp_path, n_kills):
    moments = random.Random(0)
    path = tmp_path / "store"
    for _ in range(n_kills):
        process = start("create", path)
        while not list(tmp_path.iterdir()):
            time.sleep(0.001)
        time.sleep(moments.uniform(0, 0.03))
        kill(process)
        if not path.exists():
            growing.create(path)  # what was left behind is not in its way
        with Store.open(path, write=True) as store:
            assert growing.check(store) == 0
        assert {p.name for p in tmp_path.iterdir()} == {"store"}
        shutil.rmtree(path)


def test_only_what_dead_processes_left_is_removed(tmp_path):
    process = start("create", tmp_path / "other")
    theirs = tmp_path / f".store.{process.pid}.0123abcd.partial"
    of_another_name = tmp_path / f".store.7.{process.pid}.0123abcd.partial"
    theirs.mkdir()  # and not locked yet
    of_another_name.mkdir()
    growing.create(tmp_path / "store")
    assert theirs.is_dir()
    kill(process)
    shutil.rmtree(tmp_path / "store")
    growing.create(tmp_path / "store")
    assert not theirs.exists()
    assert of_another_name.is_dir()


@pytest.mark.parametrize("n_attempts", [1, pytest.param(3, marks=pytest.mark.slow)])
def test_of_those_who_create_at_once_one_succeeds(tmp_path, n_attempts):
    for attempt in range(n_attempts):
        path = tmp_path / f"store{attempt}"
        processes = [
            subprocess.Popen(
                [sys.executable, str(SCRIPT), "create", str(path)],
                stderr=subprocess.PIPE,
                text=True,
            )
            for _ in range(4)
        ]
        errors = [process.communicate(timeout=120)[1] for process in processes]
        assert sorted(process.returncode for process in processes) == [0, 1, 1, 1]
        for error in filter(None, errors):
            assert "exists already" in error or "someone else meanwhile" in error
        with Store.open(path, write=True) as store:
            assert growing.check(store) == 0
    assert len(list(tmp_path.iterdir())) == n_attempts


@pytest.mark.parametrize("n_kills", [2, pytest.param(5, marks=pytest.mark.slow)])
def test_a_kill_while_replacing_leaves_the_old_or_the_new(tmp_path, n_kills):
    moments = random.Random(0)
    path = tmp_path / "store"
    growing.create(path)
    with Store.open(path, write=True) as store:
        growing.grow(store)
    for generation in range(1, n_kills + 1):
        process = start("replace", path)
        while process.poll() is None and len(list((path / "segments").iterdir())) == 2:
            time.sleep(0.001)
        time.sleep(moments.uniform(0, 0.02))
        kill(process)
        with Store.open(path, write=True) as store:
            assert store.ids_of([0]) == ["point-0"]
            assert store.n_points == 1 + store.n_pending * len(growing.added(1))
            assert store.version.generation <= generation + 1
            assert len(list((path / "segments").iterdir())) == 2


def test_readers_beside_a_writer_see_whole_states(tmp_path):
    path = tmp_path / "store"
    growing.create(path)
    process = start("grow", path, 3)
    try:
        let_grow(process)
        with Store.open(path) as store:
            versions = [store.version]
            while versions[-1].generation < 10:
                growing.check(store)
                with Store.open(path) as another:
                    growing.check(another)
                versions.append(store.version)
    finally:
        kill(process)
    assert versions == sorted(versions)


def test_a_snapshot_outlives_a_merge(tmp_path):
    path = tmp_path / "store"
    growing.create(path)
    with Store.open(path, write=True) as writer, Store.open(path) as reader:
        growing.grow(writer)
        with reader.reading() as version:
            arrays = reader.arrays
            for _ in range(30):
                growing.grow(writer)
            growing.merge(writer)
            assert growing.check(reader) == version.sequence == 1
            assert writer.version == (2, 31)
        assert arrays["values"].tolist() == [0]
        assert growing.check(reader) == 31
        assert reader.n_pending == 0


def test_one_writer_at_a_time(tmp_path):
    path = tmp_path / "store"
    growing.create(path)
    process = start("grow", path, 5)
    let_grow(process)
    with pytest.raises(StorageError, match="open for writing elsewhere"):
        Store.open(path, write=True)
    with pytest.raises(StorageError, match="open for writing elsewhere"):
        growing.create(path, replace=True)
    kill(process)
    with Store.open(path, write=True), pytest.raises(StorageError, match="one writer at a time"):
        Store.open(path, write=True)
    with Store.open(path) as store, pytest.raises(InputError, match="write=True"):
        growing.grow(store)
