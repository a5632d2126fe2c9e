"""Ids and payload from files of their own."""

import pytest

from rankfold import Index


@pytest.fixture
def files(tmp_path):
    """Points with ids, and tables that name them in another order, or not at all."""
    texts = {
        "points.csv": "id,x,y\na,1,2\nb,2,3\nc,4,4\n",
        "bare.csv": "x,y\n1,2\n2,3\n4,4\n",
        "named.csv": "id,colour\nc,red\na,blue\nb,green\n",
        "ordered.csv": "colour\nblue\ngreen\nred\n",
        "short.csv": "colour\nblue\n",
        "other.csv": "id,colour\nc,red\na,blue\nd,green\n",
        "double.csv": "id,colour\nc,red\na,blue\na,green\n",
        "clash.csv": "id,x,y,colour\na,1,2,u\nb,2,3,v\nc,4,4,w\n",
        "numbers.txt": "7\n-8\n9\n",
        "texts.txt": "7\n08\n9\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)


def colours(folder):
    with Index.open(folder) as index:
        found = index.query(index.ids[0], top=3, include_query=True)
        return dict(sorted(zip(found.ids, found.payload["colour"], strict=True)))


@pytest.mark.parametrize("payload", ["named.csv", "ordered.csv"])
def test_payload_goes_by_id_or_by_order(call, files, payload):
    assert call("index", "build", "points.csv", "--payload", payload, "-o", "p").exit_code == 0
    assert colours("p") == {"a": "blue", "b": "green", "c": "red"}


def test_payload_names_points_without_ids(call, files):
    assert call("index", "build", "bare.csv", "--payload", "named.csv", "-o", "p").exit_code == 0
    assert colours("p") == {"a": "blue", "b": "green", "c": "red"}
    with Index.open("p") as index:
        assert index.ids == ["c", "a", "b"]


@pytest.mark.parametrize(
    ("name", "ids"), [("numbers.txt", [7, -8, 9]), ("texts.txt", ["7", "08", "9"])]
)
def test_listed_ids_are_numbers_if_all_are(call, files, name, ids):
    assert call("index", "build", "bare.csv", "--ids", name, "-o", "p").exit_code == 0
    with Index.open("p") as index:
        assert index.ids == ids
        assert all(one in index for one in ids)
        assert str(ids[0]) not in index or isinstance(ids[0], str)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["points.csv", "--payload", "short.csv"], "has 1 values, but there are 3 rows"),
        (["points.csv", "--payload", "other.csv"], "'other.csv' has no row for the id 'b'"),
        (["points.csv", "--payload", "double.csv"], "'a'"),
        (["clash.csv", "--payload", "named.csv"], "have a column 'colour'; leave one out"),
        (["points.csv", "--payload", "id_column.csv"], "there is no file 'id_column.csv'"),
    ],
)
def test_what_does_not_fit_is_refused(call, files, tmp_path, words, message):
    result = call("index", "build", *words, "-o", "p")
    assert (result.exit_code, result.stdout) == (1, "")
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "p").exists()


def test_columns_that_are_not_there_are_a_wrong_command_line(call, files, tmp_path):
    result = call("index", "build", "points.csv", "--vector-columns", "x,z", "-o", "p")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "has no column 'z'" in result.stderr
    assert not (tmp_path / "p").exists()
