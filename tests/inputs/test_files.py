"""Files written by the real libraries come back as the points that went in."""

import csv

import h5py
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankfold.errors import InputError
from rankfold.inputs import read_points

VECTORS = np.random.default_rng(0).standard_normal((5, 3)).astype(np.float32)
IDS = ["a", "b", "c", "d", "e"]
KINDS = ["tea", None, "milk", "tea", ""]


def test_npy_is_mapped(tmp_path):
    np.save(tmp_path / "x.npy", VECTORS)
    points = read_points(tmp_path / "x.npy")
    assert isinstance(points.vectors.base, np.memmap) or isinstance(points.vectors, np.memmap)
    assert points.vectors.dtype == np.float32
    assert np.array_equal(points.vectors, VECTORS)
    assert points.ids is None
    assert points.payload is None
    assert len(points) == 5


@pytest.mark.parametrize(
    ("given_type", "read_type"),
    [
        ("f2", "f4"),
        ("f4", "f4"),
        ("f8", "f8"),
        ("u1", "f4"),
        ("i4", "f8"),
        ("?", "f4"),
        (">f4", "f4"),
    ],
)
def test_types_of_numbers(tmp_path, given_type, read_type):
    array = np.array([[0, 1], [1, 1]]).astype(given_type)
    np.save(tmp_path / "x.npy", array)
    points = read_points(str(tmp_path / "x.npy"))
    assert points.vectors.dtype == np.dtype(read_type)
    assert np.array_equal(points.vectors, array)


def test_npz_with_ids_and_payload(tmp_path):
    days = np.array(
        ["2024-02-29", "NaT", "2024-03-01", "2024-03-02", "2024-03-03"], "datetime64[ns]"
    )
    np.savez_compressed(
        tmp_path / "x.npz",
        vectors=VECTORS,
        ids=IDS,
        price=[1.5, np.nan, 2, 3, 4],
        day=days,
        note=np.array(7),
    )
    points = read_points(tmp_path / "x.npz")
    assert np.array_equal(points.vectors, VECTORS)
    assert points.ids == IDS
    assert points.payload["price"] == [1.5, None, 2, 3, 4]
    assert points.payload["day"][:2] == ["2024-02-29T00:00:00", None]
    assert set(points.payload) == {"price", "day"}


def test_npz_arrays_can_be_named(tmp_path):
    np.savez(tmp_path / "x.npz", train=VECTORS, test=VECTORS[:1], key=np.arange(5))
    points = read_points(tmp_path / "x.npz", vector_columns=["train"], id_column="key")
    assert np.array_equal(points.vectors, VECTORS)
    assert points.ids == [0, 1, 2, 3, 4]
    with pytest.raises(InputError, match="no array named 'vectors' and 2 with two dimensions"):
        read_points(tmp_path / "x.npz")
    np.savez(tmp_path / "only.npz", X=VECTORS)
    assert np.array_equal(read_points(tmp_path / "only.npz").vectors, VECTORS)


@pytest.mark.parametrize("ending", [".csv", ".tsv"])
def test_pandas_writes_text_with_its_index(tmp_path, ending):
    frame = pd.DataFrame(VECTORS.astype(float), columns=["x", "y", "z"])
    frame["kind"] = KINDS
    frame["stock"] = ["", "1", "2", "3", "4"]
    path = tmp_path / f"x{ending}"
    frame.to_csv(path, sep="," if ending == ".csv" else "\t")
    points = read_points(path)
    assert np.array_equal(points.vectors, VECTORS.astype(float))
    assert points.ids == [0, 1, 2, 3, 4]
    assert points.payload == {
        "kind": ["tea", None, "milk", "tea", None],
        "stock": [None, 1, 2, 3, 4],
    }


def test_pandas_names_of_columns_are_no_point(tmp_path):
    frame = pd.DataFrame(np.arange(8.0).reshape(2, 4))
    for index in (True, False):
        frame.to_csv(tmp_path / "x.csv", index=index)
        assert np.array_equal(read_points(tmp_path / "x.csv").vectors, frame.to_numpy())
    frame.to_csv(tmp_path / "x.csv", index=False, header=False)
    assert np.array_equal(read_points(tmp_path / "x.csv").vectors, frame.to_numpy())


def test_text_without_header(tmp_path):
    (tmp_path / "x.csv").write_text("0,1,cat\n\n2,3,dog\n")
    points = read_points(tmp_path / "x.csv")
    assert points.vectors.tolist() == [[0, 1], [2, 3]]
    assert points.payload == {"column_2": ["cat", "dog"]}
    (tmp_path / "y.csv").write_text("0,1,2,3\n")
    assert read_points(tmp_path / "y.csv").vectors.tolist() == [[0, 1, 2, 3]]
    (tmp_path / "y.csv").write_text("0,1,2,3\n4,5,6,7\n")
    assert len(read_points(tmp_path / "y.csv")) == 1
    assert len(read_points(tmp_path / "y.csv", header=False)) == 2


def test_named_columns_of_text(tmp_path):
    (tmp_path / "x.csv").write_text(
        "\ufeffsku,x,price,y,id\n007,1,9,2,5\n008,3,,4,6\n", encoding="utf-8"
    )
    points = read_points(
        tmp_path / "x.csv", id_column="sku", vector_columns=["y", "x"], payload_columns=["price"]
    )
    assert points.vectors.tolist() == [[2, 1], [4, 3]]
    assert points.ids == ["007", "008"]
    assert points.payload == {"price": [9, None]}
    assert read_points(tmp_path / "x.csv", vector_columns=["x"], payload_columns=[]).payload is None
    guessed = read_points(tmp_path / "x.csv", id_column="sku", payload_columns=["price", "id"])
    assert guessed.vectors.tolist() == [[1, 2], [3, 4]]
    assert guessed.payload == {"price": [9, None], "id": [5, 6]}


finite = st.floats(allow_nan=False, allow_infinity=False)
words = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)


@given(st.data(), st.integers(1, 4), st.integers(1, 6))
def test_text_round_trip(tmp_path_factory, data, width, n_rows):
    rows = data.draw(st.lists(st.tuples(*[finite] * width), min_size=n_rows, max_size=n_rows))
    notes = data.draw(st.lists(words.map("_".__add__), min_size=n_rows, max_size=n_rows))
    keys = data.draw(
        st.lists(st.integers(-(2**63), 2**63 - 1), min_size=n_rows, max_size=n_rows, unique=True)
    )
    path = tmp_path_factory.mktemp("text") / "x.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["note", *(f"x{place}" for place in range(width)), "id"])
        writer.writerows(
            [note, *row, key] for note, row, key in zip(notes, rows, keys, strict=True)
        )
    named = [f"x{place}" for place in range(width)] if width == 1 else None
    points = read_points(path, vector_columns=named)
    assert points.vectors.tolist() == [list(row) for row in rows]
    assert points.ids == keys
    assert points.payload == {"note": notes}


LISTS = {
    "list": pa.list_(pa.float32()),
    "large list": pa.large_list(pa.float64()),
    "fixed list": pa.list_(pa.float32(), 3),
}


@pytest.mark.parametrize(
    ("kind", "name"), [*zip(LISTS, ["vector", "embedding", "anything"], strict=True)]
)
def test_parquet_column_of_lists(tmp_path, kind, name):
    n_rows = 20_000  # several batches and row groups
    vectors = np.random.default_rng(1).standard_normal((n_rows, 3)).astype(np.float32)
    table = pa.table(
        {
            "id": np.arange(n_rows) * 2,
            name: pa.array(vectors.tolist(), LISTS[kind]),
            "price": pa.array([None, *range(1, n_rows)]),
            "seen": pa.array(
                [pd.Timestamp("2024-02-29T12:00:00.000001").value] * n_rows, pa.timestamp("ns")
            ),
            "kind": pa.array(["tea"] * n_rows).dictionary_encode(),
        }
    )
    pq.write_table(table, tmp_path / "x.parquet", row_group_size=9_000)
    points = read_points(tmp_path / "x.parquet")
    assert np.array_equal(points.vectors, vectors)
    assert points.vectors.dtype == (np.float64 if kind == "large list" else np.float32)
    assert points.ids == list(range(0, 2 * n_rows, 2))
    assert points.payload["price"] == [None, *range(1, n_rows)]
    assert points.payload["seen"][0] == "2024-02-29T12:00:00.000001"
    assert set(points.payload["kind"]) == {"tea"}


def test_parquet_columns_of_numbers(tmp_path):
    frame = pd.DataFrame(VECTORS, columns=["x", "y", "z"], index=IDS).assign(kind=KINDS)
    frame.to_parquet(tmp_path / "x.parquet")
    points = read_points(tmp_path / "x.parquet")
    assert np.array_equal(points.vectors, VECTORS)
    assert points.ids == IDS
    assert points.payload == {"kind": KINDS}
    chosen = read_points(
        tmp_path / "x.parquet", vector_columns=["z", "x"], payload_columns=["kind"]
    )
    assert np.array_equal(chosen.vectors, VECTORS[:, [2, 0]])


@pytest.mark.parametrize(
    ("distance", "metric"),
    [("angular", "cosine"), ("euclidean", "euclidean"), ("jaccard", None), (3, None)],
)
@pytest.mark.parametrize("ending", [".hdf5", ".h5"])
def test_hdf5(tmp_path, ending, distance, metric):
    with h5py.File(tmp_path / f"x{ending}", "w") as file:
        file.attrs["distance"] = distance
        file.create_dataset("train", data=VECTORS, compression="gzip")
        file["test"] = VECTORS[:2]
    points = read_points(tmp_path / f"x{ending}")
    assert np.array_equal(points.vectors, VECTORS)
    assert points.metric == metric
    assert len(read_points(tmp_path / f"x{ending}", dataset="test")) == 2
