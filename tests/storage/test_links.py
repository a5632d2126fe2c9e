"""A store reads, writes and deletes in its own folder alone, whatever lies there."""

import os
import shutil
import subprocess
import sys

import growing_store as growing
import pytest

from rankfold.errors import StorageError
from rankfold.storage import Store

pytestmark = pytest.mark.skipif(os.name != "posix", reason="links need rights on Windows")


@pytest.fixture
def path(tmp_path):
    """Return a store with a change that waits to be merged."""
    path = tmp_path / "store"
    growing.create(path)
    with Store.open(path, write=True) as store:
        growing.grow(store)
    return path


@pytest.fixture
def victim(tmp_path):
    """Return a file of somebody else."""
    victim = tmp_path / "thesis"
    victim.write_bytes(b"years of work" * 1000)
    return victim


def held(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in files(folder)}


def files(folder):
    return [path for path in folder.rglob("*") if path.is_file()]


def merge(path):
    with Store.open(path, write=True) as store:
        growing.merge(store)
        assert growing.check(store) == 1


@pytest.mark.parametrize("of_others", [True, False])
def test_segments_that_are_a_link_are_refused(tmp_path, path, of_others):
    elsewhere = tmp_path / "elsewhere"
    if of_others:  # as in an archive that somebody crafted
        shutil.rmtree(path / "segments")
        elsewhere.mkdir()
    else:  # as on a second disk
        (path / "segments").rename(elsewhere)
    (elsewhere / "thesis.txt").write_text("years of work")
    (elsewhere / "bulk-1.npy").write_text("years of work")
    (path / "segments").symlink_to(elsewhere)
    before = held(elsewhere)
    for write in (False, True):
        with pytest.raises(StorageError, match=r"is a symbolic link.*move its whole folder there"):
            Store.open(path, write=write)
    with pytest.raises(StorageError, match="is a symbolic link"):
        growing.create(path, replace=True)
    assert held(elsewhere) == before


def test_a_link_to_the_whole_folder_is_fine(tmp_path, path):
    (tmp_path / "link").symlink_to(path)
    merge(tmp_path / "link")
    with Store.open(path) as store:
        assert store.n_pending == 0


def test_what_others_put_beside_the_segments_stays(path, victim):
    segments = path / "segments"
    (segments / ".ipynb_checkpoints").mkdir()
    (segments / ".ipynb_checkpoints" / "note-1.npy").write_text("note")
    (segments / "notes.txt").write_text("note")
    (segments / "bulk-77.npy").write_text("named like one of ours")
    (segments / "values-78.npy").symlink_to(victim)
    (segments / "values-79.npy").mkdir()
    merge(path)
    assert {found.name for found in segments.iterdir()} == {
        "bulk-2.npy", "values-2.npy", "bulk-77.npy", "notes.txt", ".ipynb_checkpoints",
        "values-78.npy", "values-79.npy",
    }  # fmt: skip


@pytest.mark.parametrize("kind", ["link", "dangling", "file", "folder"])
def test_nothing_is_written_through_what_has_the_name_of_the_next_segment(path, victim, kind):
    before = victim.read_bytes()
    planted = path / "segments" / "bulk-2.npy"
    if kind == "link":
        planted.symlink_to(victim)
    elif kind == "dangling":
        planted.symlink_to(victim.with_name("new"))
    elif kind == "file":
        planted.write_bytes(before)
    else:
        planted.mkdir()
    with (
        Store.open(path, write=True) as store,
        pytest.raises(StorageError, match="is in the way, and was not written by this index"),
    ):
        growing.merge(store)
    assert victim.read_bytes() == before
    assert not victim.with_name("new").exists()
    if kind in ("link", "folder"):
        assert planted.exists()
    with Store.open(path) as store:
        assert growing.check(store) == 1


@pytest.mark.parametrize("name", ["index.sqlite", "index.sqlite-wal", "index.sqlite-shm",
                                  "writer.lock", "writer.lock-journal"])  # fmt: skip
@pytest.mark.parametrize("kind", ["link", "dangling", "folder", "fifo"])
def test_files_of_the_store_that_lie_elsewhere_are_refused(path, victim, name, kind):
    before = victim.read_bytes()
    moved = victim.with_name("moved")
    if (path / name).exists():
        (path / name).rename(moved)
    target = moved if name == "index.sqlite" else victim
    if kind == "folder":
        (path / name).mkdir()
    elif kind == "fifo":
        os.mkfifo(path / name)
    else:
        (path / name).symlink_to(target if kind == "link" else victim.with_name("new"))
    for write in (False, True):
        with pytest.raises(StorageError, match=r"link or no file|holds no 'index.sqlite'"):
            Store.open(path, write=write)
    assert victim.read_bytes() == before
    assert not victim.with_name("new").exists()


def test_a_segment_that_is_a_link_is_refused(path, victim):
    segment = path / "segments" / "bulk-1.npy"
    segment.rename(victim)
    segment.symlink_to(victim)
    with pytest.raises(StorageError, match=r"bulk-1.npy' is a link or no file"):
        Store.open(path)


def test_files_with_a_second_name_are_read_but_not_written(tmp_path, path):
    copy = tmp_path / "copy"
    shutil.copytree(path, copy, copy_function=os.link)
    with Store.open(copy) as store:
        assert growing.check(store) == 1
    with pytest.raises(StorageError, match=r"has 2 names \(hard links\)"):
        Store.open(copy, write=True)


def journal(above):
    """Return the journal of a transaction that a file ``above`` would have joined with others."""
    magic = bytes.fromhex("d9d505f920a163d7")
    header = [0, 0, 1, 512, 4096]  # no pages; their checksums begin at 0; of a database of one page
    start = magic + b"".join(number.to_bytes(4, "big") for number in header)
    name = os.fsencode(above)
    page = (2**30 // 4096 + 1).to_bytes(4, "big")
    end = len(name).to_bytes(4, "big") + (sum(name) % 2**32).to_bytes(4, "big") + magic
    return start.ljust(512, b"\0") + page + name + end


@pytest.mark.parametrize("name", ["index.sqlite", "writer.lock"])
def test_sqlite_is_not_led_to_delete_a_file(path, victim, name):
    if name == "writer.lock":
        shutil.copy(path / "index.sqlite", path / name)
    (path / f"{name}-journal").write_bytes(journal(victim))
    with pytest.raises(StorageError, match=r"no file of an index|must be empty"):
        Store.open(path, write=True)
    assert victim.exists()


def test_only_what_an_interrupted_creation_wrote_is_removed(tmp_path, victim):
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    names = [f".store.{process.pid}.0123abc{i}.partial" for i in range(5)]
    ours, linked, strange, named, within = (tmp_path / name for name in names)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    linked.symlink_to(elsewhere)
    for folder in (ours, strange, within):
        (folder / "segments").mkdir(parents=True)
        (folder / "segments" / "bulk-1.npy").write_bytes(b"")
        (folder / "index.sqlite").write_bytes(b"")
    (strange / "thesis").write_bytes(b"years of work")
    (within / "segments" / "thesis").write_bytes(b"years of work")
    named.write_bytes(b"a file")
    growing.create(tmp_path / "store")
    assert not ours.exists()
    assert not list(elsewhere.iterdir())
    assert linked.is_symlink()
    assert (strange / "thesis").exists()
    assert (within / "segments" / "thesis").exists()
    assert named.exists()
