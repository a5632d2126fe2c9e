import io
import json

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankfold.errors import InputError
from rankfold.inputs import read_ids, read_vectors
from rankfold.inputs.files import parse_vectors

WRITTEN = {
    "blanks": ("1 2.5  -3\n", [[1, 2.5, -3]]),
    "commas": ("1, 2.5,-3e0", [[1, 2.5, -3]]),
    "one per line": ("1\n2.5\n\n-3\n", [[1, 2.5, -3]]),
    "one number": ("4", [[4]]),
    "several lines": ("1 2\r\n3,4\n", [[1, 2], [3, 4]]),
    "list": ("[1, 2.5]", [[1, 2.5]]),
    "lists": ("[[1, 2], [3, 4]]", [[1, 2], [3, 4]]),
    "list per line": ("[1, 2]\n[3, 4]\n", [[1, 2], [3, 4]]),
}


@pytest.mark.parametrize("case", WRITTEN)
def test_standard_input_and_text_files(tmp_path, monkeypatch, case):
    text, expected = WRITTEN[case]
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    assert read_vectors("-").tolist() == expected
    (tmp_path / "q.txt").write_text(text)
    assert read_vectors(tmp_path / "q.txt").tolist() == expected


WRONG = {
    "empty": (" \n", "is empty"),
    "word": ("1 2\n3 four", "line 2 of it is '3 four'"),
    "ragged": ("1 2\n3", "vector 1 of it has 1 numbers, but vector 0 has 2"),
    "not finite": ("1 nan", "row 0 of it holds NaN or infinity .in column 1"),
    "json": ("[1, 2", "not a list of numbers in JSON"),
    "json text": ('["a"]', "must hold lists of numbers"),
    "json truth": ("[true]", "must hold lists of numbers"),
    "json ragged": ("[[1, 2], [3]]", "vector 1 of it has 1"),
    "json deep": ("[[[1]]]", "must hold lists of numbers"),
    "json mixed": ("[[1], 2]", "must hold lists of numbers"),
    "json after": ("[1] x", "not a list of numbers in JSON"),
    "json nothing": ("[]", "no columns"),
    "json huge": ("[1" + "0" * 400 + "]", "too large"),
    "json endless": ("[" * 100_000, "not a list of numbers in JSON"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_text(case):
    text, message = WRONG[case]
    with pytest.raises(InputError, match=message) as caught:
        parse_vectors(text, "it")
    assert "\n" not in str(caught.value)


@given(st.text() | st.text(alphabet="[],.-0123456789eE \n"))
def test_any_text_is_a_vector_or_an_input_error(text):
    vectors = vectors_or_line(text)
    if isinstance(vectors, str):
        assert "\n" not in vectors
    else:
        assert vectors.ndim == 2
        assert np.isfinite(vectors).all()


def vectors_or_line(text):
    try:
        return parse_vectors(text, "it")
    except InputError as error:
        return str(error)


@given(
    st.integers(1, 5).flatmap(
        lambda n: st.lists(st.lists(st.floats(-1e300, 1e300), min_size=n, max_size=n), min_size=1)
    )
)
def test_json_round_trip(rows):
    assert parse_vectors(json.dumps(rows), "it").tolist() == rows


def test_files(tmp_path):
    np.save(tmp_path / "one.npy", np.arange(3.0))
    np.save(tmp_path / "two.npy", np.eye(2))
    (tmp_path / "q.csv").write_text("id,x,y\na,1,2\n")
    with h5py.File(tmp_path / "q.hdf5", "w") as file:
        file["train"], file["test"] = np.eye(4), np.ones((2, 4))
    assert read_vectors(tmp_path / "one.npy").tolist() == [[0, 1, 2]]
    assert read_vectors(str(tmp_path / "two.npy")).tolist() == [[1, 0], [0, 1]]
    assert read_vectors(tmp_path / "q.csv").tolist() == [[1, 2]]
    assert read_vectors(tmp_path / "q.hdf5").tolist() == [[1] * 4] * 2
    for name in ("none.txt", "none.npy", "none.png", "none.csv"):
        with pytest.raises(InputError, match="there is no file"):
            read_vectors(tmp_path / name)


def test_ids(tmp_path, monkeypatch):
    text = "\n a/b c.png \r\n007\n7\n"
    (tmp_path / "ids").write_text(text, newline="")
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    assert read_ids(tmp_path / "ids") == read_ids("-") == [" a/b c.png ", "007", "7"]
    (tmp_path / "none").write_text("\n")
    with pytest.raises(InputError, match="has no ids"):
        read_ids(tmp_path / "none")
    (tmp_path / "raw").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="not text in UTF-8"):
        read_ids(tmp_path / "raw")
    with pytest.raises(InputError, match="there is no file"):
        read_ids(tmp_path / "nowhere")
