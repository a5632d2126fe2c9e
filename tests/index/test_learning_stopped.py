"""Learning that is stopped leaves the index as it was, and goes on where it stopped."""

import signal
import subprocess
import sys
import zipfile
from dataclasses import replace

import numpy as np
import pytest
from index.test_learning import MOONS, RINGS
from index_cases import backend_of

from rankfold import Index
from rankfold.graph.collective import Learning
from rankfold.index import build
from rankfold.index.build import STAGE, Stages

KILLED = """
import os, signal, sys
from rankfold import Index
from rankfold.index.build import Stages

write = Stages.write

def write_and_die(self, stage):
    write(self, stage)
    os.kill(os.getpid(), signal.SIGKILL)

Stages.write = write_and_die
Index.open(sys.argv[1], write=True).learn()
"""


def interrupted(*_, **__):
    raise KeyboardInterrupt


def stop_after_first_stage(index, monkeypatch):
    """Press Ctrl-C when the first stage is kept."""

    def write_and_stop(self, stage):
        write(self, stage)
        raise KeyboardInterrupt

    write = Stages.write
    with monkeypatch.context() as patch:
        patch.setattr(Stages, "write", write_and_stop)
        with pytest.raises(KeyboardInterrupt):
            index.learn()


@pytest.fixture
def rounds_made(monkeypatch):
    """Count the rounds that are made."""
    made, lifts = [], Learning._lifts

    def counted(self, *arguments):
        made.append(self)
        return lifts(self, *arguments)

    monkeypatch.setattr(Learning, "_lifts", counted)
    return made


def check_same(one, other):
    assert one.settings() == other.settings()
    for name, array in one.arrays().items():
        np.testing.assert_array_equal(array, other.arrays()[name])
        assert array.dtype == other.arrays()[name].dtype


def altered(found, what):
    """Change a constant of a learning, or a list as a search that is not exact may."""
    if what == "constant":
        return replace(found, weight=5.0)
    indices = found.candidates.indices.copy()
    indices[7, -2:] = indices[7, :-3:-1]
    return replace(found, candidates=replace(found.candidates, indices=indices))


def left_over(path):
    return sorted(one.name for one in path.iterdir() if "learning" in one.name)


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("X", "rounds"), [(RINGS, 3), (MOONS, 2)])
def test_a_process_that_is_killed_goes_on(tmp_path, rounds_made, X, rounds):
    path = tmp_path / "index"
    with Index.build(X, path=path) as index:
        index.copy(tmp_path / "other")
        before, facts = index.query(3, top=50), index.info()
    done = subprocess.run([sys.executable, "-c", KILLED, str(path)], capture_output=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert left_over(path) == [STAGE]
    with Index.open(path, write=True) as index:
        assert index.info() == facts
        np.testing.assert_array_equal(index.query(3, top=50).scores, before.scores)
        found = index.learn()
        assert len(rounds_made) == rounds - 1
        assert left_over(path) == []
        with Index.open(tmp_path / "other", write=True) as other:
            check_same(found, other.learn())
            assert len(rounds_made) == 2 * rounds - 1
            assert index.query(3, top=50).ids == other.query(3, top=50).ids


@pytest.mark.parametrize("moment", ["learning", "keeping", "writing", "committing"])
def test_an_interruption_leaves_the_index_as_it_was(tmp_path, monkeypatch, moment):
    from rankfold.storage import database, store

    where = {
        "learning": (Learning, "_lifts"),
        "keeping": (np, "savez"),
        "writing": (store, "write_segments"),
        "committing": (database.Manifest, "write"),
    }[moment]
    path = tmp_path / "index"
    with Index.build(RINGS, path=path) as index:
        index.add(RINGS[:3] + 0.01)
        index.remove([5])
        before, facts = index.query(3, top=50), index.info()
        with monkeypatch.context() as patch:
            patch.setattr(*where, interrupted)
            with pytest.raises(KeyboardInterrupt):
                index.learn()
        assert index.info() == facts
        np.testing.assert_array_equal(index.query(3, top=50).scores, before.scores)
        assert left_over(path) == ([STAGE] if moment in ("writing", "committing") else [])
        backend_of(index).store.verify()
        assert index.learn().n_rounds
        assert left_over(path) == []


@pytest.mark.parametrize("change", ["add", "merge", "smoothness", "constant", "candidates"])
def test_a_stage_of_another_state_is_not_used(tmp_path, monkeypatch, rounds_made, change):
    path, settings = tmp_path / "index", {}
    with Index.build(RINGS, path=path) as index:
        stop_after_first_stage(index, monkeypatch)
        assert (left_over(path), len(rounds_made)) == ([STAGE], 1)
        if change == "add":
            index.add(RINGS[:1] + 0.01)
        elif change == "merge":
            index.save()
            assert left_over(path) == []
        elif change == "smoothness":
            settings["smoothness"] = 10.0
        else:
            learning_of = build.learning_of
            monkeypatch.setattr(
                build, "learning_of", lambda *a, **k: altered(learning_of(*a, **k), change)
            )
        found = index.learn(**settings)
        assert len(rounds_made) == 1 + len(found.rounds)
        assert left_over(path) == []


def damaged_in_the_middle(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 255
    path.write_bytes(content)


def of_another_shape(path):
    with np.load(path) as archive:
        arrays = dict(archive)
    np.savez(path, **{**arrays, "lifted": arrays["lifted"][:-1]})


def with_odd_values(path):
    with np.load(path) as archive:
        arrays = dict(archive)
    arrays["lifted"][0, 0] = np.nan
    np.savez(path, **arrays)


def of_objects(path):
    with np.load(path) as archive:
        described = archive["described"]
    np.savez(path, described=described, lifted=np.array([{}], dtype=object))


def with_an_odd_header(path):
    with zipfile.ZipFile(path) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in contents.items():
            archive.writestr(name, content.replace(b"}   ", b"(   ", 1))


def that_unpacks_to_much(path):
    with np.load(path) as archive:
        arrays = dict(archive)
    padded = np.concatenate([arrays["described"], np.full(2**24, ord(" "), dtype=np.uint8)])
    np.savez_compressed(path, **{**arrays, "described": padded})


DAMAGES = {
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-500]),
    "empty": lambda path: path.write_bytes(b""),
    "text": lambda path: path.write_text("no archive"),
    "too large": lambda path: path.write_bytes(path.read_bytes() + bytes(2**17)),
    "middle": damaged_in_the_middle,
    "shape": of_another_shape,
    "values": with_odd_values,
    "objects": of_objects,
    "header": with_an_odd_header,
    "unpacks to much": that_unpacks_to_much,
    "other arrays": lambda path: np.savez(path, lifted=np.zeros(3)),
    "no description": lambda path: np.savez(path, described=np.zeros(3, dtype=np.uint8)),
}


@pytest.mark.one_in(4)
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_stage_is_not_used(tmp_path, monkeypatch, rounds_made, damage):
    path = tmp_path / "index"
    with Index.build(RINGS, path=path) as index:
        stop_after_first_stage(index, monkeypatch)
        DAMAGES[damage](path / STAGE)
        (path / f".{STAGE}.1-0123abcd.partial").write_bytes(b"left by somebody who was killed")
        found = index.learn()
        assert len(rounds_made) == 1 + len(found.rounds)
        assert left_over(path) == []


def test_a_stage_is_read_by_whoever_comes_next(tmp_path, monkeypatch, rounds_made):
    path = tmp_path / "index"
    with Index.build(RINGS, path=path) as index:
        stop_after_first_stage(index, monkeypatch)
        stage = (path / STAGE).read_bytes()
        expected = index.learn()
        index.unlearn()
        assert len(rounds_made) == 3
        (path / STAGE).write_bytes(stage)  # of a generation before
        check_same(index.learn(), expected)
        assert len(rounds_made) == 6
        assert left_over(path) == []
