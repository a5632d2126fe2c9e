import numpy as np
import pyarrow.parquet
import pytest
import zarr

from rankfold.cluster import build_index
from rankfold.errors import InputError


def points(folder, name, array):
    np.save(folder / f"{name}.npy", np.asarray(array, dtype=np.float32))


def different_widths(folder):
    points(folder, "a", np.ones((3, 4)))
    points(folder, "b", np.ones((3, 5)))


def not_a_number(folder):
    points(folder, "a", np.ones((3, 4)))
    points(folder, "b", [[0, 1], [2, np.nan]])


def nothing(folder):
    points(folder, "a", np.ones((0, 4)))


def flat(folder):
    points(folder, "a", np.ones(4))


def no_features(folder):
    points(folder, "a", np.ones((4, 0)))


def a_text(folder):
    (folder / "a.npy").write_text("1 2 3")


def only_some_ids(folder):
    table = {"vector": [[0.0, 1.0], [1.0, 0.0]]}
    pyarrow.parquet.write_table(pyarrow.table(table), folder / "a.parquet")
    table["id"] = [1, 2]
    pyarrow.parquet.write_table(pyarrow.table(table), folder / "b.parquet")


def the_same_id(folder):
    for name in "ab":
        table = {"vector": [[0.0, 1.0], [1.0, 0.0]], "id": [7, f"{name}8"]}
        table["id"] = list(map(str, table["id"]))
        pyarrow.parquet.write_table(pyarrow.table(table), folder / f"{name}.parquet")


def other_columns(folder):
    for name in ("price", "weight"):
        table = {"vector": [[0.0, 1.0], [1.0, 0.0]], name: ["a", "b"]}
        pyarrow.parquet.write_table(pyarrow.table(table), folder / f"{name}.parquet")


def columns_in_another_order(folder):
    for name, columns in (("a", "xy"), ("b", "yx")):
        table = {column: [0.0, 1.0] for column in columns}
        pyarrow.parquet.write_table(pyarrow.table(table), folder / f"{name}.parquet")


def other_kinds(folder):
    for name, values in (("a", [1, 2]), ("b", ["x", "y"])):
        table = {"vector": [[0.0, 1.0], [1.0, 0.0]], "price": values}
        pyarrow.parquet.write_table(pyarrow.table(table), folder / f"{name}.parquet")


def digits_lost(folder):
    for name, values in (("a", [2**60 + 1, 2]), ("b", [0.5, 1.0])):
        table = {"vector": [[0.0, 1.0], [1.0, 0.0]], "price": values}
        pyarrow.parquet.write_table(pyarrow.table(table), folder / f"{name}.parquet")


def zarr_of_three(folder):
    zarr.create_array(folder / "zarr.json-parent", shape=(2, 2, 2), dtype="f4")
    for file in (folder / "zarr.json-parent").iterdir():
        file.rename(folder / file.name)


WRONG = {
    different_widths: r"b.npy' has vectors of 5 numbers, but those of .*a.npy' have 4",
    not_a_number: r"row 1 of .*b.npy' holds NaN or infinity",
    nothing: "a.npy' has no rows",
    flat: r"has shape \(4,\)",
    no_features: "vectors of no numbers",
    a_text: "is not a NumPy file",
    only_some_ids: "b.parquet' has ids and .*a.parquet' has none",
    the_same_id: "ids are given more than once: '7'",
    other_columns: "different columns \\('price', 'weight'\\)",
    columns_in_another_order: r"b.parquet' has the vector in 'y', 'x', but others .* in 'x', 'y'",
    other_kinds: "'price' holds integer and text values in different shards",
    digits_lost: "would hold 1152921504606846977",
    zarr_of_three: r"has shape \(2, 2, 2\)",
}


@pytest.mark.parametrize("write", WRONG, ids=lambda write: write.__name__)
def test_wrong_shards_are_named_and_nothing_is_left(write, client, tmp_path):
    folder = tmp_path / "shards"
    folder.mkdir()
    write(folder)
    with pytest.raises(InputError, match=WRONG[write]):
        build_index(folder, tmp_path / "made", scheduler=client, n_neighbors=1)
    assert [path.name for path in tmp_path.iterdir()] == ["shards"]


@pytest.mark.parametrize(
    ("shards", "message"),
    [
        ("nowhere.npy", "there is no file"),
        ("nowhere-*.npy", "no file matches"),
        (".", "holds no .npy or .parquet file"),
        ([], "there are no shards"),
        ("points.csv", "ends in '.csv'"),
    ],
)
def test_shards_must_be_there(shards, message, client, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "points.csv").write_text("1,2\n")
    with pytest.raises(InputError, match=message):
        build_index(shards, tmp_path / "made", scheduler=client)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metric": "manhattan"}, "metric is 'manhattan'"),
        ({"layout": "graph"}, "layout is 'graph'"),
        ({"recall": 0.0}, "recall is 0.0"),
        ({"n_neighbors": 0}, "n_neighbors is 0"),
        ({"n_workers": 2}, "n_workers is given together with scheduler"),
        ({"id_column": "id"}, "columns are named, but"),
        ({"scratch": "/nowhere/at/all"}, "/nowhere/at/all"),
    ],
)
def test_wrong_options_are_named(options, message, client, tmp_path):
    points(tmp_path, "a", np.eye(4))
    with pytest.raises(InputError, match=message):
        build_index(tmp_path / "a.npy", tmp_path / "made", scheduler=client, **options)
    assert [path.name for path in tmp_path.iterdir()] == ["a.npy"]
