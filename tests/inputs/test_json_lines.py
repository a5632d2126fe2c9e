import json

import pytest

from rankfold import InputError
from rankfold.inputs import as_columns, json_lines, read_points, read_vectors
from rankfold.inputs.files import read_payload


@pytest.fixture
def write(tmp_path):
    def write(*lines):
        path = tmp_path / "notes.jsonl"
        texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
        path.write_text("\n".join(texts) + "\n", encoding="utf-8")
        return path

    return write


def test_records_become_payload(write):
    path = write(
        {"id": "a", "title": "tea", "embedding": [1, 2.5], "year": 2021},
        "",
        {"id": "b", "embedding": [3, 4], "title": None, "sold": True},
    )
    points = read_points(path)
    assert points.vectors.tolist() == [[1, 2.5], [3, 4]]
    assert points.ids == ["a", "b"]
    assert points.payload == {"title": ["tea", None], "year": [2021, None], "sold": [None, True]}
    assert read_vectors(path).tolist() == points.vectors.tolist()


def test_fields_are_named(write):
    path = write(
        {"key": 1, "x": 1, "y": 2, "tags": ["a"], "note": "n"},
        {"key": 2, "x": 3, "y": 4, "tags": {}, "late": 1.5},
    )
    chosen = {"id_column": "key", "vector_columns": ["x", "y"]}
    points = read_points(path, **chosen, payload_columns=["note", "late"])
    assert (points.ids, points.vectors.tolist()) == ([1, 2], [[1, 2], [3, 4]])
    assert points.payload == {"note": ["n", None], "late": [None, 1.5]}
    with pytest.raises(InputError, match=r"line 1 .* has a list in the field 'tags'"):
        read_points(path, **chosen)


def test_of_several_lists_the_vector_is_the_one_called_so(write):
    path = write({"vector": [1, 2], "box": [3, 4]})
    assert read_points(path, payload_columns=[]).vectors.tolist() == [[1, 2]]
    with pytest.raises(InputError, match="several columns of lists"):
        read_points(write({"one": [1, 2], "other": [3, 4]}))


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([{"vector": [1, 2]}, '{"vector": [1, 2'], r"line 2 of .* is not JSON .*one object per"),
        ([{"vector": [1, 2]}, "[1, 2]"], r"line 2 of .* must be an object"),
        ([{"vector": [1, 2]}, {"vector": [1]}], r"line 2 .* vector of 1 numbers, but line 1 has 2"),
        ([{"vector": [1, 2]}, {"vector": [1, "x"]}], r"line 2 .* must have a list of numbers"),
        ([{"vector": [1, 2]}, {"vector": [1, True]}], r"line 2 .* must have a list of numbers"),
        ([{"vector": [1, 2]}, {"note": "n"}], r"line 2 .* has no field 'vector'"),
        ([{"vector": [1]}, '{"vector": [NaN]}'], r"line 2 .*NaN is no number of JSON"),
        ([{"vector": [1]}, '{"vector": [1e999]}'], r"inf|finite"),
        ([f'{{"vector": [1{"0" * 400}]}}'], r"line 1 .* too large for a vector"),
        (['{"vector": [1], "a": 1, "a": 2}'], r"line 1 .*the field 'a' is there twice"),
        (["[" * 100_000], r"line 1 of .* is not JSON"),
        ([{"id": 1, "vector": [1]}, {"vector": [2]}], r"line 2 .* has no 'id'"),
        ([{"id": 1, "vector": [1]}, {"id": 1, "vector": [2]}], r"both have the id 1"),
        ([{"vector": [1], "big": 2**70}], r"'big' in line 1 .* 64"),
        ([{"note": "n", "price": 3}], r"a single column of numbers, 'price'"),
        ([{"note": "n"}], "no column of numbers"),
        ([""], "is empty; write one object per line"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(write, lines, message):
    with pytest.raises(InputError, match=message):
        read_points(write(*lines))


def test_lines_and_fields_have_limits(write, monkeypatch):
    monkeypatch.setattr(json_lines, "LONGEST_LINE", 60)
    with pytest.raises(InputError, match=r"line 2 .* more than 60 characters"):
        read_points(write({"vector": [1]}, {"vector": [1], "text": "x" * 60}))
    monkeypatch.setattr(json_lines, "MOST_FIELDS", 2)
    with pytest.raises(InputError, match="more than 2 different fields"):
        read_points(write({"vector": [1], "a": 1}, {"vector": [1], "b": 1, "c": 1}))


def test_payload_alone(write):
    path = write({"id": "a", "name": "tea"}, {"id": "b", "price": 2})
    assert as_columns(path, 2) == {"id": ["a", "b"], "name": ["tea", None], "price": [None, 2]}
    assert read_payload(path) == (["a", "b"], {"name": ["tea", None], "price": [None, 2]})


def test_a_line_of_very_many_fields_is_refused_at_once(write):
    """Looking for the one that is there twice must not compare each with every other."""
    names = [f'"{number}": 0' for number in range(500_000)]
    with pytest.raises(InputError, match="the field '499999' is there twice"):
        read_points(write("{" + ", ".join([*names, names[-1]]) + "}"))
