"""A file that cannot be used gives one line that says why, whatever is wrong with it."""

import builtins
import json
import pickle

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from effort import examples
from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st
from PIL import Image

from rankfold.errors import InputError, MissingExtraError
from rankfold.inputs import READERS, read_points
from rankfold.inputs.images import SUFFIXES

ROWS = np.random.default_rng(0).standard_normal((6, 4))


def arrow(path, **columns):
    pq.write_table(pa.table(columns), path)


def hdf5(path, **sets):
    with h5py.File(path, "w") as file:
        for name, values in sets.items():
            file[name] = values


def with_nan(row, column):
    rows = ROWS.copy()
    rows[row, column] = np.nan
    return rows


BAD = {
    "npy nan": ("x.npy", lambda p: np.save(p, with_nan(3, 2)), "row 3 .*column 2"),
    "npy flat": ("x.npy", lambda p: np.save(p, ROWS[0]), r"shape \(4,\)"),
    "npy empty": ("x.npy", lambda p: p.write_bytes(b""), "is empty"),
    "npy no rows": ("x.npy", lambda p: np.save(p, ROWS[:0]), "no rows|cannot be read"),
    "npy no columns": ("x.npy", lambda p: np.save(p, ROWS[:, :0]), "no columns|cannot be read"),
    "npy text": ("x.npy", lambda p: np.save(p, [["a"]]), "<U1 values"),
    "npy objects": ("x.npy", lambda p: np.save(p, np.array([[{}]]), allow_pickle=True), "pickle"),
    "npy pickle": ("x.npy", lambda p: p.write_bytes(pickle.dumps(ROWS)), "pickle"),
    "npy is text": ("x.npy", lambda p: p.write_text("1,2\n"), "not a NumPy file"),
    "npz objects": ("x.npz", lambda p: np.savez(p, vectors=ROWS, x=np.array([{}] * 6)), "pickle"),
    "npz lengths": ("x.npz", lambda p: np.savez(p, vectors=ROWS, x=[1]), "'x' .* 1 values"),
    "npz ids": ("x.npz", lambda p: np.savez(p, vectors=ROWS, ids=[1]), "1 ids, but 6 rows"),
    "npz same ids": ("x.npz", lambda p: np.savez(p, vectors=ROWS, ids=[1] * 6), "rows 0 and 1"),
    "npz float ids": (
        "x.npz",
        lambda p: np.savez(p, vectors=ROWS, ids=ROWS[:, 0]),
        "whole numbers",
    ),
    "npz nothing": ("x.npz", lambda p: np.savez(p, x=[1]), "no array named 'vectors'"),
    "npz is npy": ("x.npz", lambda p: p.write_bytes(valid(p.parent, ".npy")), "not an archive"),
    "csv empty": ("x.csv", lambda p: p.write_text(""), "is empty"),
    "csv one number": (
        "x.csv",
        lambda p: p.write_text("id,name,price\n1,a,2.5\n2,b,3.5\n"),
        "a single column of numbers, 'price', beside 'name': .*name it with vector_columns",
    ),
    "csv no rows": ("x.csv", lambda p: p.write_text("x,y\n"), "no rows"),
    "csv ragged": ("x.csv", lambda p: p.write_text("x,y\n1,2\n3\n"), "line 3 .* has 1 cells"),
    "csv nan": ("x.csv", lambda p: p.write_text("x,y\n1,2\n3,nan\n"), "row 1 .*column 1"),
    "csv text": ("x.csv", lambda p: p.write_text("x,y\n1,2\n3,z\n"), "line 3 .*'z' in column 'y'"),
    "csv hole": ("x.csv", lambda p: p.write_text("x,y\n1,2\n,3\n"), "line 3 .*'' in column 'x'"),
    "csv words": ("x.csv", lambda p: p.write_text("x;y\n1;2\n"), "no column of numbers"),
    "csv names": ("x.csv", lambda p: p.write_text("x,x\n1,2\n"), "several columns named 'x'"),
    "csv no id": ("x.csv", lambda p: p.write_text("id,x\n,2\n"), "row 0 .* id None"),
    "csv same id": ("x.csv", lambda p: p.write_text("id,x\n7,2\n7,3\n"), "both have the id 7"),
    "csv latin": ("x.csv", lambda p: p.write_bytes("x,né\n1,é\n".encode("latin-1")), "utf-8"),
    "parquet ragged": (
        "x.parquet",
        lambda p: arrow(p, vector=[[1.0, 2.0], [3.0]]),
        "row 1 .* vector of 1 numbers, but row 0 has 2",
    ),
    "parquet hole": ("x.parquet", lambda p: arrow(p, vector=[[1.0], None]), "row 1 .*no vector"),
    "parquet null": ("x.parquet", lambda p: arrow(p, vector=[[1.0], [None]]), "row 1 .*NaN"),
    "parquet no rows": (
        "x.parquet",
        lambda p: arrow(p, vector=pa.array([], pa.list_(pa.float32()))),
        "no rows",
    ),
    "parquet lists": (
        "x.parquet",
        lambda p: arrow(p, a=[[1]], b=[[2]]),
        "several columns of lists",
    ),
    "parquet words": ("x.parquet", lambda p: arrow(p, a=["x"]), "no column of numbers"),
    "parquet nested": (
        "x.parquet",
        lambda p: arrow(p, x=[1.0], y=[2.0], tags=[["a"]]),
        "column 'tags'",
    ),
    "hdf5 other": ("x.hdf5", lambda p: hdf5(p, other=ROWS), "no data set 'train'; it has 'other'"),
    "hdf5 flat": ("x.h5", lambda p: hdf5(p, train=ROWS[0]), r"shape \(4,\)"),
    "hdf5 no rows": ("x.h5", lambda p: hdf5(p, train=ROWS[:0]), "no rows"),
    "hdf5 text": ("x.h5", lambda p: hdf5(p, train=["a"]), "object values"),
    "hdf5 inf": ("x.h5", lambda p: hdf5(p, train=ROWS / 0.0), "row 0 .*column 0"),
    "hdf5 soft link": ("x.h5", lambda p: hdf5(p, train=h5py.ExternalLink("y.h5", "/x")), "no data"),
    "no images": ("folder", lambda p: p.mkdir(), "has no images"),
    "missing": ("x.npy", lambda p: None, "there is no file"),
    "suffix": ("x.pkl", lambda p: p.write_bytes(b"x"), "ends in '.pkl'"),
    "no suffix": ("x", lambda p: p.write_bytes(b"x"), "ends in ''"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_file(tmp_path, case):
    name, write, message = BAD[case]
    with np.errstate(all="ignore"):
        write(tmp_path / name)
    with pytest.raises(InputError, match=message) as caught:
        read_points(tmp_path / name)
    assert "\n" not in str(caught.value)
    assert name in str(caught.value)


def test_unfilled_hdf5_is_not_unpacked(tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("train", shape=(10**9, 10**3), dtype="f4", chunks=(100, 100))
    with pytest.raises(InputError, match="stored in 0"):
        read_points(tmp_path / "x.h5")


def zigzag(number):
    """Write a number as the metadata of Parquet does."""
    rest, written = (2 * number if number >= 0 else -2 * number - 1), bytearray()
    while rest > 127:
        written.append(rest & 127 | 128)
        rest >>= 7
    return bytes([*written, rest])


@pytest.mark.parametrize("n_rows", [8, 5, -6, 10**13])
def test_parquet_has_as_many_rows_as_it_says(tmp_path, n_rows):
    path = tmp_path / "x.parquet"
    arrow(path, vector=ROWS.tolist())
    content = path.read_bytes()
    length = int.from_bytes(content[-8:-4], "little")
    data, metadata = content[: -8 - length], content[-8 - length : -8]
    before = b"\x16" + zigzag(len(ROWS)) + b"\x19"  # the number of rows, before the list of groups
    assert metadata.count(before) == 1
    metadata = metadata.replace(before, b"\x16" + zigzag(n_rows) + b"\x19")
    path.write_bytes(data + metadata + len(metadata).to_bytes(4, "little") + content[-4:])
    with pytest.raises(InputError, match=r"x\.parquet") as caught:
        read_points(path)
    assert str(caught.value).isprintable()


def test_hdf5_does_not_read_other_files(tmp_path):
    (tmp_path / "secret").write_bytes(bytes(64))
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset(
            "train", shape=(2, 4), dtype="f8", external=[(str(tmp_path / "secret"), 0, 64)]
        )
    with pytest.raises(InputError, match="in other files"):
        read_points(tmp_path / "x.h5")


OPTIONS = [
    ("x.npy", {"id_column": "id"}, "id_column is given, but means nothing for .npy files"),
    ("x.npy", {"size": (8, 8)}, "size is given"),
    ("x.csv", {"dataset": "train"}, "dataset is given"),
    ("x.csv", {"id_column": "key"}, "no column 'key'; it has 'a', 'b'"),
    ("x.csv", {"vector_columns": ["c"]}, "no column 'c'"),
    ("x.csv", {"vector_columns": "ab"}, "must be a list of names"),
    ("x.parquet", {"vector_columns": ["a", "name"]}, "column 'name' .* holds string"),
    ("x.csv", {"vector_columns": 3}, "vector_columns is 3, but must be a list of names"),
    ("x.csv", {"payload_columns": [3]}, "payload_columns is .3., but must be a list of names"),
    ("x.csv", {"header": "no"}, "header is 'no', but must be True or False"),
    ("x.parquet", {"header": True}, "header is given"),
    ("x.npz", {"vector_columns": ["nothing"]}, "must name one array"),
    ("x.npz", {"id_column": "nothing"}, "no array 'nothing'"),
]


@pytest.mark.parametrize(("name", "options", "message"), OPTIONS)
def test_bad_options(tmp_path, name, options, message):
    np.save(tmp_path / "x.npy", ROWS)
    np.savez(tmp_path / "x.npz", vectors=ROWS)
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    arrow(tmp_path / "x.parquet", a=[1.0], name=["x"])
    with pytest.raises(InputError, match=message):
        read_points(tmp_path / name, **options)


@pytest.mark.parametrize(
    ("name", "package", "extra"),
    [("x.parquet", "pyarrow", "tables"), ("x.h5", "h5py", "hdf5"), ("folder", "PIL", "images")],
)
def test_missing_extra(tmp_path, monkeypatch, name, package, extra):
    (tmp_path / "x.parquet").write_bytes(b"x")
    (tmp_path / "x.h5").write_bytes(b"x")
    (tmp_path / "folder").mkdir()
    real = builtins.__import__

    def without(module, *rest):
        if module.split(".")[0] == package:
            raise ModuleNotFoundError(module)
        return real(module, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError, match=f"the extra '{extra}' brings it: pip install"):
        read_points(tmp_path / name)


def valid(folder, ending):
    """Return the bytes of a file that can be read."""
    path = folder / f"valid{ending}"
    if ending == ".npy":
        np.save(path, ROWS)
    elif ending == ".npz":
        np.savez_compressed(path, vectors=ROWS, ids=np.arange(6), name=["x"] * 6)
    elif ending in (".csv", ".tsv"):
        text = "id,x,y,name\n1,0.5,2,tea\n2,3,4,milk\n"
        path.write_text(text.replace(",", "\t") if ending == ".tsv" else text)
    elif ending == ".parquet":
        arrow(path, id=np.arange(6), vector=ROWS.tolist(), name=["x"] * 6)
    elif ending in (".jsonl", ".ndjson"):
        lines = [{"id": i, "vector": row, "name": "x"} for i, row in enumerate(ROWS.tolist())]
        path.write_text("\n".join(map(json.dumps, lines)))
    elif ending in (".h5", ".hdf5"):
        hdf5(path, train=ROWS)
    else:
        Image.fromarray((ROWS * 9 % 255).astype(np.uint8)).save(path)
    return path.read_bytes()


def points_or_line(path):
    try:
        return read_points(path)
    except (InputError, OSError) as error:
        return str(error)


@pytest.mark.parametrize("ending", [*READERS, *sorted(SUFFIXES)])
def test_any_bytes_are_points_or_one_line(tmp_path, ending):
    content = valid(tmp_path, ending)
    (tmp_path / "case").mkdir()
    path = tmp_path / "case" / f"x{ending}"

    def damaged(where, byte):
        return content[: where % len(content)] + bytes([byte]) + content[where % len(content) + 1 :]

    cut = st.integers(0, len(content)).map(lambda end: content[:end])
    changed = st.builds(damaged, st.integers(0, 10**6), st.integers(0, 255))
    headed = st.binary(max_size=200).map(lambda tail: content[:16] + tail)

    @examples(60, suppress_health_check=list(HealthCheck))
    @given(cut | changed | headed | st.binary(max_size=300))
    @example(content)
    def check(stuff):
        path.write_bytes(stuff)
        points = points_or_line(path.parent if ending in SUFFIXES else path)
        if isinstance(points, str):
            assert "\n" not in points
            assert f"x{ending}" in points
            assert stuff != content
        else:
            assert points.vectors.size
            assert np.isfinite(points.vectors).all()

    check()
