"""``rankfold index``."""

import json
import shutil
import signal

import h5py
import numpy as np
import pytest
from PIL import Image

from rankfold import Index


@pytest.fixture
def done(call):
    """Run a command that must go well, and return what it prints."""

    def done(*words, **options):
        result = call(*words, **options)
        assert result.exit_code == 0, result.output
        assert result.stderr == ""
        return result.stdout

    return done


def content(folder):
    """Return all that an index knows of its points."""
    with Index.open(folder) as index:
        ids = index.ids
        results = index.query(ids[0], top=len(ids))
        return ids, index.vectors(ids).tolist(), results.ids, results.payload


def test_more_neighbours_than_points_are_told_of(call, vectors, moons):
    n = len(moons.X)
    result = call("index", "build", vectors, "-o", "wide", "--neighbors", 2 * n, "--layout", "none")
    assert result.exit_code == 0, result.output
    assert f"{n} points have up to {n - 2} neighbours each" in result.stderr


def test_build_equals_the_library(done, vectors, moons, tmp_path):
    (tmp_path / "names.txt").write_text("".join(f"{row + 10}\n" for row in range(len(moons.X))))
    rows = "".join(f"{label}\n" for label in moons.labels)
    (tmp_path / "payload.csv").write_text(f"moon\n{rows}")
    printed = done(
        *["index", "build", vectors, "-o", "made", "--neighbors", 7],
        *["--ids", "names.txt", "--payload", "payload.csv", "--metric", "cosine"],
    )
    assert (
        printed
        == "made: 400 points, 2 features, 1 column (moon), cosine, 7 neighbours, plane map\n"
    )
    ids = list(range(10, 410))
    Index.build(
        moons.X, ids, {"moon": moons.labels}, path="same", metric="cosine", n_neighbors=7
    ).close()
    assert content("made") == content("same")


def test_metric_is_that_of_the_file(done, tmp_path, moons):
    with h5py.File(tmp_path / "words.hdf5", "w") as file:
        file.attrs["distance"] = "angular"
        file["train"] = moons.X
        file["other"] = moons.X[:50]
    assert "cosine" in done("index", "build", "words.hdf5", "-o", "a")
    words = ["--metric", "euclidean", "--dataset", "other"]
    assert "50 points, 2 features, 0 columns, euclidean" in done(
        "index", "build", "words.hdf5", "-o", "b", *words
    )


def test_columns_are_chosen(done, tmp_path):
    rows = "".join(f"k{i},{i},{i * i % 7},{i},red\n" for i in range(9))
    (tmp_path / "t.csv").write_text(f"key,x,y,price,colour\n{rows}")
    done(
        *["index", "build", "t.csv", "-o", "t", "--id-column", "key"],
        *["--vector-columns", "x, y", "--payload-columns", "price"],
    )
    known = json.loads(done("info", "t", "--format", "json"))
    assert (known["features"], known["columns"]) == (2, {"price": "integer"})
    head = done("query", "t", "--id", "k3", "--top", 1).splitlines()[0]
    assert head.split() == ["rank", "id", "score", "shape", "distance", "price"]


def test_an_index_of_images_remembers_how_it_reads_them(done, call, tmp_path):
    generator = np.random.default_rng(0)
    for folder in ("pictures", "more"):
        (tmp_path / folder).mkdir()
        for name in range(6):
            pixels = generator.integers(0, 256, (9, 12, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / folder / f"{folder}{name}.png")
    printed = done("index", "build", "pictures", "-o", "album", "--size", "4x3", "--colour")
    assert printed.startswith("album: 6 points, 36 features, 1 column (image)")
    assert done("index", "add", "album", "more") == "album: added 6 points, now 12\n"
    done("index", "merge", "album")
    shown = done("query", "album", "--vector", "more/more2.png", "--format", "csv")
    assert shown.splitlines()[1].split(",")[1] == "more2.png"
    assert "images size 4 x 3, colour True" in done("info", "album")


def test_changes_equal_those_of_the_library(done, index, tmp_path):
    shutil.copytree(index, "same")
    (tmp_path / "new.csv").write_text("id,x,y,moon\nn1,0.5,0.5,0\nn2,0.25,0.5,1\n")
    (tmp_path / "moved.csv").write_text("id,x,y\nn1,0.75,0.5\n8,1.5,0.25\n7,0.5,0.25\n")
    reading = ["--vector-columns", "x,y"]
    assert done("index", "add", index, "new.csv", *reading) == "moons: added 2 points, now 402\n"
    assert done("index", "update", index, "moved.csv", *reading) == "moons: updated 3 points\n"
    assert done("index", "remove", index, "m4", "09") == "moons: removed 2 points, now 400\n"
    with Index.open("same", write=True) as other:
        other.add([[0.5, 0.5], [0.25, 0.5]], ["n1", "n2"], {"moon": [0, 1]})
        other.update(["n1", 8, "7"], [[0.75, 0.5], [1.5, 0.25], [0.5, 0.25]])
        other.remove(["m4", "09"])
    assert content(index) == content("same")
    assert json.loads(done("info", index, "--format", "json"))["pending_changes"] == 3
    before = content(index)
    assert done("index", "merge", index) == "moons: merged 3 changes\n"
    assert content(index) == before
    assert done("index", "check", index) == "moons: 400 points, no damage found\n"


@pytest.mark.parametrize("column", ["id", "key"])
def test_payload_alone_is_updated(done, index, tmp_path, column):
    shutil.copytree(index, "same")
    (tmp_path / "notes.csv").write_text(f"note,{column}\nnew,m5\nother,8\n")
    words = [] if column == "id" else ["--id-column", column]
    printed = done("index", "update", index, "--payload", "notes.csv", *words)
    assert printed == "moons: updated 2 points\n"
    with Index.open("same", write=True) as other:
        other.update(["m5", 8], payload={"note": ["new", "other"]})
    assert content(index) == content("same")
    assert json.loads(done("info", index, "--format", "json"))["pending_changes"] == 0


def test_maps_are_drawn(done, call, tmp_path):
    np.save(tmp_path / "many.npy", np.random.default_rng(0).normal(size=(150, 5)))
    assert done("index", "build", "many.npy", "-o", "a").endswith(", graph map\n")
    assert done("index", "build", "many.npy", "-o", "b", "--layout", "pca").endswith("pca map\n")
    assert done("index", "build", "many.npy", "-o", "c", "--layout", "none").endswith("no map\n")
    assert json.loads(done("info", "c", "--format", "json"))["layout"] is None
    assert done("index", "map", "c") == "c: 150 points, graph map\n"
    assert done("index", "map", "b", "--layout", "none") == "b: 150 points, no map\n"
    with Index.open("a") as built, Index.open("c") as drawn:
        np.testing.assert_array_equal(built.places()[1], drawn.places()[1])
    refused = call("index", "map", "nothing")
    assert refused.exit_code == 1
    assert "there is no index at 'nothing'" in refused.stderr


def test_an_interrupt_after_a_change_does_not_deny_it(call, index, monkeypatch):
    remove = Index.remove

    def remove_then_interrupt(self, ids):
        remove(self, ids)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Index, "remove", remove_then_interrupt)
    result = call("index", "remove", index, "m5")
    assert result.exit_code == 130
    assert result.stderr.startswith("Stopped: the change was made completely, or not at all")
    with Index.open(index) as opened:
        assert "m5" not in opened


def test_many_are_removed_by_a_list_with_doubles(done, index):
    printed = done("index", "remove", index, "--ids", "-", input="m4\n8\n\nm4\n")
    assert printed == "moons: removed 2 points, now 398\n"


def test_replace_is_asked_for(done, call, vectors, index):
    refused = call("index", "build", vectors, "-o", index)
    assert refused.exit_code == 1
    assert refused.stderr == (
        "Error: 'moons' exists already; name another folder, or give --replace to put an index "
        "into the place of one.\n"
    )
    assert "0 columns" in done("index", "build", vectors, "-o", index, "--replace")
    with Index.open(index) as opened:
        assert opened.ids[:2] == [0, 1]


def test_only_an_index_is_replaced(call, vectors, tmp_path):
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "letter.txt").write_text("dear")
    result = call("index", "build", vectors, "-o", "precious", "--replace")
    assert result.exit_code == 1
    assert "so it is no index" in result.stderr
    assert (tmp_path / "precious" / "letter.txt").read_text() == "dear"


def test_damage_is_found(call, index, tmp_path):
    segment = max((tmp_path / index / "segments").iterdir(), key=lambda path: path.stat().st_size)
    content = bytearray(segment.read_bytes())
    content[-1] ^= 1
    segment.write_bytes(content)
    result = call("index", "check", index)
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1
    assert segment.name in result.stderr


BAD = {
    "nan.csv": ("x,y\n1,2\nnan,3\n", "row 1 of 'nan.csv' holds NaN"),
    "ragged.csv": ("x,y\n1,2\n3\n", "line 3 of 'ragged.csv' has 1 cells"),
    "empty.csv": ("", "'empty.csv' is empty"),
    "empty.npy": ("", "'empty.npy' is empty"),
    "words.csv": ("x,y\n1,2\n3,four\n", "line 3 of 'words.csv' has 'four' in column 'y'"),
    "twice.csv": ("id,x\na,1\na,2\n", "'a'"),
    "text.doc": ("1 2", "'text.doc' ends in '.doc'"),
}


@pytest.mark.parametrize("name", [*BAD, "cut.npy", "absent.npy", "pictures"])
def test_bad_files_are_one_line_and_change_nothing(call, index, vectors, tmp_path, name):
    text, message = BAD.get(name, (None, repr(name)[:-1]))
    if text is not None:
        (tmp_path / name).write_text(text)
    if name == "cut.npy":
        (tmp_path / name).write_bytes((tmp_path / vectors).read_bytes()[:1000])
    if name == "pictures":
        (tmp_path / name).mkdir()
        (tmp_path / name / "broken.png").write_bytes(b"\x89PNG")
    there, before = sorted(tmp_path.iterdir()), content(index)
    result = call("index", "build", name, "-o", "made")
    assert result.exit_code == 1
    assert message in result.stderr, result.exc_info
    assert (result.stdout, result.stderr.count("\n")) == ("", 1)
    added = call("index", "add", index, name)
    assert (added.exit_code, added.stdout, added.stderr.count("\n")) == (1, "", 1)
    assert sorted(tmp_path.iterdir()) == there
    assert content(index) == before


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["build", "moons.npy"], 2, "Missing option '-o'"),
        (["build", "moons.npy", "-o", "x", "--size", "big"], 2, "such as 32x32"),
        (["build", "moons.npy", "-o", "x", "--recall", "4"], 2, "4.0 is not in the range"),
        (["build", "moons.npy", "-o", "x", "--neighbors", "few"], 2, "nor 'auto'"),
        (["build", "moons.npy", "-o", "x", "--neighbors", "0"], 2, "'--neighbors': '0' is neither"),
        (["build", "moons.npy", "-o", "x", "--id-column", "k"], 2, "--id-column is given"),
        (["build", "moons.npy", "-o", "x", "--ids", "two.txt"], 1, "has 400 points, but 'two.txt'"),
        (["build", "moons.npy", "-o", "no/x"], 1, "the folder 'no' does not exist"),
        (["add", "moons", "moons.npy"], 1, "have ids of their own; give ids"),
        (["update", "moons", "moons.npy"], 1, "name them with --id-column or --ids"),
        (["update", "moons"], 2, "Give FILE, or --payload alone"),
        (["update", "moons", "--payload", "no.csv"], 1, "there is no file 'no.csv'"),
        (
            ["update", "moons", "--payload", "p.csv"],
            1,
            "has the columns 'note', but must have 'id'",
        ),
        (["update", "moons", "--payload", "p.csv", "--ids", "two.txt"], 2, "Without FILE, only"),
        (["remove", "moons"], 2, "Give ids, or a file of them"),
        (["remove", "moons", "m5", "--ids", "two.txt"], 2, "Give ids, or a file of them"),
        (["remove", "moons", "m5", "nobody"], 1, "there are no points with the ids 'nobody'"),
        (["merge", "nowhere"], 1, "there is no index at 'nowhere'"),
        (["merge", "moons.npy"], 1, "is a file, but an index is a folder"),
    ],
)
def test_bad_words(call, index, vectors, tmp_path, words, status, message):
    (tmp_path / "two.txt").write_text("a\nb\n")
    (tmp_path / "p.csv").write_text("note\nnew\n")
    before = content(index)
    result = call("index", *words)
    assert result.exit_code == status
    assert message in result.stderr
    assert result.stdout == ""
    assert not (tmp_path / "x").exists()
    assert content(index) == before


def test_columns_are_added_later(call, index, tmp_path):
    (tmp_path / "prices.jsonl").write_text(
        '{"id": "m5", "price": 3}\n{"id": 7, "price": 4.5, "shop": "corner"}\n'
    )
    result = call("index", "columns", "add", index, "prices.jsonl")
    assert (result.exit_code, result.output) == (
        0,
        "moons: added 2 columns (price, shop) to 2 points\n",
    )
    found = call("query", index, "--id", "m6", "--where", "price > 4", "--format", "csv")
    assert found.output.splitlines()[1].split(",")[1] == "7"
    (tmp_path / "rows.csv").write_text("row\n" + "\n".join(map(str, range(400))))
    assert "to 400 points" in call("index", "columns", "add", index, "rows.csv").output
    again = call("index", "columns", "add", index, "rows.csv")
    assert again.exit_code == 1
    assert "there already: 'row'" in again.stderr
    (tmp_path / "none.csv").write_text("id\n7\n")
    assert "no column beside 'id'" in call("index", "columns", "add", index, "none.csv").stderr
    wrong = call("index", "columns", "add", index, "rows.csv", "--id-column", "key")
    assert "has no column 'key'" in wrong.stderr


def test_json_lines_become_an_index(call, tmp_path):
    lines = [f'{{"id": "n{i}", "embedding": [{i}, {i * i}], "title": "t {i}"}}' for i in range(9)]
    (tmp_path / "notes.jsonl").write_text("\n".join(lines))
    result = call("index", "build", "notes.jsonl", "-o", "notes", "--layout", "none")
    assert result.exit_code == 0
    assert "9 points, 2 features (embedding), 1 column (title)" in result.stdout
    (tmp_path / "bad.jsonl").write_text('{"id": "n9", "embedding": [1, 2]}\n{"id": "n10"}\n')
    refused = call("index", "add", "notes", "bad.jsonl")
    assert refused.exit_code == 1
    assert "line 2 of 'bad.jsonl' has no field 'embedding'" in refused.stderr
