"""Where files are sought, in which order, and what damaged ones are told."""

import hashlib
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.io import loadmat, savemat

from rankfold import InputError, datasets
from rankfold.datasets.files import FILES, locate, read_points


@pytest.mark.parametrize("name", FILES)
def test_the_recorded_bytes_are_those_of_the_files(folder, name):
    path = folder / name
    if not path.is_file():
        pytest.skip(f"{name} is not in the folder of the data")
    assert hashlib.sha256(path.read_bytes()).hexdigest() == FILES[name].sha256


def test_the_page_lists_every_data_set(load):
    text = (Path(__file__).parents[2] / "docs" / "datasets.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| ([\d,]+) \|", text, re.MULTILINE))
    assert list(rows) == list(datasets.DATASETS)
    for name, n_points in rows.items():
        assert n_points == f"{len(load(name).labels):,}"


@pytest.mark.parametrize("name", FILES)
def test_the_page_names_file_source_and_bytes(name):
    text = (Path(__file__).parents[2] / "docs" / "datasets.md").read_text(encoding="utf-8")
    file = FILES[name]
    (row,) = (line for line in text.splitlines() if line.startswith(f"| `{name}`"))
    rows, columns = file.shape
    assert f"| `{file.points}` ({rows} x {columns}), `{file.labels}` |" in row
    assert f"`{file.sha256[:8]}`" in row
    for url in file.urls:
        assert "/".join(url.split("/")[3:5]) in row


@pytest.mark.parametrize("name", FILES)
def test_shapes_are_those_of_the_files(folder, name):
    points, labels = read_points(locate(name, folder), FILES[name])
    assert points.shape == FILES[name].shape
    assert labels.shape == points.shape[:1]


@pytest.mark.parametrize("name", [name for name in FILES if name != "mnist_70k.npz"])
def test_addresses_are_pinned_to_a_commit(name):
    pinned = r"https://raw\.githubusercontent\.com/[\w-]+/[\w-]+/[0-9a-f]{40}/[\w/]+\.mat"
    assert FILES[name].urls
    for url in FILES[name].urls:
        assert re.fullmatch(pinned, url)


def test_places_are_tried_in_order(source, cache, offer, content, tmp_path, monkeypatch):
    offer(source.url)
    given, own = tmp_path / "given", tmp_path / "own"
    for folder in (given, own):
        folder.mkdir()
        (folder / "yale_diff.mat").write_bytes(content)
    monkeypatch.setenv("RANKFOLD_DATA", str(own))
    assert locate("yale_diff.mat", given) == given / "yale_diff.mat"
    assert locate("yale_diff.mat", str(given)) == given / "yale_diff.mat"
    assert locate("yale_diff.mat") == own / "yale_diff.mat"
    assert source.requests == []
    assert not cache.exists()
    (own / "yale_diff.mat").unlink()
    assert locate("yale_diff.mat") == cache / "yale_diff.mat"
    assert len(source.requests) == 1
    monkeypatch.setenv("RANKFOLD_DATA", "")
    assert locate("yale_diff.mat") == cache / "yale_diff.mat"
    assert len(source.requests) == 1


def test_a_given_folder_is_the_only_place(source, cache, offer, content, tmp_path, monkeypatch):
    offer(source.url)
    (tmp_path / "yale_diff.mat").write_bytes(content)
    monkeypatch.setenv("RANKFOLD_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="the folder that was given, so it was sought now"):
        datasets.load("yale", tmp_path / "elsewhere")
    assert source.requests == []


@pytest.mark.parametrize("named", [False, True])
def test_mnist_is_not_downloaded(cache, tmp_path, monkeypatch, named):
    if named:
        monkeypatch.setenv("RANKFOLD_DATA", str(tmp_path))
    place = "into that folder" if named else "into a folder, name it in RANKFOLD_DATA"
    holds = "Put mnist_70k.npz (it holds the arrays X (70000 x 784) and y (70000 labels)) " + place
    with pytest.raises(FileNotFoundError, match=re.escape(holds)):
        datasets.load("mnist")
    with pytest.raises(FileNotFoundError, match="RANKFOLD_DATA is tried"):
        datasets.load("mnist", tmp_path)


def test_a_version_of_ones_own_is_read(tmp_path):
    X = np.arange(12.0).reshape(4, 3)
    savemat(tmp_path / "coil20.mat", {"X": X, "Y": [[1], [1], [2], [2]]})
    np.savez(tmp_path / "mnist_70k.npz", X=X.astype(np.uint8), y=np.array([1, 1, 2, 2]))
    for name in ("coil20", "mnist"):
        own = datasets.load(name, tmp_path)
        assert (own.X == X).all()
        assert own.labels.tolist() == [1, 1, 2, 2]


@pytest.mark.parametrize("share", [0.0, 0.0005, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9])
def test_a_truncated_file_gives_a_clear_error(content, tmp_path, share):
    path = tmp_path / "yale_diff.mat"
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(InputError, match=r"yale_diff.mat' cannot be used \(.*It must hold the arr"):
        datasets.load("yale", tmp_path)


def test_no_cut_changes_what_is_read(content, tmp_path):
    path = tmp_path / "yale_diff.mat"
    path.write_bytes(content)
    whole = loadmat(path)
    for length in np.random.default_rng(0).integers(0, len(content), 60):
        path.write_bytes(content[:length])
        try:
            found = datasets.load("yale", tmp_path)
        except InputError:
            continue
        assert np.array_equal(found.X, whole["Diff"])
        assert np.array_equal(found.labels, whole["labels"].ravel())


def test_a_truncated_archive_gives_a_clear_error(tmp_path):
    path = tmp_path / "mnist_70k.npz"
    np.savez(path, X=np.zeros((50, 784), np.uint8), y=np.zeros(50, np.uint8))
    whole = path.read_bytes()
    for length in (0, 10, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(InputError, match=r"mnist_70k.npz' cannot be used"):
            datasets.load("mnist", tmp_path)


@pytest.mark.parametrize(
    ("arrays", "reason"),
    [
        ({"X": np.eye(3)}, "KeyError: 'Y'"),
        ({"X": "words", "Y": [[1]]}, "instead of numbers"),
        ({"X": np.eye(3), "Y": [[1], [2]]}, r"shapes \(3, 3\) and \(2, 1\)"),
        ({"X": np.zeros((2, 2, 2)), "Y": [[1], [2]]}, r"shapes \(2, 2, 2\) and \(2, 1\)"),
    ],
)
def test_another_file_gives_a_clear_error(tmp_path, arrays, reason):
    savemat(tmp_path / "umist.mat", arrays)
    with pytest.raises(InputError, match=reason):
        datasets.load("umist", tmp_path)
